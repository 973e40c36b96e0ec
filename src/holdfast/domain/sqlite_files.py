"""SQLite database files: their log and journal names, detection, and a job that overwrites one."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import Digest
from holdfast.values.classes import dataclass, field

HEADER = b"SQLite format 3\0"
SUFFIXES = (b".db", b".db3", b".sqlite", b".sqlite3")
"""Usual names. The first bytes decide."""
LOG = b"-wal"
JOURNAL = b"-journal"
SHARED_MEMORY = b"-shm"
COMPANIONS = (JOURNAL, SHARED_MEMORY, LOG)

LOG_HEADER_BYTES = 32
"""They change when a log is restarted, and at no other time."""

_SHARED_MEMORY_BEGINNINGS = (b"\x18\xe2\x2d\x00", b"\x00\x2d\xe2\x18")
_CUT_DOWN_BYTES = 3
_CUT_DOWN = tuple(beginning[:_CUT_DOWN_BYTES] for beginning in _SHARED_MEMORY_BEGINNINGS)
_SHARED_MEMORY_STEP_BYTES = 4096


def may_name_databases(names: bytes) -> bool:
    """Whether one of these joined names may have such a suffix: a quick look at many."""
    return b".db" in names or b".sqlite" in names


def database_of(name: bytes) -> bytes | None:
    """The database that a name beside it would belong to, if there is one."""
    for suffix in COMPANIONS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None


def is_shared_memory(name: bytes, beginning: bytes) -> bool:
    """Whether a file is what processes with a database open share: no content. The next process
    that opens the database truncates it to three bytes and recreates it."""
    return name.endswith(SHARED_MEMORY) and (
        beginning[:4] in _SHARED_MEMORY_BEGINNINGS or beginning in _CUT_DOWN
    )


def has_size_of_shared_memory(size: int) -> bool:
    """Whether a file with that name can be it, without opening it: opening and closing it in a
    program that has the database open would drop that program's locks."""
    return size == _CUT_DOWN_BYTES or size % _SHARED_MEMORY_STEP_BYTES == 0


SMALLEST_PAGE_BYTES = 512

BOOKKEEPING = ((18, 20), (24, 28), (40, 44), (92, 100))
"""Fields of the header in which two databases of the same content differ: whether writers keep a
log or a journal, the counts of changes and of changed schemas, the library that wrote last.
Programs with a database open see by the counts that it changed: they must not go back then."""


def without_bookkeeping(beginning: bytes) -> bytes:
    """The first bytes of a database, 100 at least, with those fields blank."""
    blank = bytearray(beginning)
    for start, end in BOOKKEEPING:
        blank[start:end] = bytes(end - start)
    return bytes(blank)


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
