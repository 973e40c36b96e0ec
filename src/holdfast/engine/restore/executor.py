"""Executes a plan's steps, checking each again and keeping each reversible.

    stage new content → per step: check the destination → swap or move → check what came out

Nothing is unlinked before the restore is recorded: replaced and deleted files move into their
staging slot. Content moved out of the workspace is compared with the plan; unsaved bytes are
reported as a conflict and saved by the caller (RB-6). `undo_all` moves everything back in reverse
order. The reversal of a change is recorded before the change, because it may be interrupted at any
moment.
"""

from __future__ import annotations

import contextlib
import errno

from holdfast.domain.errors import ObjectDamaged, ObjectMissing
from holdfast.domain.outcomes import PathProblem
from holdfast.domain.paths import basename, parent
from holdfast.domain.restore.plan import Step, StepType
from holdfast.domain.trees.entries import (
    MODE_MASK,
    SETID_BITS,
    DirectoryEntry,
    FileEntry,
    SymlinkEntry,
)
from holdfast.engine.restore.database_groups import (
    DatabaseGroup,
    DatabaseWriter,
    groups_of,
)
from holdfast.engine.restore.directory_handles import (
    NO_DIRECTORY,
    OWNER_ALL,
    give_to,
    ignoring,
)
from holdfast.engine.restore.staged_moves import Displaced, RestoreSite, SlotMoves, StepFailed
from holdfast.engine.restore.staging import RUNS_AS_ANOTHER, sync_file
from holdfast.engine.restore.verifier import digest_of_file
from holdfast.engine.stored_objects import unrestorable
from holdfast.engine.vault import FULL
from holdfast.ports.filesystem import DIRECTORY_FLAGS, FILE_FLAGS

_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class Executor:
    """Runs one plan."""

    def __init__(self, site: RestoreSite) -> None:
        self._site, self.done = site, site.done
        self._fs, self._handles, self._staging = site.fs, site.handles, site.staging
        self._unusable: set[int] = set()
        self._late_modes: dict[bytes, int] = {}
        self._moves = SlotMoves(site)
        self._databases = DatabaseWriter(site)

    def stage(self, steps: tuple[Step, ...]) -> None:
        """Write new content into staging; the workspace itself is not touched."""
        planned = {step.path: step.type for step in steps}
        written_bytes = 0
        for number, step in enumerate(steps):
            self._site.progress.advance("writing files", number, len(steps))
            if not step.needs_content:
                continue
            try:
                self._stage_one(number, step, planned)
            except OSError as error:
                self._fail(number, step.path, error)
            except (ObjectMissing, ObjectDamaged) as error:
                if not self._site.best_effort:
                    raise unrestorable(step.path, error) from error
                self._leave_out(number, step.path, error.message)
            written_bytes += step.size_bytes
            self._site.progress.transferred(written_bytes)
        self._site.progress.advance("syncing", 0, None)
        self._staging.sync()

    def _stage_one(self, number: int, step: Step, planned: dict[bytes, StepType]) -> None:
        entry = step.after
        assert isinstance(entry, (FileEntry, SymlinkEntry))
        dir_fd, directory = self._nearest_directory(parent(step.path))
        area = self._staging.area(dir_fd, directory)
        linked_to = self._kept_link(entry, planned)
        owner = self._owner(dir_fd, step, replaces=directory == parent(step.path))
        self._staging.stage(_slot(number), entry, area, owner, linked_to)

    def _kept_link(
        self, entry: FileEntry | SymlinkEntry, planned: dict[bytes, StepType]
    ) -> tuple[int, bytes] | None:
        """Another name of the same file that stays in the workspace, if it has the right mode or
        will get it. With another mode, it is a different file by now."""
        if not isinstance(entry, FileEntry) or entry.link is None:
            return None
        if planned.get(entry.link, StepType.CHMOD) is not StepType.CHMOD:
            return None
        try:
            dir_fd, name = self._handles.open(parent(entry.link)), basename(entry.link)
            mode = self._fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode & MODE_MASK
            same = digest_of_file(self._fs, dir_fd, name) == entry.digest
        except OSError:
            return None
        fits = entry.link in planned or mode == entry.mode & self._site.mode_mask
        return (dir_fd, name) if same and fits else None

    def _nearest_directory(self, path: bytes) -> tuple[int, bytes]:
        """The deepest existing directory on the way to `path`."""
        while path:
            try:
                return self._handles.open(path), path
            except OSError:
                path = parent(path)
        return self._handles.open(b""), b""

    def _owner(self, dir_fd: int, step: Step, *, replaces: bool) -> tuple[int, int] | None:
        """If root restores files, they keep their owner: that of the replaced file, or of the
        directory. A setuid file only gets the directory's owner, because anyone who can write there
        could put another user's file in its place."""
        if not self._fs.may_chown():
            return None
        status = self._fs.fstat(dir_fd)
        if replaces and not _runs_as_owner(step):
            with contextlib.suppress(OSError):
                name = basename(step.path)
                status = self._fs.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        return status.st_uid, status.st_gid

    def apply(self, steps: tuple[Step, ...]) -> None:
        """Apply every step; `StepFailed` unless best effort."""
        groups = groups_of(steps)
        for number, step in enumerate(steps):
            self._site.progress.advance("replacing files", number, len(steps))
            if number in self._unusable:
                continue
            group = groups.get(number)
            try:
                if group is None or not self._apply_group(group, number, step):
                    self._apply_one(number, step)
            except OSError as error:
                begun = group is not None and number == group.first
                self._fail(number, group.base if group and begun else step.path, error)
                self._unusable.update(group.steps if group is not None else ())
            else:
                if number not in self._unusable and self.done.reports(step):
                    self.done.steps.append(step)

    def _apply_group(self, group: DatabaseGroup, number: int, step: Step) -> bool:
        """Apply all steps of a database at its first one; returns whether this step is done."""
        if step.path in self.done.in_place:
            return True
        if number != group.first or (group.is_new and group.is_alone):
            return False
        if not self._unusable.isdisjoint(group.steps):
            raise OSError(errno.EIO, "some files of this database are missing")
        return self._databases.write(group, self._moves.move_away)

    def _fail(self, number: int, path: bytes, error: OSError) -> None:
        if not self._site.best_effort:
            raise StepFailed(path, _reason(error), disk_full=error.errno in FULL)
        self._leave_out(number, path, _reason(error))

    def _leave_out(self, number: int, path: bytes, reason: str) -> None:
        self._unusable.add(number)
        self.done.problems.append(PathProblem(path, reason))

    def _apply_one(self, number: int, step: Step) -> None:
        if step.type is StepType.CHMOD:
            return self._chmod(step)
        directory = parent(step.path)
        dir_fd = self._handles.open_for_change(directory)
        self.done.directories.add(directory)
        name = basename(step.path)
        if step.type is StepType.MKDIR:
            return self._mkdir(step, dir_fd, name)
        if step.type is StepType.RMDIR:
            return self._rmdir(number, step, dir_fd, name)
        area = self._staging.area(dir_fd, directory)
        if step.type is StepType.DELETE:
            return self._move_out(number, step, dir_fd, area)
        return self._put_in(number, step, dir_fd, name, area)

    def _put_in(self, number: int, step: Step, dir_fd: int, name: bytes, area: int) -> None:
        slot = _slot(number)
        try:
            self._moves.put_new(step.path, slot, dir_fd, area)
        except FileExistsError:
            self._moves.refuse_directory(step.path, dir_fd, name)
            if step.database and step.type is StepType.CREATE:
                alone = DatabaseGroup(step.path, number, {number: step})
                if self._databases.write(alone, self._moves.move_away):
                    return
            self._moves.exchange(step, slot, dir_fd, area)
            self._displaced(step, area, slot)

    def _move_out(self, number: int, step: Step, dir_fd: int, area: int) -> None:
        try:
            self._moves.move_out(step, _slot(number), dir_fd, area)
        except FileNotFoundError:
            return  # already deleted by another program
        self._displaced(step, area, _slot(number))

    def _displaced(self, step: Step, area: int, slot: bytes) -> None:
        before = self._site.saved(step.path) if step.database else step.before
        expected = before if not isinstance(before, DirectoryEntry) else None
        self.done.displaced.append(Displaced(step.path, area, slot, expected))

    def _mkdir(self, step: Step, dir_fd: int, name: bytes) -> None:
        assert isinstance(step.after, DirectoryEntry)
        fs, path = self._fs, step.path
        self.done.undo.append(lambda: self._remove_made(path))
        try:
            fs.mkdir(name, 0o700, dir_fd=dir_fd)
        except OSError as error:
            self.done.undo.pop()
            if not isinstance(error, FileExistsError):
                raise
            fs.close(fs.open(name, DIRECTORY_FLAGS, dir_fd=dir_fd))  # fails if not a directory
        else:
            self._adopt_owner(dir_fd, path)
        self._late_modes[path] = step.after.mode

    def _adopt_owner(self, dir_fd: int, path: bytes) -> None:
        if self._fs.may_chown():
            status = self._fs.fstat(dir_fd)
            give_to(self._fs, self._handles.open(path), (status.st_uid, status.st_gid))

    def _remove_made(self, path: bytes) -> None:
        """For undo. A directory that was filled, removed or replaced meanwhile is left alone."""
        self._handles.forget(path)
        with ignoring(*NO_DIRECTORY, *_NOT_EMPTY):
            self._fs.rmdir(basename(path), dir_fd=self._handles.open(parent(path)))

    def _rmdir(self, number: int, step: Step, dir_fd: int, name: bytes) -> None:
        assert isinstance(step.before, DirectoryEntry)
        path, mode = step.path, step.before.mode
        opened_up = self._handles.original_modes.get(path)
        self.done.undo.append(lambda: self._make_again(path, mode))
        self._handles.forget(path)
        try:
            self._fs.rmdir(name, dir_fd=dir_fd)
        except OSError as error:
            self.done.undo.pop()
            if opened_up is not None:
                self._handles.original_modes[path] = opened_up
            if isinstance(error, FileNotFoundError):
                return
            if error.errno not in _NOT_EMPTY:
                raise
            self._unusable.add(number)
            why = "left in place: something was created in it while the restore ran"
            self.done.problems.append(PathProblem(path, why))

    def _make_again(self, path: bytes, mode: int) -> None:
        """For undo. Another program may have recreated the directory."""
        above = self._handles.open(parent(path))
        with contextlib.suppress(FileExistsError):
            self._fs.mkdir(basename(path), 0o700, dir_fd=above)
            self._adopt_owner(above, path)
        self._handles.original_modes[path] = mode

    def _chmod(self, step: Step) -> None:
        assert isinstance(step.after, (FileEntry, DirectoryEntry))
        if isinstance(step.after, DirectoryEntry):
            self._late_modes[step.path] = step.after.mode
            return
        assert isinstance(step.before, FileEntry)
        self._change_mode(step.path, step.after.mode, was=step.before.mode)

    def _change_mode(self, path: bytes, mode: int, *, was: int) -> None:
        mode &= self._site.mode_mask
        self.done.undo.append(lambda: self._set_mode_back(path, was))
        try:
            if mode & SETID_BITS and self._fs.may_chown():
                self._let_run_as_owner(path, mode)
            else:
                self._set_mode(path, mode)
        except OSError:
            self.done.undo.pop()
            raise

    def _let_run_as_owner(self, path: bytes, mode: int) -> None:
        """As in `_owner`: only if the file and its directory have the same owner. Checked and
        changed through one handle, because the name may refer to another file in between."""
        dir_fd = self._handles.open(parent(path))
        fd = self._fs.open(basename(path), FILE_FLAGS, dir_fd=dir_fd)
        try:
            file, directory = self._fs.fstat(fd), self._fs.fstat(dir_fd)
            if (file.st_uid, file.st_gid) != (directory.st_uid, directory.st_gid):
                raise PermissionError(errno.EPERM, RUNS_AS_ANOTHER, path)
            self._fs.fchmod(fd, mode)
        finally:
            self._fs.close(fd)

    def _set_mode(self, path: bytes, mode: int) -> None:
        dir_fd = self._handles.open(parent(path))
        self._fs.set_mode(basename(path), mode, dir_fd=dir_fd)
        self.done.changed_modes.add(path)

    def _set_mode_back(self, path: bytes, mode: int) -> None:
        """For undo. The file may have been removed meanwhile."""
        with ignoring(*NO_DIRECTORY):
            self._set_mode(path, mode)

    def closed_directories(self, steps: tuple[Step, ...]) -> dict[bytes, int]:
        """Directories that these steps must make writable, with their current modes."""
        closed: dict[bytes, int] = {}
        for path in {parent(step.path) for step in steps if step.type is not StepType.CHMOD}:
            try:
                mode = self._fs.fstat(self._handles.open(path)).st_mode & MODE_MASK
            except OSError:
                continue  # created by an earlier step, or below one that will be made writable
            if mode & OWNER_ALL != OWNER_ALL:
                closed[path] = mode
        return closed

    def finish_modes(self) -> None:
        """Set final directory modes last: the plan's modes, and the original ones of other
        directories that were made writable."""
        final = {path: mode & self._site.mode_mask for path, mode in self._late_modes.items()}
        try:
            self._handles.set_modes(dict(self._handles.original_modes) | final)
        except OSError as error:
            why = f"cannot set a directory's mode: {_reason(error)}"
            raise StepFailed(b"", why, disk_full=error.errno in FULL) from None

    def make_durable(self) -> None:
        """Sync the changes outside staging: names and modes."""
        for path in self.done.directories:
            with ignoring(*NO_DIRECTORY):  # removed by a later step
                self._fs.fsync(self._handles.open(path))
        for path in self.done.changed_modes:
            with ignoring(*NO_DIRECTORY):  # removed meanwhile
                self._sync_file(path)

    def _sync_file(self, path: bytes) -> None:
        sync_file(self._fs, self._handles.open(parent(path)), basename(path))

    def free_handles(self) -> None:
        """Close handles that can be reopened, so that a rollback does not run out of them."""
        self._handles.forget_all()

    def undo_all(self) -> None:
        """Move everything back, newest first. Directories that are not writable are made writable
        from the top, and get their old modes at the end."""
        touched = self.done.directories | self._late_modes.keys()
        for path in sorted(touched, key=lambda p: p.count(b"/")):
            # If it cannot be changed, the rollback of its entries fails and reports it.
            with ignoring(*NO_DIRECTORY, errno.EPERM, errno.EACCES):
                self._handles.open_for_change(path)
        while self.done.undo:
            self.done.undo.pop()()
        self.make_durable()
        self._handles.set_modes(self._handles.original_modes)


def _runs_as_owner(step: Step) -> bool:
    return isinstance(step.after, FileEntry) and bool(step.after.mode & SETID_BITS)


def _slot(number: int) -> bytes:
    return b"%d" % number


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
