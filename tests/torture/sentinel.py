"""What lies around a workspace and must not change, and where every call of a restore leads.

A `Sentinel` remembers all that the kernel tells of each path: a write, a link, a change of mode or
owner, even one that was taken back, shows in the change time or the number of links. A `Trace`
looks at each call that changes something, at the moment of the call: the directory handle it is
given is asked for its path, so a call that would leave the workspace is seen although it fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.watched_filesystem import Call

_NAMED = ("mkdir", "rmdir", "unlink", "symlink", "set_mode", "set_times")
_MOVED = ("link", "rename", "rename_new", "exchange")
_HANDLED = ("write", "ftruncate", "fchmod", "fchown")
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Sentinel:
    """A picture of some trees that nobody has a reason to touch, and of the names beside them."""

    def __init__(self, *roots: Path, beside: Path | None = None) -> None:
        self._roots = roots
        self._beside = beside
        self._before = self._look()

    def _look(self) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for root in self._roots:
            for directory, subdirectories, files in os.walk(root):
                for path in (directory, *(os.path.join(directory, f) for f in files)):
                    found[path] = _facts(path)
                links = [os.path.join(directory, d) for d in subdirectories]
                found |= {path: _facts(path) for path in links if os.path.islink(path)}
        if self._beside is not None:
            found[str(self._beside)] = tuple(sorted(os.listdir(self._beside)))
        return found

    def changes(self) -> list[str]:
        """What is not as it was, for people."""
        now = self._look()
        return [
            f"{path}: {self._before.get(path)} became {now.get(path)}"
            for path in sorted(self._before.keys() | now.keys())
            if self._before.get(path) != now.get(path)
        ]


def _facts(path: str) -> tuple[Any, ...]:
    status = os.lstat(path)
    content: bytes | str = b""
    if os.path.islink(path):
        content = os.readlink(path)
    elif os.path.isfile(path):
        content = Path(path).read_bytes()
    return (
        oct(status.st_mode),
        status.st_ino,
        status.st_nlink,
        (status.st_uid, status.st_gid),
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        content,
    )


class Trace:
    """Every path that a call would change; `outside` are those that lie in none of `allowed`."""

    def __init__(self, *allowed: Path) -> None:
        self._allowed = [os.fsencode(path) for path in allowed]
        self.touched = 0
        self.outside: list[str] = []

    def look(self, call: Call) -> None:
        """To be called before each call of the port."""
        for path in _changed_by(call):
            self.touched += 1
            if not any(path == root or path.startswith(root + b"/") for root in self._allowed):
                self.outside.append(f"{call.member} {os.fsdecode(path)}")


def _changed_by(call: Call) -> Iterable[bytes]:
    arguments, options = call.arguments, call.options
    if call.member == "open" and arguments[1] & _CHANGING:
        follows = not arguments[1] & os.O_NOFOLLOW
        yield _place(arguments[0], options.get("dir_fd"), follows=follows)
    elif call.member in _NAMED:
        # The first argument of a link is what it says, which is nobody's path yet.
        yield _place(arguments[call.member == "symlink"], options.get("dir_fd"))
    elif call.member in _MOVED:
        yield _place(arguments[0], options.get("src_dir_fd"))
        yield _place(arguments[1], options.get("dst_dir_fd"))
    elif call.member in _HANDLED:
        yield _of_handle(arguments[0])


def _place(path: bytes, dir_fd: int | None, *, follows: bool = False) -> bytes:
    """Where the kernel would look now: links in the directory part are followed, as it does. The
    path of a handle has none, whatever has come to stand there since."""
    directory, name = os.path.split(path)
    if dir_fd is not None:
        directory = os.path.join(_of_handle(dir_fd), directory) if directory else _of_handle(dir_fd)
    if dir_fd is None or os.path.dirname(path):
        directory = os.path.realpath(directory)
    whole = os.path.join(directory, name)
    return os.path.realpath(whole) if follows else whole


def _of_handle(fd: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % fd)
