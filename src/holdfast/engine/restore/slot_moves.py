"""Reversible moves between the workspace and staging slots, and the list of completed ones.

    note the way back → move → look at what came out

The reverse move is recorded first, because Ctrl-C may interrupt a move at any moment; it checks
whether the move happened. Only files and links stay in a slot. A directory that replaced a file
meanwhile is moved back immediately.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import stat
from collections.abc import Callable, Iterator
from typing import TypeAlias

from holdfast.domain.outcomes import PathProblem
from holdfast.domain.paths import basename, parent, to_text
from holdfast.domain.restore.plan import Step
from holdfast.domain.sqlite_files import SHARED_MEMORY, database_of
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.wording import Remark
from holdfast.engine.restore.database_files import (
    between_transactions,
    between_transactions_if_possible,
)
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.restore.staging import Staging
from holdfast.ports.filesystem import SET_ASIDE, Filesystem, LiveDatabases
from holdfast.ports.progress import TransferProgress
from holdfast.values.classes import dataclass, field

Inode: TypeAlias = tuple[int, int]


class StepFailed(Exception):
    """One step could not be done; the reason is for people."""

    def __init__(self, path: bytes, reason: str, *, disk_full: bool = False) -> None:
        super().__init__(f"{to_text(path)}: {reason}")
        self.path = path
        self.reason = reason
        self.disk_full = disk_full


@dataclass(frozen=True, slots=True)
class Displaced:
    """Something a step took out of the workspace, lying in a staging slot; `whole` when it is a
    database together with the files beside it."""

    path: bytes
    area: int
    slot: bytes
    expected: FileEntry | SymlinkEntry | None
    whole: bool = False


@dataclass(slots=True)
class RestoreProgress:
    """What has been done so far, and how to roll it back. `in_place` was read back already when it
    was written; `in_use` are databases that others have open."""

    steps: list[Step] = field(default_factory=list)
    displaced: list[Displaced] = field(default_factory=list)
    problems: list[PathProblem] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)
    directories: set[bytes] = field(default_factory=set)
    changed_modes: set[bytes] = field(default_factory=set)
    in_place: set[bytes] = field(default_factory=set)
    in_use: list[bytes] = field(default_factory=list)

    def reports(self, step: Step) -> bool:
        """Whether the step is worth telling of: what programs share that have a database open is
        theirs, and so is the log as long as they have."""
        base = database_of(step.path)
        if base is None or base not in self.in_place:
            return True
        return base not in self.in_use and not step.path.endswith(SHARED_MEMORY)

    @property
    def to_be_read_back(self) -> list[Step]:
        return [step for step in self.steps if step.path not in self.in_place]

    @property
    def compared_files(self) -> int:
        """Files and links that were compared with the checkpoint: there, or gone."""
        steps = [step for step in self.steps if not isinstance(step.after, DirectoryEntry)]
        return len({s.path for s in steps if not isinstance(s.before, DirectoryEntry) or s.after})

    def warnings(self) -> Iterator[str]:
        for path in self.in_use:
            yield Remark(
                f"{to_text(path)} is open in another program: its content is restored, but "
                "SQLite's internal counters differ, so it shows as changed"
            )


@dataclass(frozen=True, slots=True)
class RestoreSite:
    """What the parts of one restore share. `saved` gives what the safety checkpoint has at a path;
    `mode_mask` takes away set-id bits that are not to be restored. `best_effort` turns a failed
    step into a reported one."""

    fs: Filesystem
    databases: LiveDatabases
    handles: DirectoryHandles
    staging: Staging
    saved: Callable[[bytes], Entry | None]
    mode_mask: int
    best_effort: bool
    progress: TransferProgress
    done: RestoreProgress = field(default_factory=RestoreProgress)


class SlotMoves:
    """Records the ways back, and what other programs put where something had to be returned."""

    def __init__(self, site: RestoreSite) -> None:
        self._fs, self._databases, self._handles = site.fs, site.databases, site.handles
        self._done = site.done

    def put_new(self, path: bytes, slot: bytes, dir_fd: int, area: int) -> None:
        """What waits in the slot takes a name that is free; `FileExistsError` when it is not."""
        staged = self._inode(area, slot)
        self._done.undo.append(lambda: self._put_out(path, slot, area, staged))
        self._fs.rename_new(slot, basename(path), src_dir_fd=area, dst_dir_fd=dir_fd)

    def exchange(self, step: Step, slot: bytes, dir_fd: int, area: int) -> None:
        """The content of the slot and the entry at the path are exchanged."""
        path, name, staged = step.path, basename(step.path), self._inode(area, slot)
        self.refuse_directory(path, dir_fd, name)
        self._done.undo.append(lambda: self._put_out(path, slot, area, staged))
        with between_transactions(self._databases, step, dir_fd, name):
            self._exchange(path, slot, dir_fd, area, staged)

    def move_out(self, step: Step, slot: bytes, dir_fd: int, area: int) -> None:
        """The entry at the path goes into the slot, which is free."""
        path, name = step.path, basename(step.path)
        self.refuse_directory(path, dir_fd, name)
        self._done.undo.append(lambda: self._put_out(path, slot, area, None))
        with between_transactions(self._databases, step, dir_fd, name):
            self._take(path, slot, dir_fd, area)

    def move_away(self, path: bytes, slot: bytes, area: int) -> None:
        """For rolling back: what was put in goes back into its slot."""
        dir_fd, name = self._handles.open(parent(path)), basename(path)
        with contextlib.suppress(FileNotFoundError):
            self.refuse_directory(path, dir_fd, name)
            with between_transactions_if_possible(self._databases, dir_fd, name):
                self._take(path, slot, dir_fd, area)

    def refuse_directory(self, path: bytes, dir_fd: int, name: bytes) -> None:
        status = self._fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            raise _directory_at(path)

    def _put_out(self, path: bytes, slot: bytes, area: int, before: Inode | None) -> None:
        """Rolling back: `before` is the content of the slot before the move, if any."""
        now = self._inode(area, slot)
        if now == before:
            return  # the move was not made
        if now is None:
            self.move_away(path, slot, area)
        else:
            self._move_back(path, slot, area)

    def _move_back(self, path: bytes, slot: bytes, area: int) -> None:
        """What was displaced returns; any entry there goes into its slot."""
        dir_fd, name = self._handles.open(parent(path)), basename(path)
        try:
            self._fs.rename_new(slot, name, src_dir_fd=area, dst_dir_fd=dir_fd)
        except FileExistsError:
            self.refuse_directory(path, dir_fd, name)
            with between_transactions_if_possible(self._databases, dir_fd, name):
                self._exchange(path, slot, dir_fd, area, None)

    def _exchange(
        self, path: bytes, slot: bytes, dir_fd: int, area: int, staged: Inode | None
    ) -> None:
        try:
            self._fs.exchange(slot, basename(path), src_dir_fd=area, dst_dir_fd=dir_fd)
        except FileExistsError:  # in steps, and the name was taken between two of them
            self._keep_aside(path, slot + SET_ASIDE, area)
            raise
        self._return_others(path, slot, area, staged)

    def _keep_aside(self, path: bytes, aside: bytes, area: int) -> None:
        if self._inode(area, aside) is None:
            return
        if not return_others(self._fs, self._handles, path, aside, area):
            self._done.displaced.append(Displaced(path, area, aside, None))

    def _take(self, path: bytes, slot: bytes, dir_fd: int, area: int) -> None:
        self._fs.rename(basename(path), slot, src_dir_fd=dir_fd, dst_dir_fd=area)
        self._return_others(path, slot, area, None)

    def _return_others(self, path: bytes, slot: bytes, area: int, staged: Inode | None) -> None:
        """`IsADirectoryError` when what came out had to go back."""
        if not return_others(self._fs, self._handles, path, slot, area):
            return
        if self._inode(area, slot) not in (None, staged):
            self._done.displaced.append(Displaced(path, area, slot, None))
        raise _directory_at(path)

    def _inode(self, area: int, slot: bytes) -> Inode | None:
        try:
            status = self._fs.stat(slot, dir_fd=area, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


def return_others(
    fs: Filesystem, handles: DirectoryHandles, path: bytes, slot: bytes, area: int
) -> bool:
    """Whether the content of the slot was neither a file nor a link and had to go back: to its
    place, where that is gone to the nearest directory, and beside another one that took its
    name."""
    for number in itertools.count():
        if _may_stay(fs, slot, area):
            return number > 0
        name = basename(path) + (b".returned-%d" % number if number else b"")
        dir_fd = _nearest(handles, parent(path))
        try:
            fs.rename_new(slot, name, src_dir_fd=area, dst_dir_fd=dir_fd)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # it has gone again
                if _may_stay(fs, name, dir_fd):
                    fs.exchange(slot, name, src_dir_fd=area, dst_dir_fd=dir_fd)
        else:
            break
    return True


def _may_stay(fs: Filesystem, name: bytes, dir_fd: int) -> bool:
    mode = fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _nearest(handles: DirectoryHandles, directory: bytes) -> int:
    while True:
        try:
            return handles.open(directory)
        except OSError as error:
            if error.errno not in NO_DIRECTORY:
                raise
            directory = parent(directory)


def _directory_at(path: bytes) -> IsADirectoryError:
    return IsADirectoryError(errno.EISDIR, "a directory appeared in its place", path)
