"""SQLite database files: their log and journal names, detection, and a job that overwrites one."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import Digest
from holdfast.values.classes import dataclass, field

HEADER = b"SQLite format 3\0"
SUFFIXES = (b".db", b".db3", b".sqlite", b".sqlite3")
"""Common extensions. Detection uses the first bytes."""
LOG = b"-wal"
JOURNAL = b"-journal"
SHARED_MEMORY = b"-shm"
COMPANIONS = (JOURNAL, SHARED_MEMORY, LOG)

LOG_HEADER_BYTES = 32
"""These bytes change only when a log is restarted."""

_SHARED_MEMORY_BEGINNINGS = (b"\x18\xe2\x2d\x00", b"\x00\x2d\xe2\x18")
_CUT_DOWN_BYTES = 3
_CUT_DOWN = tuple(beginning[:_CUT_DOWN_BYTES] for beginning in _SHARED_MEMORY_BEGINNINGS)
_SHARED_MEMORY_STEP_BYTES = 4096


def may_name_databases(names: bytes) -> bool:
    """Whether one of these joined names may have such a suffix: a quick look at many."""
    return b".db" in names or b".sqlite" in names


def database_of(name: bytes) -> bytes | None:
    """The database that a log, journal or shared memory of this name would belong to."""
    for suffix in COMPANIONS:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None


def is_shared_memory(name: bytes, beginning: bytes) -> bool:
    """Whether a file is the memory shared by processes that have a database open. It is not
    content: the next process that opens the database truncates it to three bytes and recreates
    it."""
    return name.endswith(SHARED_MEMORY) and (
        beginning[:4] in _SHARED_MEMORY_BEGINNINGS or beginning in _CUT_DOWN
    )


def has_size_of_shared_memory(size: int) -> bool:
    """Whether a file of that name can be shared memory, without opening it. Closing it in a program
    that has the database open would drop that program's locks."""
    return size == _CUT_DOWN_BYTES or size % _SHARED_MEMORY_STEP_BYTES == 0


SMALLEST_PAGE_BYTES = 512

BOOKKEEPING = ((18, 20), (24, 28), (40, 44), (92, 100))
"""Header fields that can differ between databases of the same content: log or journal mode, change
and schema counters, and the library that wrote last. Programs with the database open notice changes
by the counters, which must not go back then."""


def without_bookkeeping(beginning: bytes) -> bytes:
    """The first bytes of a database, at least 100, with those fields zeroed."""
    blank = bytearray(beginning)
    for start, end in BOOKKEEPING:
        blank[start:end] = bytes(end - start)
    return bytes(blank)


@dataclass(frozen=True, slots=True)
class DatabaseJob:
    """Overwrite a database, named in its directory, with files named in a staging area.

    Mapping keys are suffixes: empty for the database itself, `-wal`, `-journal`. `slots` hold the
    target state and `wanted` its digests; `known` has the digests of the saved current state.
    Unsaved content goes to `aside`, as one file. Locks of other programs are waited for, at least
    `patience_s`.
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
    """The result. The database has changed only after the first two."""

    EXACT = "exact"
    IN_USE = "in use"
    """The content is as wanted, but the change counters have increased, so that open programs
    notice."""
    BUSY = "busy"
    UNSUITABLE = "unsuitable"
    """SQLite cannot read one of the two states, or must not write to that file."""


class PerhapsWritten(OSError):
    """It failed, but the wanted state may already be committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """`aside`: there was unsaved content, which has been moved aside."""

    how: Writing
    aside: bool = False
    detail: str = ""
