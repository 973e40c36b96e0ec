"""Reversible moves between the workspace and staging slots, and the list of completed ones.

    record the reversal → move → check what came out

The reversal is recorded first, because Ctrl-C may interrupt a move at any moment; it checks whether
the move happened. Only files and links stay in a slot. A directory that replaced a file meanwhile
is moved back immediately.
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
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles, ignoring
from holdfast.engine.restore.staging import Staging
from holdfast.ports.filesystem import SET_ASIDE, Filesystem
from holdfast.ports.live_database import LiveDatabases
from holdfast.ports.progress import TransferProgress
from holdfast.values.classes import dataclass, field

Inode: TypeAlias = tuple[int, int]


class StepFailed(Exception):
    """A step failed, with a reason for the user."""

    def __init__(self, path: bytes, reason: str, *, disk_full: bool = False) -> None:
        super().__init__(f"{to_text(path)}: {reason}")
        self.path = path
        self.reason = reason
        self.disk_full = disk_full


@dataclass(frozen=True, slots=True)
class Displaced:
    """An entry that a step moved out of the workspace into a staging slot; `whole` if it is a
    database including the files beside it."""

    path: bytes
    area: int
    slot: bytes
    expected: FileEntry | SymlinkEntry | None
    whole: bool = False


@dataclass(slots=True)
class RestoreProgress:
    """The completed changes, and how to roll them back. Files in `in_place` were verified when they
    were written; `in_use` are databases that other programs have open."""

    steps: list[Step] = field(default_factory=list)
    displaced: list[Displaced] = field(default_factory=list)
    problems: list[PathProblem] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)
    directories: set[bytes] = field(default_factory=set)
    changed_modes: set[bytes] = field(default_factory=set)
    in_place: set[bytes] = field(default_factory=set)
    in_use: list[bytes] = field(default_factory=list)

    def reports(self, step: Step) -> bool:
        """Whether to report the step. Shared memory belongs to the programs that have the database
        open, and so does the log while they have it open."""
        base = database_of(step.path)
        if base is None or base not in self.in_place:
            return True
        return base not in self.in_use and not step.path.endswith(SHARED_MEMORY)

    @property
    def to_be_read_back(self) -> list[Step]:
        return [step for step in self.steps if step.path not in self.in_place]

    @property
    def compared_files(self) -> int:
        """Files and links that were compared with the checkpoint, present or removed."""
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
    """Shared by the parts of one restore. `saved` gives the safety checkpoint's entry at a path;
    `mode_mask` removes set-id bits that are not to be restored. With `best_effort`, a failed step
    is reported and skipped."""

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
    """Moves entries, and records the reversals and anything displaced by other programs."""

    def __init__(self, site: RestoreSite) -> None:
        self._fs, self._databases, self._handles = site.fs, site.databases, site.handles
        self._done = site.done

    def put_new(self, path: bytes, slot: bytes, dir_fd: int, area: int) -> None:
        """Move the slot's content to a free name; `FileExistsError` if it is not free."""
        staged = self._inode(area, slot)
        self._done.undo.append(lambda: self._put_out(path, slot, area, staged))
        self._fs.rename_new(slot, basename(path), src_dir_fd=area, dst_dir_fd=dir_fd)

    def exchange(self, step: Step, slot: bytes, dir_fd: int, area: int) -> None:
        """Exchange the slot's content and the entry at the path."""
        path, name, staged = step.path, basename(step.path), self._inode(area, slot)
        self.refuse_directory(path, dir_fd, name)
        self._done.undo.append(lambda: self._put_out(path, slot, area, staged))
        with between_transactions(self._databases, step, dir_fd, name):
            self._exchange(path, slot, dir_fd, area, staged)

    def move_out(self, step: Step, slot: bytes, dir_fd: int, area: int) -> None:
        """Move the entry at the path into the slot, which is free."""
        path, name = step.path, basename(step.path)
        self.refuse_directory(path, dir_fd, name)
        self._done.undo.append(lambda: self._put_out(path, slot, area, None))
        with between_transactions(self._databases, step, dir_fd, name):
            self._take(path, slot, dir_fd, area)

    def move_away(self, path: bytes, slot: bytes, area: int) -> None:
        """For rollback: move a restored entry back into its slot, unless it was removed meanwhile,
        perhaps with its directory."""
        with ignoring(*NO_DIRECTORY):
            dir_fd, name = self._handles.open(parent(path)), basename(path)
            self.refuse_directory(path, dir_fd, name)
            with between_transactions_if_possible(self._databases, dir_fd, name):
                self._take(path, slot, dir_fd, area)

    def refuse_directory(self, path: bytes, dir_fd: int, name: bytes) -> None:
        status = self._fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            raise _directory_at(path)

    def _put_out(self, path: bytes, slot: bytes, area: int, before: Inode | None) -> None:
        """For rollback. `before` is the slot's content before the move, if any."""
        now = self._inode(area, slot)
        if now == before:
            return  # the move did not happen
        if now is None:
            self.move_away(path, slot, area)
        else:
            self._move_back(path, slot, area)

    def _move_back(self, path: bytes, slot: bytes, area: int) -> None:
        """Return the displaced entry; any entry there goes into its slot."""
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
        except FileExistsError:  # not atomic here, and the name was taken meanwhile
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
        """`IsADirectoryError` if the displaced entry had to be returned."""
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
    """Return the slot's content if it is neither a file nor a link, and say whether that happened.
    It goes to its path or, if the parent is gone, to the nearest directory. If its name is taken,
    it gets another name."""
    for number in itertools.count():
        if _may_stay(fs, slot, area):
            return number > 0
        name = basename(path) + (b".returned-%d" % number if number else b"")
        dir_fd = _nearest(handles, parent(path))
        try:
            fs.rename_new(slot, name, src_dir_fd=area, dst_dir_fd=dir_fd)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):  # already gone
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
