"""What was acknowledged last, noted beside the catalog so that a catalog that forgot is found out.

    commit (fsynced) → note the newest operation and the count of other changes, without a sync

SQLite takes a write-ahead log that is damaged for one that ends there, and goes on without the
commits behind the damage. The note is only ever written after a commit is durable, so it is never
ahead of a sound catalog; one that is lost or stale (a power cut) tells less, and never wrongly.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

SLOT_BYTES = 64


@dataclass(frozen=True, slots=True)
class NotedOperation:
    """The newest operation of the log, and the checksum of its row."""

    sequence: int
    checksum: bytes

    def encode(self) -> bytes:
        return _sealed(b"%d %s" % (self.sequence, self.checksum.hex().encode()))


@dataclass(frozen=True, slots=True)
class NotedChanges:
    """How many transactions there were that left no operation."""

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


def _sealed(text: bytes) -> bytes:
    return (b"%08x %s" % (zlib.crc32(text), text)).ljust(SLOT_BYTES)


def _opened(slot: bytes) -> bytes:
    checksum, _, text = slot.rstrip().partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise ValueError("no whole note")
    return text
