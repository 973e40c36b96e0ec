"""A real directory whose every change, of the file system port and of SQLite, is also written down.

    with recorded(disk):
        with open_workspace(...) as opened: ...      # runs as always
    disk.model.state(until, rng)                     # what a power cut would have left

Shared memory and lock files are left out: they mean nothing after a power cut. A process can be
let die at a call of the port: nothing of it reaches the disk from then on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

import holdfast.bootstrap.workspace
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.testing.faulty_filesystem import Killed
from tests.torture.disk_model import (
    Born,
    Directory,
    Disk,
    File,
    Inode,
    Link,
    Moded,
    Names,
    Replaced,
    Resized,
    Synced,
    Written,
)

_NAME = "holdfast-recorded"
_LEFT_OUT = (b"-shm", b"lock")


class RecordedDisk:
    """Follows the directories `project` and `home` below one root."""

    def __init__(self, root: Path) -> None:
        self.model = Disk()
        self.project, self.home = root / "project", root / "home"
        self._numbers: dict[tuple[int, int], int] = {}
        self._next = 0
        self.tops = {path: self._adopt(path, self.model.base) for path in (self.project, self.home)}
        self.die_at = 0
        self.calls = 0
        self.dead = False

    def person_changed_project(self) -> None:
        """What was done to the workspace without us is durable, and part of every later state."""
        found: dict[int, Inode] = {}
        top = self.tops[self.project]
        self._replace(self.project, top, found)
        self.model.changes.append(Replaced(top, found))

    def _replace(self, path: Path, top: int, found: dict[int, Inode]) -> None:
        entries = {
            os.fsencode(child.name): self._adopt(child, found)
            for child in path.iterdir()
            if not os.fsencode(child.name).endswith(_LEFT_OUT)
        }
        found[top] = Directory(entries, stat.S_IMODE(path.stat().st_mode))

    def _adopt(self, path: Path, into: dict[int, Inode]) -> int:
        status = path.lstat()
        key = (status.st_dev, status.st_ino)
        if status.st_nlink > 1 and self._numbers.get(key) in into:
            return self._numbers[key]
        number = self.new_number(status)
        if stat.S_ISDIR(status.st_mode):
            self._replace(path, number, into)
        elif stat.S_ISLNK(status.st_mode):
            into[number] = Link(os.fsencode(os.readlink(path)))
        else:
            into[number] = File(path.read_bytes(), stat.S_IMODE(status.st_mode))
        return number

    def new_number(self, status: os.stat_result) -> int:
        self._next += 1
        self._numbers[status.st_dev, status.st_ino] = self._next
        return self._next

    def number(self, status: os.stat_result) -> int | None:
        return self._numbers.get((status.st_dev, status.st_ino))

    def forget(self, status: os.stat_result) -> None:
        """The inode is gone, and its number of the real disk may be given to another."""
        if status.st_nlink <= 1 or stat.S_ISDIR(status.st_mode):
            self._numbers.pop((status.st_dev, status.st_ino), None)

    def below(self, top: int) -> frozenset[int]:
        """Everything that is or was reachable from a directory."""
        children: dict[int, set[int]] = {}
        for inodes in (self.model.base, *self._replacements()):
            for number, inode in inodes.items():
                if isinstance(inode, Directory):
                    children.setdefault(number, set()).update(inode.entries.values())
        for change in self.model.changes:
            if isinstance(change, Names):
                for directory, _, named in change.changes:
                    children.setdefault(directory, set()).update(() if named is None else [named])
        found: set[int] = set()
        pending = [top]
        while pending:
            at = pending.pop()
            if at not in found:
                found.add(at)
                pending += children.get(at, ())
        return frozenset(found)

    def _replacements(self) -> list[dict[int, Inode]]:
        return [c.inodes for c in self.model.changes if isinstance(c, Replaced)]

    def call(self) -> None:
        """Every call of the port passes here, and stops here once the process is dead."""
        self.calls += 1
        if self.dead or self.calls == self.die_at:
            self.dead = True
            raise Killed

    def reborn(self, die_at: int = 0) -> None:
        """A new process; `die_at` is the call of the port at which it ends, if at any."""
        self.dead, self.calls, self.die_at = False, 0, die_at


class _RecordedPort:
    """The file system port; what changes nothing goes straight to the real one."""

    def __init__(self, disk: RecordedDisk) -> None:
        self._disk = disk
        self._real = LocalFilesystem()
        self._open: dict[int, tuple[int, bool]] = {}

    def __getattr__(self, member: str) -> Any:
        real = getattr(self._real, member)

        def passed(*arguments: Any, **options: Any) -> Any:
            self._disk.call()
            return real(*arguments, **options)

        return passed

    def _add(self, *changes: Any) -> None:
        self._disk.model.changes += changes

    def _directory(self, path: bytes, dir_fd: int | None) -> tuple[int, bytes]:
        above, _, name = path.rpartition(b"/")
        status = os.stat(above) if above else os.fstat(cast("int", dir_fd))
        number = self._disk.number(status)
        assert number is not None, path
        return number, name

    def _status(self, path: bytes, dir_fd: int | None) -> os.stat_result | None:
        try:
            return os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _number(self, path: bytes, dir_fd: int | None) -> int:
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        number = self._disk.number(status)
        assert number is not None, path
        return number

    def open(self, path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        self._disk.call()
        before = self._status(path, dir_fd)
        fd = os.open(path, flags, mode, dir_fd=dir_fd)
        status = os.fstat(fd)
        if before is None:
            number = self._disk.new_number(status)
            self._add(Born(number, File(b"", stat.S_IMODE(status.st_mode))))
            self._add(Names(((*self._directory(path, dir_fd), number),)))
        self._open[fd] = (self._disk.number(status) or 0, bool(flags & os.O_APPEND))
        return fd

    def close(self, fd: int) -> None:
        """Also for the dead, whose descriptors end with them."""
        self._open.pop(fd, None)
        os.close(fd)
        self._disk.call()

    def write(self, fd: int, data: bytes) -> int:
        self._disk.call()
        number, append = self._open[fd]
        offset = os.fstat(fd).st_size if append else os.lseek(fd, 0, os.SEEK_CUR)
        done = os.write(fd, data)
        self._add(Written(number, offset, bytes(data[:done])))
        return done

    def ftruncate(self, fd: int, length: int) -> None:
        self._disk.call()
        os.ftruncate(fd, length)
        self._add(Resized(self._open[fd][0], length))

    def fsync(self, fd: int) -> None:
        self._disk.call()
        self._add(Synced(self._open[fd][0]))

    def sync_all(self, fd: int) -> None:
        """Only the workspace's own disk, as if the store were on another one."""
        self._disk.call()
        top = self._disk.tops[self._disk.project]
        self._add(Synced(top, self._disk.below(top)))

    def fchmod(self, fd: int, mode: int) -> None:
        self._disk.call()
        os.fchmod(fd, mode)
        self._add(Moded(self._open[fd][0], mode))

    def set_mode(self, name: bytes, mode: int, *, dir_fd: int) -> None:
        self._disk.call()
        self._real.set_mode(name, mode, dir_fd=dir_fd)
        self._add(Moded(self._number(name, dir_fd), mode))

    def mkdir(self, path: bytes, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._disk.call()
        os.mkdir(path, mode, dir_fd=dir_fd)
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        self._born(path, dir_fd, status, Directory({}, stat.S_IMODE(status.st_mode)))

    def symlink(self, target: bytes, path: bytes, *, dir_fd: int | None = None) -> None:
        self._disk.call()
        os.symlink(target, path, dir_fd=dir_fd)
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        self._born(path, dir_fd, status, Link(target))

    def _born(self, path: bytes, dir_fd: int | None, status: os.stat_result, inode: Inode) -> None:
        number = self._disk.new_number(status)
        self._add(Born(number, inode), Names(((*self._directory(path, dir_fd), number),)))

    def unlink(self, path: bytes, *, dir_fd: int | None = None) -> None:
        self._disk.call()
        status = self._status(path, dir_fd)
        os.unlink(path, dir_fd=dir_fd)
        self._gone(path, dir_fd, status)

    def rmdir(self, path: bytes, *, dir_fd: int | None = None) -> None:
        self._disk.call()
        status = self._status(path, dir_fd)
        os.rmdir(path, dir_fd=dir_fd)
        self._gone(path, dir_fd, status)

    def _gone(self, path: bytes, dir_fd: int | None, status: os.stat_result | None) -> None:
        self._add(Names(((*self._directory(path, dir_fd), None),)))
        if status is not None:
            self._disk.forget(status)

    def link(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._disk.call()
        number = self._number(source, src_dir_fd)
        self._real.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._add(Names(((*self._directory(target, dst_dir_fd), number),)))

    def rename(
        self,
        source: bytes,
        target: bytes,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
    ) -> None:
        self._disk.call()
        replaced = self._status(target, dst_dir_fd)
        number = self._number(source, src_dir_fd)
        os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._moved(source, target, src_dir_fd, dst_dir_fd, number)
        if replaced is not None:
            self._disk.forget(replaced)

    def rename_new(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._disk.call()
        number = self._number(source, src_dir_fd)
        self._real.rename_new(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        self._moved(source, target, src_dir_fd, dst_dir_fd, number)

    def _moved(
        self, source: bytes, target: bytes, src: int | None, dst: int | None, number: int
    ) -> None:
        gone = (*self._directory(source, src), None)
        there = (*self._directory(target, dst), number)
        self._add(Names((gone, there)))

    def exchange(self, one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        self._disk.call()
        first, second = self._number(one, src_dir_fd), self._number(other, dst_dir_fd)
        self._real.exchange(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        here = (*self._directory(one, src_dir_fd), second)
        there = (*self._directory(other, dst_dir_fd), first)
        self._add(Names((here, there)))


class _RecordedSqlite(apsw.VFS):
    def __init__(self, disk: RecordedDisk) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__(_NAME, self.below, makedefault=True)
        self.disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _RecordedFile(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        if self.disk.dead:
            raise apsw.IOError("the process is dead")
        status = os.stat(name)
        super().xDelete(name, syncdir)
        directory = self.disk.number(os.stat(os.path.dirname(name)))
        assert directory is not None
        changes = self.disk.model.changes
        changes.append(Names(((directory, os.path.basename(name).encode(), None),)))
        if syncdir:
            changes.append(Synced(directory))
        self.disk.forget(status)


class _RecordedFile(apsw.VFSFile):
    def __init__(
        self, vfs: _RecordedSqlite, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        assert name is not None
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk = vfs.disk
        if disk.dead:
            raise apsw.IOError("the process is dead")
        existed = os.path.exists(path)
        super().__init__(vfs.below, name, flags)
        status = os.stat(path)
        directory = disk.number(os.stat(os.path.dirname(path)))
        assert directory is not None
        known = disk.number(status) if existed else None
        # SQLite syncs the directory with the first sync of a log that it may have created.
        log = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        self._sync_too = directory if flags[0] & log else None
        if known is None:
            known = disk.new_number(status)
            disk.model.changes += [
                Born(known, File(b"", stat.S_IMODE(status.st_mode))),
                Names(((directory, os.path.basename(path).encode(), known),)),
            ]
        self._number = known

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._refuse_dead()
        super().xWrite(data, offset)
        self._disk.model.changes.append(Written(self._number, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._refuse_dead()
        super().xTruncate(newsize)
        self._disk.model.changes.append(Resized(self._number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._refuse_dead()
        self._disk.model.changes.append(Synced(self._number))
        if self._sync_too is not None:
            self._disk.model.changes.append(Synced(self._sync_too))
            self._sync_too = None

    def _refuse_dead(self) -> None:
        if self._disk.dead:
            raise apsw.IOError("the process is dead")


@contextmanager
def recorded(disk: RecordedDisk) -> Iterator[None]:
    """Workspaces opened in here are written down while they are used."""
    sqlite = _RecordedSqlite(disk)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                holdfast.bootstrap.workspace, "LocalFilesystem", lambda: _RecordedPort(disk)
            )
            yield
    finally:
        sqlite.unregister()
