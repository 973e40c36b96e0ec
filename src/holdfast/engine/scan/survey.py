"""A new listing of one directory: judge each name, and read new and changed files."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.ids import Digest
from holdfast.domain.paths import GIT_DIRECTORY, STAGING_PREFIX, basename, join
from holdfast.domain.trees.entries import storable_ns
from holdfast.engine.scan.databases import (
    TypeChanged,
    depends,
    group,
    has_owner,
    has_parts,
    independent_files,
    is_companion,
    is_part,
    read_part,
    read_unstable,
)
from holdfast.engine.scan.directory_state import (
    BEING_WRITTEN,
    CHILDLESS,
    MANY_NAMES,
    NOTHING,
    SPARSE,
    UNSETTLED,
    DirectoryKey,
    DirectoryState,
    FileRow,
    KnownChild,
    LinkRow,
    numbers_of,
)
from holdfast.engine.scan.file_capture import NoRoom, is_sparse, special_kind
from holdfast.engine.scan.policy import ENTER_ONLY, IGNORE_FILES, DirectoryRules, Mode, Verdict
from holdfast.engine.scan.repositories import repository_kind
from holdfast.engine.scan.rule_files import RuleFiles
from holdfast.engine.scan.stable_read import NotARegularFile
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.engine.scan.target_rules import RequiredTree
    from holdfast.engine.scan.walker import Walker

VOLATILE = (
    SkipReason.TOO_LARGE,
    SkipReason.UNREADABLE,
    SkipReason.TOO_DEEP,
    SkipReason.FILTERED,
    SkipReason.TRANSACTION,
    SkipReason.OVER_BUDGET,
    SkipReason.WORKTREE,
    SkipReason.REPOSITORY,
    SkipReason.UNKNOWN_INDEX,
)
"""Reasons that may disappear without a change of the directory's own times."""

_KEEPS_CHANGING = "it keeps changing its type"


class Place(NamedTuple):
    """An open directory on a walk, its previous state, and the paths that a restore wants in it."""

    fd: int
    path: bytes
    previous: DirectoryState | None = None
    wanted: RequiredTree | None = None
    depth: int = 0


class Survey:
    """The survey of one directory; `walker` has the file system and policy, and enters children."""

    def __init__(self, walker: Walker, place: Place) -> None:
        self.walker, self.fs, self._place = walker, walker.fs, place
        self.fd, self.path, self._previous, self._wanted, _ = place
        self.files: dict[bytes, FileRow] = {}
        self._symlinks: list[LinkRow] = []
        self.skipped: list[Skipped] = []
        self._chunks: dict[bytes, Digest] = {}
        self._children: dict[bytes, DirectoryState | KnownChild] = {}
        self._cannot_settle = self._other_modes = False
        self._known_rows: dict[bytes, FileRow] = {}
        self._known_notes: dict[bytes, list[Skipped]] = {}
        self.names: Collection[bytes] = ()
        self.read_together: set[bytes] = set()
        """Files that were read as one state."""
        self._had_no_room: set[bytes] = set()

    def run(
        self, parent: DirectoryRules, rule_files: RuleFiles, *, last: bool
    ) -> DirectoryState | Skipped | None:
        """None if names changed their type meanwhile and another survey may succeed."""
        if self._previous is not None:
            self._known_rows = dict(self._previous.file_rows())
            for note in self._previous.skipped:
                if note.reason.content_is_captured and note.reason is not SkipReason.NAMED:
                    self._known_notes.setdefault(note.path, []).append(note)
                elif note.reason is SkipReason.OVER_BUDGET:
                    self._had_no_room.add(note.path)
        key = DirectoryKey.of(self.fs.fstat(self.fd))
        names = sorted(self.fs.list_names(self.fd))
        self.names = set(names)
        read, policy = rule_files.read, self.walker.policy
        other = self._other_workspace(names)
        if other is not None:
            return Skipped(self.path, other)
        if policy.kept is not None:
            policy.kept.enter(self.path, self.names, self.walker.is_settled)
            if GIT_DIRECTORY in names and not (self._previous and self._previous.has_git):
                self.walker.found_repository()
        verdict = policy.judge_cache(parent, self.path, names, lambda name: read(self.fd, name))
        if verdict.reason is not None and self._wanted is not None and self._wanted.trees:
            # A checkpoint has this directory, so a new marker does not make it a cache.
            verdict = Verdict(parent.mode)
            self._cannot_settle = True
        elif verdict.reason is not None and self._wanted is not None and self._wanted.is_entered:
            verdict = Verdict(Mode.ONLY_LISTED)
            self._cannot_settle = True
        if verdict.reason is not None:
            return Skipped(self.path, verdict.reason, verdict.detail)
        rules = rule_files.rules_inside(self.fd, self.path, names, parent, verdict.mode)
        self._keep_unchanged(rules)
        for name in [name for name in names if name not in self.files]:
            try:
                self._take(name, rules)
            except TypeChanged:
                if not last:
                    return None
                self._leave_changing(name)
        self._take_deferred()
        if (taken_twice := self._taken_twice()) and not last:
            return None
        for name in sorted(taken_twice):
            self._leave_changing(name)
        trouble = None if policy.kept is None else policy.kept.trouble(self.path)
        if trouble is not None:
            self.skip(b".git/index", SkipReason.UNKNOWN_INDEX, trouble)
        state = DirectoryState(key, parent.fingerprint, rules.fingerprint)
        if self._previous is not None:
            state.base = self._previous.digest or self._previous.base
        state.has_git = GIT_DIRECTORY in names
        state.has_ignore_files = any(name in names for name in IGNORE_FILES)
        usual = rules.mode is Mode.NORMAL and not policy.has_filter
        state.by_rules = usual and not self._cannot_settle
        state.settled = (
            state.by_rules
            and not self._other_modes  # only a survey decides how to enter a child
            and self.walker.is_settled(key.ctime_ns)
            and all(n in self.files for n in IGNORE_FILES if n in names)
        )
        state = self._finish(state)
        if verdict.detail and state.is_bare() and not (self._wanted and self._wanted.trees):
            return Skipped(self.path, SkipReason.IGNORED, verdict.detail)
        return state

    def _other_workspace(self, names: list[bytes]) -> SkipReason | None:
        """Why the directory is saved separately, if it is. A repository that is part of a
        checkpoint is entered anyway; a linked worktree never."""
        kind = repository_kind(self.fs, self.fd, names) if self.path else None
        reason = self.walker.policy.judge_repository(kind, self.path)
        if reason is SkipReason.REPOSITORY and self._wanted is not None and self._wanted.trees:
            self._cannot_settle = True
            return None
        return reason

    def read_again(self, changed: list[tuple[bytes, os.stat_result]]) -> DirectoryState | None:
        """The previous state with these files read again; None if one is no longer a file."""
        assert self._previous is not None
        self.names = self._previous.names.split(b"\0")
        state = self._previous.copy()
        touched = {join(self.path, name) for name, _ in changed}
        self.skipped = [note for note in state.skipped if note.path not in touched]
        present = {*self.names, *(basename(note.path) for note in state.skipped)}
        for name, status in changed:
            # Its current kind decides whether the files beside it are left out.
            if has_parts(name, present):
                return None
            if (known := self._previous.row_of(name)) is not None:
                self._known_rows[name] = known
            try:
                self.read(name, status)
            except (TypeChanged, FileNotFoundError, NoRoom):
                return None
        if any(note.reason in VOLATILE for note in self.skipped):
            return None
        state.replace_rows(self.files)
        kept = {n: d for n, d in state.chunks.items() if n not in self.files}
        state.chunks = {**kept, **self._chunks} or NOTHING
        state.skipped = tuple(self.skipped)
        state.noted = state.noted or _is_noted(state.skipped, self.files)
        return state

    def _finish(self, state: DirectoryState) -> DirectoryState:
        state.set_files(self.files)
        state.chunks = {n: d for n, d in self._chunks.items() if n in self.files} or NOTHING
        state.symlinks = tuple(self._symlinks)
        state.skipped = tuple(self.skipped)
        state.children = self._children or CHILDLESS
        state.noted = _is_noted(state.skipped, self.files) or any(
            isinstance(child, DirectoryState) and child.noted for child in self._children.values()
        )
        return state

    def _take_deferred(self) -> None:
        """For surveys that defer names until they have seen all of them."""

    def _taken_twice(self) -> set[bytes]:
        """Names taken both as part of a neighbouring file and as something else. No tree can hold
        both."""
        linked = {link.name for link in self._symlinks}
        others = self.files.keys() | self._children.keys() if linked else ()
        return (self.files.keys() & self._children.keys()) | linked.intersection(others)

    def _leave_changing(self, name: bytes) -> None:
        for part in group(self, name):
            self.files.pop(part, None)
            self._children.pop(part, None)
            self._symlinks = [link for link in self._symlinks if link.name != part]
            path = join(self.path, part)
            self.skipped = [note for note in self.skipped if note.path != path]
            self.skip(part, SkipReason.UNREADABLE, _KEEPS_CHANGING)

    def _keep_unchanged(self, rules: DirectoryRules) -> None:
        """Keep unchanged files that the same rules captured last time, with one stat call for all.
        If one of hundreds of files was added or removed, judging the others again is most of the
        cost of a save. Keeps only files that a single look would keep."""
        previous, policy = self._previous, self.walker.policy
        if previous is None or not previous.by_rules or previous.rules != rules.fingerprint:
            return
        alone = independent_files(self.names)
        alone.difference_update(basename(path) for path in (*self._known_notes, *policy.own_data))
        asked = [
            (name, row)
            for name, row in self._known_rows.items()
            if name in alone and not row.flags & ~SPARSE
        ]
        stat_answer = self.fs.stat_all([name for name, _ in asked], dir_fd=self.fd)
        if stat_answer is None:
            return
        looks = zip(asked, self.fs.stat_numbers(stat_answer), strict=True)
        self.files = {name: row for (name, row), now in looks if row[:5] == now}
        chunked = previous.chunks.keys() & self.files.keys()
        self._chunks = {name: previous.chunks[name] for name in chunked}
        if self.walker.meter is not None:
            self.walker.meter.passed(len(self.files))

    def skip(self, name: bytes, reason: SkipReason, detail: str = "") -> None:
        self.skipped.append(Skipped(join(self.path, name), reason, detail))
        if reason in VOLATILE:
            self._cannot_settle = True

    def _take(self, name: bytes, rules: DirectoryRules) -> None:
        if name == GIT_DIRECTORY:
            return self.skip(name, SkipReason.GIT_DATA)
        path = join(self.path, name)
        if name.startswith(STAGING_PREFIX) or path in self.walker.policy.own_data:
            return self.skip(name, SkipReason.OWN_DATA)
        try:
            status = self.fs.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None  # removed since the listing
        except OSError as error:
            return self.skip(name, SkipReason.UNREADABLE, error.strerror or str(error))
        is_dir = stat.S_ISDIR(status.st_mode)
        verdict = self.walker.policy.judge(rules.stack, path, is_dir, rules.mode)
        if verdict.reason is not None and (
            self._is_wanted(name)
            or self._is_companion(name, status)
            or self._leads_to_captured(name, is_dir=is_dir)
        ):
            verdict = ENTER_ONLY
        if verdict.reason is not None:
            return self.skip(name, verdict.reason, verdict.detail)
        if verdict.ignored_by:
            # Ask on every scan whether it is still an exception to the rules.
            self._cannot_settle = True
        if is_dir:
            self._other_modes |= verdict.mode is not rules.mode
            below = DirectoryRules(rules.fingerprint, verdict.mode, load=lambda: rules.stack)
            return self._enter(name, below, verdict.detail)
        if stat.S_ISREG(status.st_mode):
            self._take_file(name, path, status)
            kept = self.walker.policy.kept
            if verdict.ignored_by and name in self.files and kept and path in kept.named:
                self.skip(name, SkipReason.NAMED, verdict.ignored_by)
            return None
        if stat.S_ISLNK(status.st_mode):
            return self._take_symlink(name, status)
        return self.skip(name, SkipReason.SPECIAL, special_kind(status.st_mode))

    def _enter(self, name: bytes, rules: DirectoryRules, ignored_by: str) -> None:
        known = self._previous.children.get(name) if self._previous is not None else None
        loaded = known if isinstance(known, DirectoryState) else None
        try:
            child = self.walker.enter(self._place, name, loaded, rules)
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise TypeChanged from None
        except OSError as error:
            return self.skip(name, SkipReason.UNREADABLE, error.strerror or str(error))
        if isinstance(child, Skipped):
            self.skipped.append(child)
            self._cannot_settle = True
        elif ignored_by and child.is_bare() and not self._is_captured_directory(name):
            self.skip(name, SkipReason.IGNORED, ignored_by)
            for other in child.skipped:
                if other.reason is not SkipReason.IGNORED:  # an exception that failed
                    self.skipped.append(other)
                    self._cannot_settle = True
        else:
            self._children[name] = child
        return None

    def _is_wanted(self, name: bytes) -> bool:
        """Whether a restore is about to write here, so that rules must not leave it out. Such a
        capture says nothing about the next scan."""
        if self._wanted is None or name not in self._wanted.names:
            return False
        self._cannot_settle = True
        return True

    def _leads_to_captured(self, name: bytes, *, is_dir: bool) -> bool:
        """Whether the target checkpoint's rules capture it, or something in it."""
        if self._wanted is None or not self._wanted.leads_to_captured(name, is_dir=is_dir):
            return False
        self._cannot_settle = True
        return True

    def _is_captured_directory(self, name: bytes) -> bool:
        if self._is_wanted(name):
            return True
        return self._wanted is not None and self._wanted.is_captured(name, is_dir=True)

    def _take_file(self, name: bytes, path: bytes, status: os.stat_result) -> None:
        policy, meter = self.walker.policy, self.walker.meter
        if meter is not None:
            meter.passed(1)
        too_large = status.st_size > policy.max_file_size and not self._is_wanted(name)
        if too_large and not self._is_companion(name, status):
            return self.skip(name, SkipReason.TOO_LARGE, f"{status.st_size} bytes")
        if policy.has_filter and policy.filtered_out(path) and not self._is_wanted(name):
            return self.skip(name, SkipReason.FILTERED)
        if name in self.read_together:
            return None  # read with the file that it is part of
        is_dependent = depends(self, name)
        if not is_dependent and self.keep_known(name, path, status):
            return None
        try:
            if is_part(self, name):
                read_part(self, name, status)
            else:
                self.read(name, status)
        except FileNotFoundError:
            return None
        except NoRoom:
            return self._leave_out(name, status)
        if is_dependent and not has_owner(self, name):
            self._cannot_settle = True  # another file may make it a part later
        return None

    def keep_known(self, name: bytes, path: bytes, status: os.stat_result) -> bool:
        known = self._known_rows.get(name)
        if known is None or known.flags & UNSETTLED or not matches(known, status):
            return False
        self.files[name] = known
        if self._previous is not None and name in self._previous.chunks:
            self._chunks[name] = self._previous.chunks[name]
        self.skipped.extend(self._known_notes.get(path, ()))
        return True

    def _still_has_no_room(self, name: bytes) -> bool:
        """Whether it had no room in the last save. Only a save that measured everything knows
        whether it fits now."""
        if self.walker.capture.reconsiders or join(self.path, name) not in self._had_no_room:
            return False
        return not self._is_wanted(name)

    def _leave_out(self, name: bytes, status: os.stat_result) -> None:
        for part in group(self, name):
            self.files.pop(part, None)
            self._chunks.pop(part, None)
            size = f"{status.st_size} bytes" if part == name else ""
            self.skip(part, SkipReason.OVER_BUDGET, size)

    def _is_companion(self, name: bytes, status: os.stat_result) -> bool:
        """Whether it is part of a captured file; rules cannot separate the two."""
        return is_companion(self, name, status)

    def read(self, name: bytes, status: os.stat_result) -> None:
        if self.capture(name, status):
            return
        if name in self.files and not read_unstable(self, name):
            self.skip(name, SkipReason.UNSTABLE)

    def capture(self, name: bytes, status: os.stat_result) -> bool:
        """Store the file; returns whether its content is one state."""
        if self._still_has_no_room(name):
            raise NoRoom
        known = self._known_rows.get(name)
        previous = Digest(known.digest) if known is not None else None
        try:
            read = self.walker.capture.capture(self.fd, name, status.st_size, previous)
        except FileNotFoundError:
            raise
        except NotARegularFile:
            raise TypeChanged from None
        except OSError as error:
            self.files.pop(name, None)
            self.skip(name, SkipReason.UNREADABLE, error.strerror or str(error))
            return False
        final = read.status
        flags = SPARSE if is_sparse(final) else 0
        if final.st_nlink > 1:
            flags |= MANY_NAMES
        if not read.stable or read.has_writer:
            flags |= UNSETTLED | BEING_WRITTEN
        elif not self.walker.is_settled(final.st_ctime_ns):
            flags |= UNSETTLED
        if read.xattrs:
            self.skip(name, SkipReason.XATTRS, ", ".join(sorted(read.xattrs)))
        self.files[name] = FileRow.of(final, read.content.size, flags, read.content.digest)
        self._chunks.pop(name, None)
        if read.content.chunks is not None:
            self._chunks[name] = read.content.chunks
        return read.stable

    def _take_symlink(self, name: bytes, status: os.stat_result) -> None:
        try:
            target = self.fs.readlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return
        except OSError:
            raise TypeChanged from None
        mtime_ns = storable_ns(status.st_mtime_ns)
        self._symlinks.append(LinkRow(name, status.st_ino, mtime_ns, status.st_ctime_ns, target))


def _is_noted(skipped: tuple[Skipped, ...], files: dict[bytes, FileRow]) -> bool:
    return bool(skipped) or any(row.flags & MANY_NAMES for row in files.values())


def matches(row: FileRow, status: os.stat_result) -> bool:
    return row[:5] == numbers_of(status)
