"""Finds files by patterns, never following a link.

    from each root, name by name: enter directories that a pattern may lead through, by handle
    → report everything that a pattern names, and everything below, with its status

If a pattern names the next step, the directory is not listed. An unreadable path is a problem with
a reason, never a silent omission. Git directories and Holdfast stores are skipped whatever a
pattern says.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.components.files import DIRECTORY_FLAGS, directory_identity, entered
from holdfast.domain.agent_patterns import Pattern, Root
from holdfast.domain.paths import GIT_DIRECTORY, STAGING_PREFIX, to_text
from holdfast.domain.wording import printable

MOST_ENTRIES = 50_000
_DEEPEST = 100

Path = tuple[bytes, ...]
Place = tuple[Root, Path]


@dataclass(frozen=True, slots=True)
class Entry:
    """A regular file, link or directory that a pattern matches."""

    root: Root
    path: Path
    status: os.stat_result
    target: bytes | None = None

    @property
    def place(self) -> Place:
        return self.root, self.path

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def mode(self) -> int:
        """Without setuid and setgid, which agent memory does not need."""
        return stat.S_IMODE(self.status.st_mode) & 0o1777

    @property
    def identity(self) -> tuple[int, ...]:
        """Changes whenever the entry is changed or replaced."""
        s = self.status
        return s.st_dev, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns


@dataclass(slots=True)
class Walk:
    """Everything found, in order; intentionally skipped paths; and unreadable paths."""

    entries: list[Entry] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Roots:
    """The paths of the three roots on this machine, and the directory of Holdfast's own stores,
    which no walk enters."""

    def __init__(self, workspace: bytes, home: bytes | None, stores: bytes | None) -> None:
        self.forbidden = None if stores is None else directory_identity(stores)
        self._paths: Mapping[Root, bytes | None] = {
            Root.WORKSPACE: workspace,
            Root.HOME: None if home is None else os.path.realpath(home),
            Root.SYSTEM: b"/",
        }

    def absolute(self, place: Place) -> bytes | None:
        """The absolute path of a place; None if its root is unknown."""
        root, path = place
        start = self._paths[root]
        return None if start is None else os.path.join(start, *path)

    def places(self, path: bytes) -> list[Place]:
        """Every place that refers to an absolute path."""
        starts = [(root, start) for root, start in self._paths.items() if start is not None]
        return [
            (root, tuple(path[len(start) :].strip(b"/").split(b"/")))
            for root, start in starts
            if path != start and path.startswith(start.rstrip(b"/") + b"/")
        ]

    def _open(self, root: Root) -> int:
        path = self._paths[root]
        if path is None:
            raise FileNotFoundError("the home directory is unknown")
        # The root itself may be behind links, because the user or the system chose it.
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @contextmanager
    def directory(self, root: Root, path: Path, *, make: bool = False) -> Iterator[int]:
        """A handle on a directory below a root, entered name by name. With `make`, missing
        directories are created, private to the user."""
        start = self._open(root)
        with entered(start, path, _make_directory if make else None) as fd:
            yield fd


def _make_directory(dir_fd: int, name: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=dir_fd)
        os.fsync(dir_fd)


def display_path(root: Root, path: Path) -> str:
    """A place for display, on one line."""
    text = to_text(b"/".join(path))
    start = {Root.WORKSPACE: "", Root.HOME: "~/", Root.SYSTEM: "/"}[root]
    return printable(start + text)


def walk(roots: Roots, patterns: Sequence[Pattern]) -> Walk:
    """A file that patterns reach from two roots is reported once, from the first."""
    found = Walk()
    for root in Root:
        chosen = [pattern for pattern in patterns if pattern.root is root]
        if not chosen:
            continue
        try:
            with roots.directory(root, ()) as fd:
                start = [(pattern, pattern.start()) for pattern in chosen]
                _Walker(found, root, roots.forbidden).enter(fd, (), start)
        except OSError as error:
            found.problems.append(
                f"{display_path(root, ()) or 'the workspace'}: {error.strerror or error}"
            )
    first = {roots.absolute(entry.place): entry for entry in reversed(found.entries)}
    found.entries = sorted(first.values(), key=lambda entry: entry.place)
    return found


_OpenPatterns = list[tuple[Pattern, frozenset[int]]]


class _Walker:
    """The walk of one root."""

    def __init__(self, found: Walk, root: Root, forbidden: tuple[int, int] | None) -> None:
        self._found = found
        self._root = root
        self._forbidden = forbidden
        self._full = False

    def enter(self, fd: int, path: Path, open_patterns: _OpenPatterns) -> None:
        for name in _names(fd, open_patterns):
            if name == GIT_DIRECTORY or name.startswith(STAGING_PREFIX):
                continue
            further = [(p, reached) for p, at in open_patterns if (reached := p.step(at, name))]
            if not further or self._is_full():
                continue
            here = (*path, name)
            try:
                self._look(fd, here, further)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._problem(here, f": {error.strerror}")

    def _is_full(self) -> bool:
        if len(self._found.entries) < MOST_ENTRIES:
            return False
        if not self._full:
            self._full = True
            self._found.problems.append(
                f"agent_state matches more than {MOST_ENTRIES:,} files; the rest is not saved: use "
                "narrower patterns"
            )
        return True

    def _problem(self, path: Path, text: str) -> None:
        self._found.problems.append(display_path(self._root, path) + text)

    def _leave_out(self, path: Path, text: str) -> None:
        self._found.left_out.append(display_path(self._root, path) + text)

    def _look(self, dir_fd: int, path: Path, open_patterns: _OpenPatterns) -> None:
        status = os.stat(path[-1], dir_fd=dir_fd, follow_symlinks=False)
        belongs = any(pattern.is_full(positions) for pattern, positions in open_patterns)
        if stat.S_ISDIR(status.st_mode):
            if belongs:
                self._found.entries.append(Entry(self._root, path, status))
            self._enter_directory(dir_fd, path, status, open_patterns)
        elif stat.S_ISLNK(status.st_mode):
            if belongs:
                target = os.readlink(path[-1], dir_fd=dir_fd)
                self._found.entries.append(Entry(self._root, path, status, target))
            elif any(p.next_names(at) is not None for p, at in open_patterns):
                self._leave_out(
                    path,
                    " is a link, and links are not followed; list its target in agent_state",
                )
        elif belongs and stat.S_ISREG(status.st_mode):
            self._found.entries.append(Entry(self._root, path, status))
        elif belongs:
            self._leave_out(path, " is not a regular file and is not saved")

    def _enter_directory(
        self, dir_fd: int, path: Path, status: os.stat_result, open_patterns: _OpenPatterns
    ) -> None:
        if (status.st_dev, status.st_ino) == self._forbidden:
            self._leave_out(path, " contains Holdfast's own stores and is not saved")
            return
        if len(path) > _DEEPEST:
            self._problem(path, ": too many nested directories")
            return
        below = os.open(path[-1], DIRECTORY_FLAGS, dir_fd=dir_fd)
        try:
            self.enter(below, path, open_patterns)
        finally:
            os.close(below)


def _names(fd: int, open_patterns: _OpenPatterns) -> list[bytes]:
    """The names worth visiting: only those that the patterns name, if they do."""
    wanted: set[bytes] = set()
    for pattern, positions in open_patterns:
        names = pattern.next_names(positions)
        if names is None:
            return sorted(os.fsencode(name) for name in os.listdir(fd))
        wanted |= names
    return sorted(wanted)
