"""Walks named paths anywhere on the machine, never following a link.

    each name: enter its directory name by name → the entry there, and everything below it

A directory is captured as far as it fits; other paths are left out, each with its reason. Built-in
ignore rules apply here too, so that the space is used for files that cannot be regenerated. Other
file systems, Holdfast's own stores and the workspace itself are not entered.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.components.files import DIRECTORY_FLAGS, directory_identity, entered
from holdfast.domain.external_paths import MEMORY_DISK, UnresolvedPath, require_user_path
from holdfast.domain.ignore.defaults import DEFAULT_RULES
from holdfast.domain.ignore.rules import RuleStack
from holdfast.domain.paths import STAGING_PREFIX, ancestors, to_text
from holdfast.domain.wording import printable

MOST_LOOKS = 10_000
"""Files and directories in total per capture, because each later checkpoint visits them again."""
LARGEST_FILE_BYTES = 100_000_000
MOST_BYTES = 512_000_000
"""In total per capture: a few seconds of reading, once."""
BUILT_IN = "it can be regenerated"
_BUILT_IN = RuleStack.of(DEFAULT_RULES)
_NO_WAY = "its parent is a link or not a directory"
_LINKED = (errno.ELOOP, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry at a path; without a status, there is none. `directory_owner` is the owner of its
    directory, None if that is missing too."""

    path: bytes
    status: os.stat_result | None
    directory_owner: int | None
    target: bytes | None = None

    @property
    def is_directory(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def identity(self) -> tuple[int, ...]:
        """Changes whenever the entry is changed or replaced."""
        s = self.status
        if s is None:
            return ()
        return s.st_dev, s.st_ino, s.st_mode, s.st_uid, s.st_size, s.st_mtime_ns, s.st_ctime_ns


@dataclass(slots=True)
class WalkResult:
    """Everything found, by path; skipped paths with their reasons; and directories that were not
    listed completely."""

    entries: dict[bytes, Entry] = field(default_factory=dict)
    left_out: dict[bytes, str] = field(default_factory=dict)
    cut: set[bytes] = field(default_factory=set)


class LeftOut(Exception):
    """A named path that is not saved, with the reason."""


def display_path(path: bytes) -> str:
    """A path for display, on one line."""
    return printable(to_text(path))


@contextmanager
def opened_directory(path: bytes) -> Iterator[int]:
    """A handle on an absolute directory, entered name by name; OSError at a link."""
    with entered(os.open(b"/", DIRECTORY_FLAGS), filter(None, path.split(b"/"))) as fd:
        yield fd


def look_at(path: bytes) -> Entry:
    """One path, without the entries below it; `LeftOut` behind a link, and for shared memory."""
    directory, _, name = path.rpartition(b"/")
    try:
        with opened_directory(directory) as dir_fd:
            owner = os.fstat(dir_fd).st_uid
            try:
                status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
            except FileNotFoundError:
                return Entry(path, None, owner)
            if os.fsdecode(directory) == MEMORY_DISK and not stat.S_ISDIR(status.st_mode):
                raise LeftOut("it may be the shared memory of a running program")
            target = None
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(name, dir_fd=dir_fd)
            return Entry(path, status, owner, target)
    except FileNotFoundError:
        return Entry(path, None, None)
    except OSError as error:
        if error.errno in _LINKED:
            raise LeftOut(_NO_WAY) from None
        raise LeftOut(str(error.strerror)) from None


class PathWalk:
    """A bounded walk over all names, newest first; `forbidden` directories are not entered."""

    def __init__(self, forbidden: Sequence[bytes]) -> None:
        self._forbidden = {i for path in forbidden if (i := directory_identity(path)) is not None}
        self._looks = 0

    def at(self, names: Sequence[bytes]) -> WalkResult:
        look = WalkResult()
        for name in reversed(names):
            if name in look.entries:
                continue
            try:
                self._named(name, look)
            except LeftOut as reason:
                look.left_out[name] = str(reason)
        for path in [path for path, reason in look.left_out.items() if reason == _NO_WAY]:
            if any(_is_no_directory(look.entries.get(above)) for above in ancestors(path)):
                # The entry that replaced its directory is saved, so nothing is at this path.
                del look.left_out[path]
                look.entries[path] = Entry(path, None, None)
        return look

    def _named(self, name: bytes, look: WalkResult) -> None:
        try:
            require_user_path(to_text(name))
        except UnresolvedPath as error:
            raise LeftOut(str(error)) from None
        self._count()
        entry = look_at(name)
        if entry.status is not None:
            if entry.is_directory:
                self._below(entry, name, look)
            else:
                _require_file(entry)
        look.entries[name] = entry

    def _below(self, directory: Entry, name: bytes, look: WalkResult) -> None:
        """Everything in a directory; the caller adds the directory's own entry."""
        assert directory.status is not None
        if (directory.status.st_dev, directory.status.st_ino) in self._forbidden:
            raise LeftOut(f"{display_path(directory.path)} is already saved, or is Holdfast's own")
        try:
            with opened_directory(directory.path) as fd:
                owner = os.fstat(fd).st_uid
                names = sorted(os.fsencode(one) for one in os.listdir(fd))
                found = [self._entry(fd, directory.path + b"/" + one, owner, look) for one in names]
        except OSError as error:
            raise LeftOut(f"{display_path(directory.path)}: {error.strerror}") from None
        for entry in found:
            if entry is None or entry.path in look.entries:
                continue
            try:
                self._require_wanted(entry, directory, name)
                if entry.is_directory:
                    self._below(entry, name, look)
            except LeftOut as reason:
                look.left_out[entry.path] = str(reason)
                continue
            look.entries[entry.path] = entry

    def _entry(self, fd: int, path: bytes, owner: int, look: WalkResult) -> Entry | None:
        name = path.rpartition(b"/")[2]
        if name.startswith(STAGING_PREFIX):
            return None
        if path not in look.entries:
            try:
                self._count()
            except LeftOut as reason:
                directory = path.rpartition(b"/")[0]
                look.left_out[directory] = f"only part of it is saved: {reason}"
                look.cut.add(directory)
                return None
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
        except FileNotFoundError:
            return None
        return Entry(path, status, owner, target)

    def _require_wanted(self, entry: Entry, directory: Entry, name: bytes) -> None:
        assert entry.status is not None
        assert directory.status is not None
        if entry.status.st_dev != directory.status.st_dev:
            raise LeftOut("it is on another file system")
        rule = _BUILT_IN.decide(entry.path[len(name) + 1 :], entry.is_directory)
        if rule is not None:
            raise LeftOut(f"{BUILT_IN} ({rule.describe()})")
        if not entry.is_directory:
            _require_file(entry)

    def _count(self) -> None:
        if self._looks >= MOST_LOOKS:
            raise LeftOut(f"more than {MOST_LOOKS:,} files and directories were listed")
        self._looks += 1


def _is_no_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.status is not None and not entry.is_directory


def _require_file(entry: Entry) -> None:
    assert entry.status is not None
    if entry.target is None and not stat.S_ISREG(entry.status.st_mode):
        raise LeftOut("it is not a regular file")
    if entry.status.st_size > LARGEST_FILE_BYTES:
        raise LeftOut(f"it has {entry.status.st_size:,} bytes")
