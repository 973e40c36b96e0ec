"""What is said about interrupted restores: those that wait for recovery, and those recovered.

Any process may recover a restore, and a hook or the daemon has no user to tell. So the store keeps
a report until a command has shown it. Commands that only read recover nothing, and say so.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from holdfast.domain.errors import Busy, HoldfastError, StoreDamaged, StoreReadOnly
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import InterruptedRestore, RecoveredRestore
from holdfast.domain.paths import from_text, to_text
from holdfast.engine.restore.journal import decode_journal
from holdfast.engine.vault import Vault

_MOST = 5


def interrupted_restore(vault: Vault) -> InterruptedRestore | None:
    """The restore that waits for recovery. None if another process holds the lock: then it may be
    running. A damaged journal is for `check` and `repair` to report."""
    if vault.journal.read() is None:
        return None
    with suppress(Busy, StoreDamaged), vault.lock.hold(wait=False, looking=True):
        data = vault.journal.read()
        journal = None if data is None else decode_journal(data)
        if journal is None or vault.catalog.operation_with_token(journal.token) is not None:
            return None
        target = vault.catalog.checkpoint(journal.session_id, journal.target)
        name = None if target is None else target.name
        return InterruptedRestore(journal.kind, journal.target, name, journal.trouble)
    return None


def add_to_report(vault: Vault, token: str, done: RecoveredRestore) -> None:
    """Best effort: a recovery does not fail for its report. `token` identifies the restore, so that
    a repeated recovery is reported once. Called with the store's lock held."""
    with suppress(OSError, HoldfastError):
        reported = _entries(vault)
        if all(entry.get("token") != token for entry in reported):
            entries = [*reported, {"token": token, **_fields(done)}]
            vault.journal.write_report(json.dumps(entries[-_MOST:]).encode())


def take_report(vault: Vault) -> tuple[RecoveredRestore, ...]:
    """The recoveries that were not reported yet, oldest first; the caller reports them. If another
    process holds the lock, they stay for the next caller."""
    with suppress(Busy, StoreReadOnly), vault.lock.hold(wait=False):
        found = _entries(vault)
        vault.journal.remove_report()
        return tuple(_from_fields(entry) for entry in found)
    return ()


def _entries(vault: Vault) -> list[dict[str, Any]]:
    """Empty if the report is unusable."""
    try:
        entries = json.loads(vault.journal.read_report() or b"[]")
        for entry in entries:
            _from_fields(entry)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return list(entries)


def _fields(done: RecoveredRestore) -> dict[str, Any]:
    return {
        "kind": done.kind.value,
        "restored_to": done.restored_to,
        "name": done.name,
        "rolled_back": done.rolled_back,
        "files_changed": done.files_changed,
        "overwritten": [to_text(path) for path in done.overwritten],
        "safety": done.safety,
    }


def _from_fields(fields: dict[str, Any]) -> RecoveredRestore:
    safety = fields["safety"]
    return RecoveredRestore(
        kind=OperationKind(fields["kind"]),
        restored_to=CheckpointId(fields["restored_to"]),
        name=fields["name"],
        rolled_back=bool(fields["rolled_back"]),
        files_changed=int(fields["files_changed"]),
        overwritten=tuple(from_text(path) for path in fields["overwritten"]),
        safety=None if safety is None else CheckpointId(safety),
    )
