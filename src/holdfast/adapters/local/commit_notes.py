"""A record of the last acknowledged change beside the catalog, which reveals a catalog that lost
it.

    commit (fsynced) → note the newest operation and the count of other changes, without a sync

SQLite treats a damaged write-ahead log as if it ended there, and continues without the commits
after the damage. The note is only written after a commit is durable, so it is never ahead of a
sound catalog. A lost or stale note (after a power cut) detects less, but is never wrong.
"""

from __future__ import annotations

from binascii import crc32

from holdfast.values.classes import dataclass

SLOT_BYTES = 64
NOTES_BYTES = 2 * SLOT_BYTES + 1
"""One byte more than the notes have, to notice another file in their place."""


@dataclass(frozen=True, slots=True)
class NotedOperation:
    """The newest operation of the log, and the checksum of its row."""

    sequence: int
    checksum: bytes

    def encode(self) -> bytes:
        return _sealed(b"%d %s" % (self.sequence, self.checksum.hex().encode()))


@dataclass(frozen=True, slots=True)
class NotedChanges:
    """How many transactions had no operation."""

    count: int

    def encode(self) -> bytes:
        return _sealed(b"%d" % self.count)


def decode_operation(slot: bytes) -> NotedOperation | None:
    try:
        sequence, checksum = _opened(slot).split()
        return NotedOperation(int(sequence), bytes.fromhex(checksum.decode()))
    except ValueError:
        return None


def decode_changes(slot: bytes) -> NotedChanges | None:
    try:
        return NotedChanges(int(_opened(slot)))
    except ValueError:
        return None


def is_another_file(notes: bytes) -> bool:
    """Whether there is more data than notes have: another file was put in their place."""
    return len(notes) > 2 * SLOT_BYTES


def notes_are_damaged(notes: bytes) -> bool:
    """Whether notes exist but are unreadable. Zeros come from a power cut."""
    if is_another_file(notes):
        return True
    slots = (notes[:SLOT_BYTES], notes[SLOT_BYTES:])
    readable = (decode_operation(slots[0]), decode_changes(slots[1]))
    return any(
        slot.strip(b"\0 ") and noted is None for slot, noted in zip(slots, readable, strict=True)
    )


def changes_are_damaged(notes: bytes) -> bool:
    """The same for a file that notes only changes, read with one byte extra."""
    slot = notes[:SLOT_BYTES]
    return len(notes) > SLOT_BYTES or bool(slot.strip(b"\0 ") and decode_changes(slot) is None)


def _sealed(text: bytes) -> bytes:
    return (b"%08x %s" % (crc32(text), text)).ljust(SLOT_BYTES)


def _opened(slot: bytes) -> bytes:
    checksum, _, text = slot.rstrip().partition(b" ")
    if checksum != b"%08x" % crc32(text):
        raise ValueError("no whole note")
    return text
