"""How far a scan is: files passed, bytes read, and beforehand how many files there are.

A workspace that was scanned before has about as many files as it had. One that is new is counted
first, which takes about a tenth of the time that reading it takes; both only while somebody is
looking.
"""

from __future__ import annotations

from holdfast.domain.ids import Digest
from holdfast.engine.scan.file_capture import CapturedContent, FileCapture
from holdfast.engine.scan.stable_read import StableRead
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import WriteTotals
from holdfast.ports.progress import TransferProgress

_TELL_EVERY = 50
_TELL_EVERY_BYTES = 1 << 20
_NOTHING = Digest(bytes(32))


class ScanMeter:
    """Counts, and tells now and then."""

    __slots__ = ("_listener", "_phase", "_told", "_told_bytes", "_total", "files", "size_bytes")

    def __init__(self, listener: TransferProgress, phase: str, total: int | None) -> None:
        self._listener = listener
        self._phase = phase
        self._total = total
        self._told = 0
        self._told_bytes = 0
        self.files = 0
        self.size_bytes = 0
        listener.advance(phase, 0, total)

    def passed(self, files: int) -> None:
        self.files += files
        if self.files - self._told >= _TELL_EVERY:
            self._told = self.files
            done = self.files if self._total is None else min(self.files, self._total)
            self._listener.advance(self._phase, done, self._total)

    def read(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        if self.size_bytes - self._told_bytes >= _TELL_EVERY_BYTES:
            self._told_bytes = self.size_bytes
            self._listener.transferred(self.size_bytes)


class NothingRead(FileCapture):
    """Stands in for the reading of files where they are only counted."""

    def __init__(self, fs: Filesystem, started_ns: int) -> None:
        super().__init__(fs, DiscardingWriter(), started_ns)

    def capture(
        self, dir_fd: int, name: bytes, size: int, previous: Digest | None
    ) -> StableRead[CapturedContent]:
        status = self._fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        content = CapturedContent(_NOTHING, None, status.st_size)
        return StableRead(content, status, stable=True, has_writer=False, xattrs=[])


class DiscardingWriter:
    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        return False

    def commit(self) -> WriteTotals:
        return WriteTotals()

    def abandon(self) -> None:
        return None
