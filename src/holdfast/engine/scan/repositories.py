"""Git repositories in a workspace, without running git: their kind, and ignored files they track.

    .git is a directory with HEAD and objects     → a repository
    .git is a file that names one with HEAD       → a submodule, or a repository kept elsewhere
    the same, and that one has a `commondir`      → a linked worktree

A worktree that its repository has pruned (`git worktree prune`) is a plain directory, as it is for
git.

Files that git tracks, and files that a tool named, are captured although a rule ignores them:

    a directory with `.git` is entered → its index lists the tracked files in it and below
    a rule ignores a path              → is it one of these, or a directory above one?

An index is parsed if it changed, and only once something is ignored. Guarantee: only the path
itself is an exception. Other files in an ignored directory stay left out.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable
from enum import Enum

from holdfast.domain.git.index import (
    NOTHING_TRACKED,
    TrackedNames,
    UnknownIndex,
    read_tracked_names,
)
from holdfast.domain.paths import GIT_DIRECTORY, ancestors, join, parent
from holdfast.engine.scan.stable_read import read_whole
from holdfast.ports.filesystem import FILE_FLAGS, Filesystem

_LINK_BYTES = 4096
_LEADS_TO = b"gitdir:"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST_BYTES = 1 << 29
_LARGEST_LINK_BYTES = 1 << 14
_GITDIR = b"gitdir: "
_GONE = (errno.ENOENT, errno.ENOTDIR)
_MOST_PARSED = 8
_MOST_CHANGED = 2_000
"""Up to this many names, only the directories that contain them are visited."""
_parsed: dict[tuple[bytes, int, int, int, int, int], TrackedNames] = {}
"""Parsed indexes by their stat numbers, for the next scan in this process."""


class RepositoryKind(Enum):
    CLONE = "a repository"
    SUBMODULE = "a submodule"
    LINKED_WORKTREE = "a linked worktree"


def repository_kind(
    fs: Filesystem, fd: int, names: Collection[bytes] | None = None
) -> RepositoryKind | None:
    """The kind of the open directory's repository; `names` are its entries, if known."""
    if names is not None and GIT_DIRECTORY not in names:
        return None
    try:
        status = fs.stat(GIT_DIRECTORY, dir_fd=fd, follow_symlinks=True)
        if stat.S_ISDIR(status.st_mode):
            whole = _has(fs, fd, GIT_DIRECTORY, b"HEAD") and _has(fs, fd, GIT_DIRECTORY, b"objects")
            return RepositoryKind.CLONE if whole else None
        leads_to = _git_file_target(fs, fd) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None
    if leads_to is None or not _has(fs, fd, leads_to, b"HEAD"):
        return None
    linked = _has(fs, fd, leads_to, b"commondir")
    return RepositoryKind.LINKED_WORKTREE if linked else RepositoryKind.SUBMODULE


def _has(fs: Filesystem, fd: int, directory: bytes, name: bytes) -> bool:
    try:
        fs.stat(os.path.join(directory, name), dir_fd=fd, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return True


def _git_file_target(fs: Filesystem, fd: int) -> bytes | None:
    """The path in a `.git` file; relative to the directory, unless absolute."""
    file_fd = fs.open(GIT_DIRECTORY, FILE_FLAGS, dir_fd=fd)
    try:
        text = fs.read(file_fd, _LINK_BYTES)
    finally:
        fs.close(file_fd)
    if not text.startswith(_LEADS_TO):
        return None
    return text[len(_LEADS_TO) :].strip(b" \r\n") or None


class Repository:
    """A repository whose files are in the workspace. `directory` is its top as a workspace path. If
    the top is above the workspace, `directory` is empty and there is a `prefix`."""

    def __init__(self, fs: Filesystem, git: bytes, directory: bytes, prefix: bytes) -> None:
        self._fs = fs
        self.git = git
        self.directory = directory
        self.prefix = prefix
        self.settled: Callable[[int], bool] = _never
        self._tracked: TrackedNames | None = None
        self.trouble: str | None = None

    @property
    def tracked(self) -> TrackedNames:
        if self._tracked is None:
            try:
                self._tracked = self._read()
            except OSError as error:
                self._tracked, self.trouble = NOTHING_TRACKED, error.strerror or str(error)
            except UnknownIndex as error:
                self._tracked, self.trouble = NOTHING_TRACKED, str(error)
        return self._tracked

    def own(self, path: bytes) -> bytes:
        """A path below this directory, as the repository names it."""
        return self.prefix + (path[len(self.directory) + 1 :] if self.directory else path)

    def of_workspace(self, name: bytes) -> bytes | None:
        if not name.startswith(self.prefix):
            return None
        return join(self.directory, name[len(self.prefix) :])

    def _read(self) -> TrackedNames:
        place = self._place()
        if place is None:
            return NOTHING_TRACKED
        tracked = self._names(place + b"/index")
        if tracked.shared is not None:
            tracked = tracked.joined(self._names(place + b"/" + tracked.shared, needed=True))
        return tracked

    def _place(self) -> bytes | None:
        """The index's directory; in a worktree or submodule, `.git` is a file that names it."""
        try:
            status = self._fs.stat(self.git, follow_symlinks=True)
            if stat.S_ISDIR(status.st_mode):
                return self.git
            if not stat.S_ISREG(status.st_mode):
                return None
            said = self._whole(self.git, _LARGEST_LINK_BYTES)[0].rstrip(b"\r\n")
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        if not said.startswith(_GITDIR) or b"\0" in said:
            return None
        return os.path.join(parent(self.git), said.removeprefix(_GITDIR))

    def _names(self, path: bytes, *, needed: bool = False) -> TrackedNames:
        try:
            status = self._fs.stat(path, follow_symlinks=True)
            key = _key(path, status)
            if key in _parsed:
                return _parsed[key]
            data, status = self._whole(path, _LARGEST_BYTES)
        except OSError as error:
            if error.errno in _GONE and not needed:
                return NOTHING_TRACKED  # nothing was ever added
            raise
        names = read_tracked_names(data)
        if self.settled(status.st_ctime_ns):
            while len(_parsed) >= _MOST_PARSED:
                _parsed.pop(next(iter(_parsed)), None)
            _parsed[_key(path, status)] = names
        return names

    def _whole(self, path: bytes, most: int) -> tuple[bytes, os.stat_result]:
        fd = self._fs.open(path, _FLAGS)
        try:
            status = self._fs.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise UnknownIndex("it is not a regular file")
            if status.st_size > most:
                raise UnknownIndex(f"it has {status.st_size:,} bytes")
            return read_whole(self._fs, fd, status.st_size), status
        finally:
            self._fs.close(fd)


class ExemptPaths:
    """The exceptions of one scan. Each repository is found before the files in it."""

    def __init__(self, fs: Filesystem, workspace: bytes, named: Iterable[bytes] = ()) -> None:
        self._fs = fs
        self._workspace = workspace
        self.named = frozenset(named)
        self._above_named = {above for path in self.named for above in ancestors(path)}
        self.repositories: dict[bytes, Repository] = {}

    def enter(
        self, directory: bytes, names: Iterable[bytes], settled: Callable[[int], bool]
    ) -> None:
        """Called for each surveyed directory, with its entries."""
        found = None
        if GIT_DIRECTORY in names:
            found = Repository(self._fs, self._place(directory), directory, b"")
        elif not directory:
            found = self._above_workspace()
        known = self.repositories.get(directory)
        if found is None:
            self.repositories.pop(directory, None)
        elif known is None or known.git != found.git:
            found.settled = settled
            self.repositories[directory] = found

    def trouble(self, directory: bytes) -> str | None:
        """Why the tracked files of a directory's repository are unknown, if they were needed."""
        repository = self.repositories.get(directory)
        return None if repository is None else repository.trouble

    def holds(self, path: bytes, is_dir: bool) -> bool:
        """Whether an ignored path is captured anyway; a directory only if it is a submodule."""
        if not is_dir and path in self.named:
            return True
        for repository, own in self._of(path):
            tracked = repository.tracked
            if own in tracked.links if is_dir else tracked.holds(own):
                return True
        return False

    def holds_below(self, directory: bytes) -> bool:
        if directory in self._above_named:
            return True
        return any(repository.tracked.holds_below(own) for repository, own in self._of(directory))

    def concerns(self, path: bytes) -> bool:
        """Whether a left-out path, of any type, is now to be captured or entered."""
        if path in self.named or path in self._above_named:
            return True
        return any(
            repository.tracked.holds(own) or repository.tracked.holds_below(own)
            for repository, own in self._of(path)
        )

    def changed_since(
        self, before: ExemptPaths, settled: Callable[[int], bool]
    ) -> set[bytes] | None:
        """Paths that this scan and an earlier one decide differently; None if there are too many.
        The repositories are those that the earlier scan found."""
        changed = set(self.named ^ before.named)
        for directory, known in before.repositories.items():
            now = Repository(self._fs, known.git, directory, known.prefix)
            now.settled = settled
            self.repositories[directory] = now
            if now.tracked.names == known.tracked.names:
                continue
            differing = set(now.tracked.names) ^ set(known.tracked.names)
            changed.update(path for n in differing if (path := now.of_workspace(n)) is not None)
        return changed if len(changed) <= _MOST_CHANGED else None

    def _of(self, path: bytes) -> list[tuple[Repository, bytes]]:
        """The repositories that contain a path, each with its own name for it."""
        found = []
        for directory in (*ancestors(path), b""):
            repository = self.repositories.get(directory)
            if repository is not None:
                found.append((repository, repository.own(path)))
        return found

    def _above_workspace(self) -> Repository | None:
        """The repository that contains the workspace as a subdirectory."""
        top, prefix = self._workspace, b""
        while b"/" in top.rstrip(b"/"):
            top, _, name = top.rstrip(b"/").rpartition(b"/")
            prefix = name + b"/" + prefix
            git = top + b"/" + GIT_DIRECTORY
            try:
                self._fs.stat(git, follow_symlinks=True)
            except OSError:
                continue
            return Repository(self._fs, git, b"", prefix)
        return None

    def _place(self, directory: bytes) -> bytes:
        return b"/".join(part for part in (self._workspace, directory, GIT_DIRECTORY) if part)


def _key(path: bytes, status: os.stat_result) -> tuple[bytes, int, int, int, int, int]:
    s = status
    return path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns


def _never(ctime_ns: int) -> bool:
    return False
