"""The staging area in the workspace, for new content and replaced content.

There is one directory per file system that the restore touches, so that every move is a rename.
Until the restore is recorded, everything it replaced or deleted is still here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from holdfast.domain.paths import MARKER_DIRECTORY, join, parent
from holdfast.domain.trees.entries import SETID_BITS, FileEntry, SymlinkEntry
from holdfast.engine.restore.directory_handles import DirectoryHandles, give_to
from holdfast.engine.stored_objects import read_content
from holdfast.ports.filesystem import DIRECTORY_FLAGS, DIRECTORY_MODE, Filesystem, write_all
from holdfast.ports.objects import ObjectReader

RUNS_AS_ANOTHER = "it is a setuid or setgid file, and its owner differs from its directory's"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_HOLE_BYTES = 4096
_SYNC_ONE_BY_ONE = 64
"""Above this many files, one sync of the whole file system is cheaper than one per file."""


class Staging:
    """Numbered slots: slot n holds the new content for step n, later what step n replaced."""

    def __init__(
        self,
        fs: Filesystem,
        objects: ObjectReader,
        handles: DirectoryHandles,
        name: bytes,
        *,
        mode_mask: int,
    ) -> None:
        self._fs = fs
        self._objects = objects
        self._handles = handles
        self._name = name
        self._mode_mask = mode_mask
        self._areas: dict[int, tuple[int, bytes]] = {}
        self._first_names: dict[bytes, tuple[int, bytes]] = {}
        self._root_device = fs.fstat(handles.open(b"")).st_dev
        self._staged: dict[int, list[bytes]] = {}

    @property
    def directories(self) -> list[bytes]:
        """Paths of the staging directories, for the journal."""
        return [path for _, path in self._areas.values()]

    def area(self, dir_fd: int, directory: bytes) -> int:
        """A handle on the staging directory of the file system that `directory` is on."""
        device = self._fs.fstat(dir_fd).st_dev
        if device not in self._areas:
            if device != self._root_device:
                where = self._top_of_device(directory, device)
            else:
                where = self._own_directory()
            path = join(where, self._name)
            self._make_directory(self._handles.open_for_change(where), self._name)
            fd = self._fs.open(self._name, DIRECTORY_FLAGS, dir_fd=self._handles.open(where))
            self._areas[device] = (fd, path)
        return self._areas[device][0]

    def _own_directory(self) -> bytes:
        """`.holdfast`, or the top of the workspace if that name is a file or a link."""
        self._make_directory(self._handles.open_for_change(b""), MARKER_DIRECTORY)
        try:
            self._handles.open(MARKER_DIRECTORY)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            return b""
        return MARKER_DIRECTORY

    def _make_directory(self, dir_fd: int, name: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            self._fs.mkdir(name, DIRECTORY_MODE, dir_fd=dir_fd)

    def _top_of_device(self, directory: bytes, device: int) -> bytes:
        while directory:
            above = parent(directory)
            if self._fs.fstat(self._handles.open(above)).st_dev != device:
                break
            directory = above
        return directory

    def stage(
        self,
        slot: bytes,
        entry: FileEntry | SymlinkEntry,
        area: int,
        owner: tuple[int, int] | None,
        linked_to: tuple[int, bytes] | None,
    ) -> None:
        """Put the content of `entry` into `slot`; as a hard link to `linked_to` if given."""
        if isinstance(entry, SymlinkEntry):
            self._fs.symlink(entry.target, slot, dir_fd=area)
            self._fs.set_times(slot, entry.mtime_ns, dir_fd=area)
            return
        if linked_to is None and entry.link is not None:
            linked_to = self._first_names.get(entry.link)
        if linked_to is not None:
            source_fd, source = linked_to
            self._fs.link(source, slot, src_dir_fd=source_fd, dst_dir_fd=area)
        else:
            self._write(slot, entry, area, owner)
            self._staged.setdefault(area, []).append(slot)
        if entry.link is not None:
            self._first_names.setdefault(entry.link, (area, slot))

    def _write(
        self, slot: bytes, entry: FileEntry, area: int, owner: tuple[int, int] | None
    ) -> None:
        fd = self._fs.open(slot, _CREATE, 0o600, dir_fd=area)
        try:
            for piece in read_content(self._objects, entry):
                if entry.sparse:
                    self._write_with_holes(fd, piece)
                else:
                    write_all(self._fs, fd, piece)
            if entry.sparse:
                self._fs.ftruncate(fd, entry.size)
            mode = entry.mode & self._mode_mask
            if owner is not None and not give_to(self._fs, fd, owner) and mode & SETID_BITS:
                raise PermissionError(errno.EPERM, RUNS_AS_ANOTHER)
            self._fs.fchmod(fd, mode)
        finally:
            self._fs.close(fd)
        self._fs.set_times(slot, entry.mtime_ns, dir_fd=area)

    def _write_with_holes(self, fd: int, data: bytes) -> None:
        nothing = bytes(_HOLE_BYTES)
        for start in range(0, len(data), _HOLE_BYTES):
            block = data[start : start + _HOLE_BYTES]
            if block == nothing[: len(block)]:
                self._fs.lseek(fd, len(block), os.SEEK_CUR)
            else:
                write_all(self._fs, fd, block)

    def sync(self) -> None:
        """Make everything staged durable: content first, then names."""
        for area, slots in self._staged.items():
            if len(slots) > _SYNC_ONE_BY_ONE:
                self._fs.sync_all(area)
            else:
                for slot in slots:
                    sync_file(self._fs, area, slot)
            self._fs.fsync(area)

    def remove(self) -> None:
        """Remove the staging directories with all their content."""
        for fd, path in self._areas.values():
            remove_contents(self._fs, fd)
            self._fs.close(fd)
            self._fs.rmdir(self._name, dir_fd=self._handles.open(parent(path)))
        self._areas.clear()

    def close(self) -> None:
        for fd, _ in self._areas.values():
            self._fs.close(fd)
        self._areas.clear()


def sync_file(fs: Filesystem, dir_fd: int, name: bytes) -> None:
    """If the owner cannot read the file, it is opened for writing, or the file system is synced."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for access in (os.O_RDONLY, os.O_WRONLY):
        try:
            fd = fs.open(name, access | flags, dir_fd=dir_fd)
        except PermissionError:
            continue
        try:
            fs.fsync(fd)
        finally:
            fs.close(fd)
        return
    fs.sync_all(dir_fd)


def remove_contents(fs: Filesystem, fd: int) -> None:
    for name in fs.list_names(fd):
        if stat.S_ISDIR(fs.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            child = fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            try:
                remove_contents(fs, child)
            finally:
                fs.close(child)
            fs.rmdir(name, dir_fd=fd)
        else:
            fs.unlink(name, dir_fd=fd)
