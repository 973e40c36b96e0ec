"""A SQLite database whose pages and log are sealed, below SQLite and transparent to it.

    page of the database   salt | nonce | sealed 4056 bytes | tag            = 4096 bytes
    frame of the log       salt | nonce | sealed 24 + 4056 bytes | tag       = 4120 bytes

Databases reserve 40 bytes of every page, which SQLite leaves alone, for salt, nonce and tag. So
everything has the offset and size that SQLite expects, pages stay aligned to sectors, and a torn
write harms only its own page. Every database has its own key, and the context of a seal is the
number of the page or frame, so that none can replace another.

    a frame that is not authentic reads as zeros during log recovery, where SQLite treats it as the
    torn end of the log; wherever its page is needed, it is an error
    a page that is not authentic is an error; only the header's first hundred bytes, read when a
    file is opened, may be missing, because the log may hold the torn page

Guarantees: only the log's 32-byte header reaches the disk unsealed. SQLite's other kinds of file
(rollback journals, temporary files) are refused. Not hidden: how many pages there are and which of
them change. The shared-memory file beside the log holds page numbers and no content.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any, ClassVar

import apsw

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.encryption.cipher import OVERHEAD_BYTES, Cipher, NotAuthentic
from holdfast.adapters.local.store_files import fsync_directory
from holdfast.adapters.local.system import random_bytes
from holdfast.ports.filesystem import FILE_MODE

PAGE_BYTES = 4096
_USABLE_BYTES = PAGE_BYTES - OVERHEAD_BYTES
_FRAME_HEADER_BYTES = 24
FRAME_BYTES = _FRAME_HEADER_BYTES + PAGE_BYTES
LOG_HEADER_BYTES = 32
PAGE_LABEL, FRAME_LABEL = b"page ", b"frame "
_DATABASE_HEADER_BYTES = 100
_RESERVED = bytes(OVERHEAD_BYTES)
_WAL_VERSIONS = b"\x02\x02"
_VERSIONS_AT = 18

_numbers = itertools.count(1)


def context_of(label: bytes, number: int) -> bytes:
    """The page or frame that a seal is for, numbered from 0."""
    return label + number.to_bytes(8, "little")


class SealedFiles(apsw.VFS):
    """One connection's access to its files; registered while the connection is open."""

    def __init__(self, cipher: Cipher) -> None:
        # By name, and looked up now, because a test may have put a layer over the default.
        self._below = apsw.vfs_names()[0]
        self._cipher = cipher
        self.name = f"holdfast-sealed-{next(_numbers)}"
        super().__init__(self.name, self._below)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return _SealedPages(self._cipher, self._below, name, flags)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            return _SealedLog(self._cipher, self._below, name, flags)
        raise apsw.CantOpenError("this kind of file would not be encrypted")


class _SealedFile(apsw.VFSFile):
    """A file of equal units, each sealed as a whole. Partial reads and writes are assembled from
    whole units."""

    _label: ClassVar[bytes]
    _start: ClassVar[int]
    _unit_bytes: ClassVar[int]

    def __init__(
        self, cipher: Cipher, below: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__(below, name, flags)
        self._cipher = cipher

    def _read_units(self, amount: int, offset: int) -> bytes:
        found = b""
        while amount > len(found):
            number, within = self._locate(offset + len(found))
            unit = self._unit(number, within)
            if unit is None:
                break
            found += unit[within : within + amount - len(found)]
        return found

    def _write_units(self, view: memoryview, offset: int) -> None:
        while view:
            number, within = self._locate(offset)
            part = bytes(view[: self._unit_bytes - within])
            self._write_part(number, within, part)
            view, offset = view[len(part) :], offset + len(part)

    def _locate(self, offset: int) -> tuple[int, int]:
        return divmod(offset - self._start, self._unit_bytes)

    def _unit(self, number: int, within: int) -> bytes | None:
        """The unit to be read, starting at `within`."""
        try:
            return self._read_unit(number)
        except NotAuthentic as error:
            raise self._failure(number, error) from None

    def _write_part(self, number: int, within: int, part: bytes) -> None:
        self._overlay(number, within, part)

    def _read_unit(self, number: int) -> bytes | None:
        """The whole unit, with its reserved bytes zero as SQLite expects; None at the end of the
        file; `NotAuthentic`."""
        stored = super().xRead(self._unit_bytes, self._start + number * self._unit_bytes)
        if not stored:
            return None
        if len(stored) < self._unit_bytes:
            raise NotAuthentic("truncated")
        return self._cipher.open(stored, context_of(self._label, number)) + _RESERVED

    def _write_unit(self, number: int, data: bytes) -> None:
        if data[-OVERHEAD_BYTES:] != _RESERVED:
            raise apsw.IOError("a page has content in the space of its authentication tag")
        content = memoryview(data)[:-OVERHEAD_BYTES]
        sealed = self._cipher.seal(content, context_of(self._label, number))
        super().xWrite(sealed, self._start + number * self._unit_bytes)

    def _overlay(self, number: int, within: int, part: bytes, *, may_be_torn: bool = False) -> None:
        """Write part of a unit; `may_be_torn`: the old content does not matter."""
        if within == 0 and len(part) == self._unit_bytes:
            self._write_unit(number, part)
            return
        try:
            old = self._read_unit(number)
        except NotAuthentic as error:
            if not may_be_torn:
                raise self._failure(number, error) from None
            old = None
        unit = bytearray(old or bytes(self._unit_bytes))
        unit[within : within + len(part)] = part
        self._write_unit(number, bytes(unit))

    def _failure(self, number: int, error: NotAuthentic) -> apsw.CorruptError:
        what = self._label.decode()
        return apsw.CorruptError(f"{what}{number} is {error}")


class _SealedPages(_SealedFile):
    _label, _start, _unit_bytes = PAGE_LABEL, 0, PAGE_BYTES

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        try:
            return self._read_units(amount, offset)
        except apsw.CorruptError:
            if offset + amount <= _DATABASE_HEADER_BYTES:
                return b""
            raise

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._write_units(memoryview(data), offset)


class _SealedLog(_SealedFile):
    """SQLite writes the header of a frame and its page separately. The header waits here until the
    page arrives, or until any other access to the file."""

    _label, _start, _unit_bytes = FRAME_LABEL, LOG_HEADER_BYTES, FRAME_BYTES

    def __init__(
        self, cipher: Cipher, below: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        super().__init__(cipher, below, name, flags)
        self._waiting: tuple[int, bytes] | None = None
        self._written_here: set[int] = set()

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._write_waiting()
        head = b""
        if offset < LOG_HEADER_BYTES:
            in_header = min(amount, LOG_HEADER_BYTES - offset)
            head = super().xRead(in_header, offset)
            if len(head) < in_header or len(head) == amount:
                return head
            offset = LOG_HEADER_BYTES
        return head + self._read_units(amount - len(head), offset)

    def _unit(self, number: int, within: int) -> bytes | None:
        try:
            return self._read_unit(number)
        except NotAuthentic as error:
            # Frames are read from their header during recovery. Frames of the current transaction
            # are read to update its checksum, so they must be intact.
            if within < _FRAME_HEADER_BYTES and number not in self._written_here:
                return bytes(self._unit_bytes)
            raise self._failure(number, error) from None

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        view = memoryview(data)
        if offset < LOG_HEADER_BYTES:
            self._write_waiting()
            self._written_here.clear()
            head = view[: LOG_HEADER_BYTES - offset]
            super().xWrite(head, offset)
            view, offset = view[len(head) :], offset + len(head)
        self._write_units(view, offset)

    def _write_part(self, number: int, within: int, part: bytes) -> None:
        if self._waiting is not None and self._waiting[0] == number:
            begun = self._waiting[1]
            if within == len(begun):
                part, within, self._waiting = begun + part, 0, None
        self._write_waiting()
        if within == 0 and len(part) < self._unit_bytes:
            self._waiting = (number, part)
        else:
            self._overlay(number, within, part)

    def _write_unit(self, number: int, data: bytes) -> None:
        self._written_here.discard(number)
        super()._write_unit(number, data)
        self._written_here.add(number)

    def _write_waiting(self) -> None:
        if self._waiting is not None:
            number, part = self._waiting
            self._waiting = None
            self._overlay(number, 0, part, may_be_torn=True)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._write_waiting()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._write_waiting()
        super().xTruncate(newsize)

    def xFileSize(self) -> int:  # noqa: N802
        self._write_waiting()
        return super().xFileSize()

    def xClose(self) -> None:  # noqa: N802
        # A frame without its page was never committed, so it is not needed.
        self._waiting = None
        super().xClose()


def create_sealed(path: Path, cipher: Cipher) -> None:
    """Create an empty database atomically, if there is none. SQLite then never has to write a first
    page itself, which would need a rollback journal."""
    while not os.path.lexists(path):
        for left_behind in path.parent.glob(f".{path.name}.*.new"):
            left_behind.unlink(missing_ok=True)
        temporary = path.with_name(f".{path.name}.{random_bytes(8).hex()}.new")
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            with os.fdopen(fd, "wb") as file:
                first = _empty_database()[:_USABLE_BYTES]
                file.write(cipher.seal(first, context_of(PAGE_LABEL, 0)))
                file.flush()
                sync_to_disk(fd)
            # Another process may have been faster, or may have deleted our file as a leftover.
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        fsync_directory(path.parent)


def _empty_database() -> bytes:
    """One page as SQLite creates it, in WAL mode and with room for the seal."""
    template = apsw.Connection(":memory:")
    template.execute(f"PRAGMA page_size={PAGE_BYTES}").fetchall()
    template.reserve_bytes("main", OVERHEAD_BYTES)
    template.execute("PRAGMA user_version=1; PRAGMA user_version=0").fetchall()
    page = template.serialize("main")
    template.close()
    return page[:_VERSIONS_AT] + _WAL_VERSIONS + page[_VERSIONS_AT + len(_WAL_VERSIONS) :]
