"""The stash: entries are lines of a log beside one reference, which is the newest entry.

    lock the reference, as git does → write the log at once → move the reference into place

Guarantee: entries keep their order, message, author and time. Can be repeated after a crash. Does
not wait for another git: an existing lock is reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from holdfast.components.git.commands import Git
from holdfast.components.git.durability import sync_references
from holdfast.components.git.references import OID, STASH_REF, read_reference
from holdfast.components.git.repository import (
    Repository,
    TooLarge,
    read_small,
    remove_own_lock_at,
    replace_file,
    sync_directory,
    take_lock_at,
)
from holdfast.domain.paths import to_text
from holdfast.domain.wording import printable
from holdfast.values.classes import NamedTuple

LOG = b"logs/refs/stash"
LOG_BYTES = 16 << 20
_LINE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^\t\n]*)(?:\t([^\n]*))?\Z")
_MODE = 0o644


class StashEntry(NamedTuple):
    """`who` is the identity and time in git's format."""

    oid: str
    who: bytes
    message: bytes

    @property
    def shown(self) -> str:
        return printable(to_text(self.message))[:80]


def read_stash_log(repository: Repository) -> bytes:
    """The log as it is; empty if there is no stash, or if it is not a list."""
    if read_reference(repository, STASH_REF) is None:
        return b""
    try:
        return read_small(repository.shared(LOG), LOG_BYTES) or b""
    except TooLarge:
        return b""


def parse_log(log: bytes) -> list[StashEntry]:
    """Entries, oldest first; without lines that git would not have written."""
    found = [match for line in log.split(b"\n") if (match := _LINE.match(line)) is not None]
    return [StashEntry(m[2].decode(), m[3], m[4] or b"") for m in found if OID.match(m[2])]


def read_stash(repository: Repository) -> list[StashEntry]:
    """The current entries, oldest first."""
    return parse_log(read_stash_log(repository))


def with_entries(
    now: Sequence[StashEntry], then: Sequence[StashEntry], chosen: Collection[str]
) -> list[StashEntry]:
    """The current entries, with the selected ones of an earlier list in their old order. Newer
    entries stay on top."""
    there, known = {entry.oid for entry in now}, {entry.oid for entry in then}
    older = [entry for entry in then if entry.oid in there or entry.oid in chosen]
    return older + [entry for entry in now if entry.oid not in known]


def put_entries(git: Git, owner: str, entries: Sequence[StashEntry]) -> None:
    """Set the stash to exactly these entries."""
    repository = git.repository
    ref, log = repository.shared(STASH_REF), repository.shared(LOG)
    lock, copy = _locks(repository, owner)
    if not entries:
        if read_reference(repository, STASH_REF) is not None:
            git.run("update-ref", "-d", STASH_REF)
            sync_references(repository, [STASH_REF])
        return
    take_lock_at(lock, copy, [entries[-1].oid.encode() + b"\n"], _MODE)
    try:
        os.makedirs(os.path.dirname(log), exist_ok=True)
        replace_file(log, _encoded(entries), _MODE)
        sync_directory(os.path.dirname(log))
        os.replace(lock, ref)
    finally:
        remove_own_lock_at(lock, copy)
    sync_references(repository, [STASH_REF, LOG])


def remove_own_stash_lock(repository: Repository, owner: str) -> None:
    """Remove the lock of an interrupted restore; called only with the store's lock held."""
    remove_own_lock_at(*_locks(repository, owner))


def _locks(repository: Repository, owner: str) -> tuple[bytes, bytes]:
    copy = repository.shared(b"stash.holdfast-" + owner.encode())
    return repository.shared(STASH_REF) + b".lock", copy


def _encoded(entries: Sequence[StashEntry]) -> bytes:
    lines, before = [], "0" * len(entries[0].oid)
    for entry in entries:
        head = b"%b %b %b" % (before.encode(), entry.oid.encode(), entry.who)
        lines.append(head + (b"\t" + entry.message if entry.message else b"") + b"\n")
        before = entry.oid
    return b"".join(lines)
