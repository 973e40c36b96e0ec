"""Whatever a program can do to a tree, from outside and through names it knows.

What cannot be done to the tree as it is, is not done: callers draw paths at random. Nothing here
opens a named pipe.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class TreeActions:
    """On the tree at `root`; `outside` is a directory on the same file system, not in the tree."""

    def __init__(self, root: Path, outside: Path) -> None:
        self._root = os.fsencode(root)
        self._kept = os.fsencode(outside / "kept")

    def at(self, path: bytes) -> bytes:
        return os.path.join(self._root, path)

    def write(self, path: bytes, content: bytes, *, append: bool = False) -> None:
        self._try(lambda: os.makedirs(os.path.dirname(self.at(path)), exist_ok=True))
        if not self._is_special(path):
            self._try(lambda: _write(self.at(path), content, "ab" if append else "wb"))

    def rewrite_behind_the_times(self, path: bytes, content: bytes) -> None:
        """In place, with the modification time that it had."""
        place = self.at(path)
        if self._is_plain(path):
            before = os.lstat(place)
            self._try(lambda: _write(place, content, "r+b"))
            os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))

    def put_another(self, path: bytes, content: bytes) -> None:
        """A new file in place of one, as editors write, with the modification time it had."""
        place, beside = self.at(path), self.at(path) + b".new"
        if self._is_plain(path):
            before = os.lstat(place)
            self._try(lambda: _write(beside, content, "xb"))
            self._try(lambda: os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns)))
            self._try(lambda: os.replace(beside, place))

    def move(self, source: bytes, other: bytes) -> None:
        self._try(lambda: os.rename(self.at(source), self.at(other)))

    def swap(self, one: bytes, other: bytes) -> None:
        """Each in the place of the other, all times of what is in them as they were."""
        aside = self._kept + b"-aside"
        self._try(lambda: os.rename(self.at(one), aside))
        self._try(lambda: os.rename(self.at(other), self.at(one)))
        self._try(lambda: os.rename(aside, self.at(other)))
        self._try(lambda: os.rename(aside, self.at(one)))

    def move_out(self, path: bytes) -> None:
        self._try(lambda: os.rename(self.at(path), self._kept))

    def move_in(self, path: bytes) -> None:
        self._try(lambda: os.rename(self._kept, self.at(path)))

    def change_outside(self, name: bytes, content: bytes) -> None:
        """In the directory that was moved out."""
        place = self._kept + b"/" + name
        if not os.path.lexists(place) or stat.S_ISREG(os.lstat(place).st_mode):
            self._try(lambda: _write(place, content, "wb"))

    def remove(self, path: bytes) -> None:
        place = self.at(path)
        if os.path.isdir(place) and not os.path.islink(place):
            self._try(lambda: shutil.rmtree(place))
        else:
            self._try(lambda: os.unlink(place))

    def change_mode(self, path: bytes, mode: int) -> None:
        place = self.at(path)
        if os.path.isdir(place):
            mode |= 0o700
        if not os.path.islink(place):
            self._try(lambda: os.chmod(place, mode))

    def set_time(self, path: bytes, time_ns: int) -> None:
        self._try(lambda: os.utime(self.at(path), ns=(time_ns, time_ns), follow_symlinks=False))

    def set_attribute(self, path: bytes) -> None:
        if self._is_plain(path):
            self._try(lambda: os.setxattr(self.at(path), "user.note", b"x"))

    def symlink(self, path: bytes, target: bytes) -> None:
        self._try(lambda: os.symlink(target, self.at(path)))

    def hard_link(self, path: bytes, other: bytes) -> None:
        self._try(lambda: os.link(self.at(other), self.at(path), follow_symlinks=False))

    def hard_link_outside(self, path: bytes, name: bytes) -> None:
        self._try(lambda: os.link(self.at(path), self._kept + b"-" + name, follow_symlinks=False))

    def touch(self, path: bytes) -> None:
        """With the times it has: only that something happened can be seen of it."""
        if self._is_plain(path):
            now = os.lstat(self.at(path))
            self._try(lambda: os.utime(self.at(path), ns=(now.st_atime_ns, now.st_mtime_ns)))

    def make_directory(self, path: bytes) -> None:
        self._try(lambda: os.makedirs(self.at(path)))

    def make_pipe(self, path: bytes) -> None:
        self._try(lambda: os.mkfifo(self.at(path)))

    def _is_plain(self, path: bytes) -> bool:
        place = self.at(path)
        return os.path.lexists(place) and stat.S_ISREG(os.lstat(place).st_mode)

    def _is_special(self, path: bytes) -> bool:
        """A pipe, or a link that may lead to one."""
        try:
            mode = os.stat(self.at(path)).st_mode
        except OSError:
            return False
        return not stat.S_ISREG(mode)

    @staticmethod
    def _try(action: Callable[[], object]) -> None:
        with suppress(OSError, shutil.Error):
            action()


def _write(place: bytes, content: bytes, how: str) -> None:
    with open(place, how) as file:
        file.write(content)
