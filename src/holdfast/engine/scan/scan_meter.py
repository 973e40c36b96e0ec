"""Progress and size of a scan, and the limit on captured bytes.

For a known workspace, the last file count is the estimate. A new workspace is counted first, which
takes about a tenth of the time of reading it. Both happen only if there is a listener. A file whose
content is already stored costs nothing, and is captured whatever its size.
"""

from __future__ import annotations

import stat
from collections.abc import Container

from holdfast.domain.ids import Digest
from holdfast.domain.paths import GIT_DIRECTORY, join
from holdfast.engine.scan.file_capture import CapturedContent, FileCapture, NoRoom
from holdfast.engine.scan.policy import CapturePolicy, Mode
from holdfast.engine.scan.stable_read import StableRead
from holdfast.engine.scan.walker import DEEP
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem
from holdfast.ports.objects import ObjectStore, ObjectWriter, WriteTotals
from holdfast.ports.progress import TransferProgress

_REPORT_EVERY = 50
_REPORT_EVERY_BYTES = 1 << 20
_NOTHING = Digest(bytes(32))
_RECORD_BYTES = 200
"""The approximate cost of a file besides its content."""


class ScanMeter:
    """Counts files and bytes, and reports progress at intervals."""

    __slots__ = (
        "_listener",
        "_phase",
        "_reported",
        "_reported_bytes",
        "_total",
        "files",
        "size_bytes",
    )

    def __init__(self, listener: TransferProgress, phase: str, total: int | None) -> None:
        self._listener = listener
        self._phase = phase
        self._total = total
        self._reported = 0
        self._reported_bytes = 0
        self.files = 0
        self.size_bytes = 0
        listener.advance(phase, 0, total)

    def passed(self, files: int) -> None:
        self.files += files
        if self.files - self._reported >= _REPORT_EVERY:
            self._reported = self.files
            done = self.files if self._total is None else min(self.files, self._total)
            self._listener.advance(self._phase, done, self._total)

    def read(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        if self.size_bytes - self._reported_bytes >= _REPORT_EVERY_BYTES:
            self._reported_bytes = self.size_bytes
            self._listener.transferred(self.size_bytes)


class NoReadCapture(FileCapture):
    """Replaces reading when files are only counted."""

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


class BudgetedCapture(FileCapture):
    """Leaves out unstored content larger than `largest_bytes`."""

    reconsiders = True

    def __init__(
        self,
        fs: Filesystem,
        writer: ObjectWriter,
        started_ns: int,
        meter: ScanMeter | None,
        objects: ObjectStore,
        largest_bytes: int,
    ) -> None:
        super().__init__(fs, writer, started_ns, meter)
        self._largest_bytes = largest_bytes
        self._held = FileCapture(fs, _StoredOnlyWriter(objects), started_ns)

    def capture(
        self, dir_fd: int, name: bytes, size: int, previous: Digest | None
    ) -> StableRead[CapturedContent]:
        if size <= self._largest_bytes:
            return super().capture(dir_fd, name, size, previous)
        return self._held.capture(dir_fd, name, size, previous)


class _StoredOnlyWriter(DiscardingWriter):
    """Accepts only objects that the store already has."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        if not self._objects.contains(digest):
            raise NoRoom
        return False


class MeasuringCapture(NoReadCapture):
    """Reads nothing. Collects the maximum that each file to be read may add. `known` are sizes and
    times of files whose content is probably stored."""

    reconsiders = True

    def __init__(
        self, fs: Filesystem, started_ns: int, known: Container[tuple[int, int]] = ()
    ) -> None:
        super().__init__(fs, started_ns)
        self._known = known
        self.sizes: list[int] = []

    def capture(
        self, dir_fd: int, name: bytes, size: int, previous: Digest | None
    ) -> StableRead[CapturedContent]:
        read = super().capture(dir_fd, name, size, previous)
        if (read.status.st_size, read.status.st_mtime_ns) not in self._known:
            self.sizes.append(read.status.st_size)
        return read


def certainly_fits(fs: Filesystem, root_fd: int, policy: CapturePolicy, room_bytes: int) -> bool:
    """Whether everything in the workspace fits, by a quick estimate. It ignores ignore files, and
    so finds more than a save would. Unreadable paths make it uncertain."""
    try:
        return _directory_bytes(fs, root_fd, b"", policy, room_bytes, 0) is not None
    except OSError:
        return False


def _directory_bytes(
    fs: Filesystem, fd: int, path: bytes, policy: CapturePolicy, room_bytes: int, depth: int
) -> int | None:
    """The maximum that a directory's content may add; None if that is too much."""
    names = fs.list_names(fd)
    stat_answer = fs.stat_all(names, dir_fd=fd)
    if stat_answer is None or depth >= DEEP:
        return None
    taken = 0
    for name, (_, size, _, _, mode) in zip(names, fs.stat_numbers(stat_answer), strict=True):
        if stat.S_ISDIR(mode):
            below = join(path, name)
            if name == GIT_DIRECTORY or below in policy.own_data:
                continue
            if policy.judge(policy.root_stack, below, True, Mode.NORMAL).reason is not None:
                continue
            child_fd = fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            try:
                inside = _directory_bytes(
                    fs, child_fd, below, policy, room_bytes - taken, depth + 1
                )
            finally:
                fs.close(child_fd)
            if inside is None:
                return None
            taken += inside
        elif size <= policy.max_file_size:
            taken += size + _RECORD_BYTES
        if taken > room_bytes:
            return None
    return taken


def estimate_bytes(sizes: list[int]) -> int:
    return sum(sizes) + _RECORD_BYTES * len(sizes)


def largest_that_fits(sizes: list[int], room_bytes: int) -> int | None:
    """The largest size such that all files up to it fit; None if every file fits."""
    taken = 0
    for size in sorted(sizes):
        taken += size + _RECORD_BYTES
        if taken > room_bytes:
            return max(size - 1, 0)
    return None
