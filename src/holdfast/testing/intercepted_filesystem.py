"""A file system that passes every call through one place, where it can be observed or changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from holdfast.domain.sqlite_files import DatabaseJob, Written
from holdfast.ports.filesystem import Filesystem, StatNumbers
from holdfast.ports.live_database import LiveDatabases

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number, counted from 1, its name and its subject."""

    number: int
    name: str
    subject: bytes | int


class Disk(Filesystem, LiveDatabases, Protocol):
    """A file system, and the databases on it that other programs have open."""


class InterceptedFilesystem:
    """Passes each call to `around`; see `holdfast.ports.filesystem.Filesystem` and
    `holdfast.ports.live_database.LiveDatabases` for the members."""

    def __init__(self, inner: Disk) -> None:
        self._inner = inner
        self.calls: list[Call] = []

    def around(self, call: Call, run: Callable[[], T]) -> T:
        """Override to act before, after or instead of `run`."""
        return run()

    def around_sized(self, call: Call, size: int, run: Callable[[int], T]) -> T:
        """Override to let a read or write transfer fewer bytes than requested."""
        return self.around(call, lambda: run(size))

    def _call(self, name: str, subject: bytes | int) -> Call:
        call = Call(len(self.calls) + 1, name, subject)
        self.calls.append(call)
        return call

    def _pass(self, name: str, subject: bytes | int, run: Callable[[], T]) -> T:
        return self.around(self._call(name, subject), run)

    def open(self, path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return self._pass("open", path, lambda: self._inner.open(path, flags, mode, dir_fd=dir_fd))

    def close(self, fd: int) -> None:
        self._pass("close", fd, lambda: self._inner.close(fd))

    def stat(
        self, path: bytes, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> os.stat_result:
        return self._pass(
            "stat",
            path,
            lambda: self._inner.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks),
        )

    def fstat(self, fd: int) -> os.stat_result:
        return self._pass("fstat", fd, lambda: self._inner.fstat(fd))

    def stat_all(self, names: Sequence[bytes], *, dir_fd: int) -> bytes | None:
        return self._pass("stat_all", dir_fd, lambda: self._inner.stat_all(names, dir_fd=dir_fd))

    def stat_numbers(self, packed: bytes) -> Sequence[StatNumbers]:
        """Not counted, because it is not a call that could fail."""
        return self._inner.stat_numbers(packed)

    def list_names(self, fd: int) -> list[bytes]:
        return self._pass("list_names", fd, lambda: self._inner.list_names(fd))

    def read(self, fd: int, size: int) -> bytes:
        call = self._call("read", fd)
        return self.around_sized(call, size, lambda limit: self._inner.read(fd, limit))

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        call = self._call("pread", fd)
        return self.around_sized(call, size, lambda limit: self._inner.pread(fd, limit, offset))

    def write(self, fd: int, data: bytes) -> int:
        call = self._call("write", fd)
        return self.around_sized(call, len(data), lambda limit: self._inner.write(fd, data[:limit]))

    def fsync(self, fd: int) -> None:
        self._pass("fsync", fd, lambda: self._inner.fsync(fd))

    def sync_all(self, fd: int) -> None:
        self._pass("sync_all", fd, lambda: self._inner.sync_all(fd))

    def sync_everything(self) -> None:
        self._pass("sync_everything", b"", self._inner.sync_everything)

    def ftruncate(self, fd: int, length: int) -> None:
        self._pass("ftruncate", fd, lambda: self._inner.ftruncate(fd, length))

    def lseek(self, fd: int, position: int, how: int) -> int:
        return self._pass("lseek", fd, lambda: self._inner.lseek(fd, position, how))

    def fchmod(self, fd: int, mode: int) -> None:
        self._pass("fchmod", fd, lambda: self._inner.fchmod(fd, mode))

    def set_mode(self, name: bytes, mode: int, *, dir_fd: int) -> None:
        self._pass("set_mode", name, lambda: self._inner.set_mode(name, mode, dir_fd=dir_fd))

    def may_chown(self) -> bool:
        """Not counted, because it is a question about the process."""
        return self._inner.may_chown()

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        self._pass("fchown", fd, lambda: self._inner.fchown(fd, uid, gid))

    def set_times(self, name: bytes, mtime_ns: int, *, dir_fd: int) -> None:
        self._pass("set_times", name, lambda: self._inner.set_times(name, mtime_ns, dir_fd=dir_fd))

    def mkdir(self, path: bytes, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._pass("mkdir", path, lambda: self._inner.mkdir(path, mode, dir_fd=dir_fd))

    def rmdir(self, path: bytes, *, dir_fd: int | None = None) -> None:
        self._pass("rmdir", path, lambda: self._inner.rmdir(path, dir_fd=dir_fd))

    def unlink(self, path: bytes, *, dir_fd: int | None = None) -> None:
        self._pass("unlink", path, lambda: self._inner.unlink(path, dir_fd=dir_fd))

    def symlink(self, target: bytes, path: bytes, *, dir_fd: int | None = None) -> None:
        self._pass("symlink", path, lambda: self._inner.symlink(target, path, dir_fd=dir_fd))

    def readlink(self, path: bytes, *, dir_fd: int | None = None) -> bytes:
        return self._pass("readlink", path, lambda: self._inner.readlink(path, dir_fd=dir_fd))

    def link(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._pass(
            "link",
            target,
            lambda: self._inner.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd),
        )

    def rename(
        self,
        source: bytes,
        target: bytes,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        self._pass(
            "rename",
            target,
            lambda: self._inner.rename(
                source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd
            ),
        )

    def rename_new(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._pass(
            "rename_new",
            target,
            lambda: self._inner.rename_new(
                source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd
            ),
        )

    def exchange(self, one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._pass(
            "exchange",
            other,
            lambda: self._inner.exchange(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd),
        )

    def is_open_for_writing(self, fd: int) -> bool | None:
        return self._pass("is_open_for_writing", fd, lambda: self._inner.is_open_for_writing(fd))

    def expose_mapped_writes(self, fd: int) -> None:
        self._pass("expose_mapped_writes", fd, lambda: self._inner.expose_mapped_writes(fd))

    def hold_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        return self._inner.hold_database(name, dir_fd=dir_fd)

    def pause_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        return self._inner.pause_database(name, dir_fd=dir_fd)

    def is_database_in_use(self, name: bytes, *, dir_fd: int) -> bool:
        return self._inner.is_database_in_use(name, dir_fd=dir_fd)

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        return self._pass(
            "overwrite_database",
            job.name,
            lambda: self._inner.overwrite_database(job, dir_fd=dir_fd, area_fd=area_fd),
        )

    def list_xattrs(self, fd: int) -> list[str]:
        return self._pass("list_xattrs", fd, lambda: self._inner.list_xattrs(fd))

    def free_bytes(self, path: bytes) -> int:
        return self._pass("free_bytes", path, lambda: self._inner.free_bytes(path))

    def mount_points_below(self, path: bytes) -> list[bytes]:
        return self._inner.mount_points_below(path)


class RecordingFilesystem(InterceptedFilesystem):
    """Records all calls, so that a test can state the cost of work.

        fs = RecordingFilesystem(LocalFilesystem())
        ...
        assert fs.count("fsync") == 2

    It changes nothing; `calls` holds every call in order.
    """

    def count(self, *names: str) -> int:
        """How many calls had one of these names; without names, how many there were."""
        return sum(not names or call.name in names for call in self.calls)

    def forget(self) -> None:
        """Start counting again."""
        self.calls.clear()
