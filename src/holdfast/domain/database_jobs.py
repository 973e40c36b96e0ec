"""What it takes to write one state of a SQLite database into a live one, and what came of it."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import Digest
from holdfast.values.classes import dataclass, field


@dataclass(frozen=True, slots=True)
class DatabaseJob:
    """A database by its name in a directory, and files of a staging area by theirs.

    Keys of the mappings are what is added to the name: nothing for the database itself, `-wal`,
    `-journal`. `slots` hold the state to reach and `wanted` are the digests of it; `known` is what
    is saved of the present one. What is there and not saved goes to `aside`, as one file. Locks of
    others are waited for, for `patience_s` at least.
    """

    name: bytes
    slots: dict[bytes, bytes]
    wanted: dict[bytes, Digest]
    known: dict[bytes, Digest] = field(default_factory=dict)
    aside: bytes = b"aside"
    mode: int = 0o600
    mtime_ns: int = 0
    patience_s: float = 10.0


class Writing(StrEnum):
    """How it ended. Only after the first two is the database another than before."""

    EXACT = "exact"
    IN_USE = "in use"
    """The content is the wanted one; counters that tell open programs of a change went on."""
    BUSY = "busy"
    UNSUITABLE = "unsuitable"
    """SQLite cannot read the one or the other, or must not write into that file."""


class PerhapsWritten(OSError):
    """It failed, but not before the wanted state may have been committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """`aside`: something that was not saved was there, and has been put aside."""

    how: Writing
    aside: bool = False
    detail: str = ""
