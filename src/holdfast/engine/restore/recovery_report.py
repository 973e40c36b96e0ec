"""The report about recovered restores, kept in the store until a command has shown it.

Any process may recover a restore, and a hook or the daemon has no user to tell.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from holdfast.domain.errors import Busy, HoldfastError, StoreReadOnly
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import RecoveredRestore
from holdfast.domain.paths import from_text, to_text
from holdfast.engine.vault import Vault

_MOST = 5


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
