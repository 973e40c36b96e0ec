"""Walks a workspace by directory handles, reading only files that may have changed.

    known directory, same times  → stat its known names, read those whose numbers differ
    anything else                → list it, judge each name, read new and changed files
    children first, by handles opened without following links

Guarantees: no path is used as a string across a check (I6). Special files are never opened. If a
file changed so shortly before its read that a later change could hide in the same clock tick, the
next scan reads it again (RL-5). Not guaranteed: one instant for the whole tree, because files are
read one after another.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.paths import basename, join
from holdfast.engine.scan.directory_state import (
    NUMBERS,
    ROW,
    UNSETTLED,
    DirectoryState,
    KnownChild,
    numbers_of,
)
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import DECIDING_FILES, CapturePolicy, DirectoryRules
from holdfast.engine.scan.rule_files import KnownRules, RuleFiles
from holdfast.engine.scan.survey import Place, Survey
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem

if TYPE_CHECKING:
    from holdfast.engine.scan.scan_meter import ScanMeter
    from holdfast.engine.scan.target_rules import RequiredTree
    from holdfast.ports.live_database import LiveDatabases

DEEPEST = 800
DEEP = 100
_DEEP_RECURSION = 8 * DEEPEST
_FINE_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_500_000_000
_WHOLE_SECOND_NS = 1_000_000_000
_SURVEY_ATTEMPTS = 3
_MOST_KEPT = 250_000
"""Up to this many files, a workspace's raw stat results are kept, at 150 bytes a file."""
_SWAPPED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)


class Walker:
    """One scan. `remembered` gives a directory's earlier state; `watch` is called for each
    directory before it is read."""

    surveys: type[Survey] = Survey

    def __init__(
        self,
        fs: Filesystem,
        capture: FileCapture,
        policy: CapturePolicy,
        remembered: Callable[[bytes], DirectoryState | None],
        started_ns: int,
        meter: ScanMeter | None = None,
        watch: Callable[[bytes, int], None] | None = None,
        databases: LiveDatabases | None = None,
    ) -> None:
        self.fs = fs
        self.databases = databases
        self.meter = meter
        self._watch = watch
        self.capture = capture
        self.policy = policy
        self._remembered = remembered
        self._started_ns = started_ns
        self._rule_files = RuleFiles(fs, policy)
        self._keeps_answers = False

    def walk(
        self, root_fd: int, previous: DirectoryState | None, wanted: RequiredTree | None
    ) -> DirectoryState:
        # Under a watch, full walks are rare, and the waiting daemon should use little memory.
        known = previous is not None and previous.files <= _MOST_KEPT
        self._keeps_answers = known and self._watch is None
        rules = self._rule_files.above_root()
        self.begin_directory(b"", root_fd)
        state = self.visit(Place(root_fd, b"", previous, wanted), rules)
        assert isinstance(state, DirectoryState)
        return state

    def begin_directory(self, path: bytes, fd: int) -> None:
        """From here on, the watch reports every change in the directory to the next scan."""
        if self._watch is not None:
            self._watch(path, fd)

    def is_settled(self, ctime_ns: int) -> bool:
        return is_settled(ctime_ns, self._started_ns)

    def enter(
        self, place: Place, name: bytes, previous: DirectoryState | None, rules: DirectoryRules
    ) -> DirectoryState | Skipped:
        """Visit a subdirectory of the open directory; OSError if it cannot be opened."""
        fd, path, _, wanted, depth = place
        below = join(path, name)
        if depth == DEEP:
            allow_deep_recursion()
        if depth >= DEEPEST:
            return Skipped(below, SkipReason.TOO_DEEP, f"more than {DEEPEST} levels")
        child_wanted = wanted.below(name) if wanted is not None else None
        child_fd = self.fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
        try:
            if self._watch is not None:
                self._watch(below, child_fd)
            previous = previous or self._remembered(below)
            return self.visit(Place(child_fd, below, previous, child_wanted, depth + 1), rules)
        finally:
            self.fs.close(child_fd)

    def visit(self, place: Place, parent: DirectoryRules) -> DirectoryState | Skipped:
        fd, path, previous, wanted, depth = place
        if (
            previous is not None
            and previous.parent_rules == parent.fingerprint
            and self._same_names(fd, previous)
            and not self._wants_skipped(previous, wanted)
        ):
            again = self._revisit((parent, fd, path, previous), wanted, depth)
            if again is not None:
                return again
        for attempt in range(_SURVEY_ATTEMPTS):
            survey = self.surveys(self, place)
            result = survey.run(parent, self._rule_files, last=attempt == _SURVEY_ATTEMPTS - 1)
            if result is not None:
                return result
        raise AssertionError("the last survey always answers")

    def found_repository(self) -> None:
        """Called if a directory has a repository that it did not have before."""

    def _wants_skipped(self, previous: DirectoryState, wanted: RequiredTree | None) -> bool:
        """Whether paths left out last time are needed now."""
        if not previous.skipped:
            return False
        kept = self.policy.kept
        if kept is not None and any(
            skip.reason is SkipReason.IGNORED and kept.concerns(skip.path)
            for skip in previous.skipped
        ):
            return True
        if wanted is None:
            return False
        names = [basename(skip.path) for skip in previous.skipped]
        if any(name in wanted.names for name in names):
            return True
        return not wanted.has_rules(previous.rules) and any(
            wanted.leads_to_captured(name, is_dir=each) for name in names for each in (True, False)
        )

    def _same_names(self, fd: int, previous: DirectoryState) -> bool:
        """Whether a directory's own times prove that its names are unchanged."""
        if not previous.settled or previous.has_git:
            return False
        st = self.fs.fstat(fd)
        return previous.key == (st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_mode)

    def _revisit(
        self, rules: KnownRules, wanted: RequiredTree | None, depth: int
    ) -> DirectoryState | None:
        """The names are unchanged, so check only the files. None if that is not enough.

        This and `_changed_files` are the cost of an unchanged checkpoint.
        """
        _, fd, path, previous = rules
        again = self._files_again(fd, path, previous)
        if again is None:
            return None
        state = None if again is previous else again
        opened, closed, looked = self.fs.open, self.fs.close, self.fs.fstat
        for name, known in previous.children.items():
            try:
                child_fd = opened(name, DIRECTORY_FLAGS, dir_fd=fd)
            except OSError as error:
                if error.errno in _SWAPPED:
                    return None
                raise
            below = path + b"/" + name if path else name
            deeper = wanted.below(name) if wanted is not None else None
            try:
                if self._watch is not None:
                    self._watch(below, child_fd)
                child: DirectoryState | Skipped | None = None
                if type(known) is DirectoryState and depth < DEEP:
                    st = looked(child_fd)
                    if (
                        known.key == (st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_mode)
                        and known.settled
                        and not known.has_git
                        and known.parent_rules == previous.rules
                        and not (known.skipped and self._wants_skipped(known, deeper))
                    ):
                        child = self._revisit((rules, child_fd, below, known), deeper, depth + 1)
                if child is None:
                    state_before = (
                        known if isinstance(known, DirectoryState) else self._remembered(below)
                    )
                    place = Place(child_fd, below, state_before, deeper, depth + 1)
                    child = self._visit_child(place, rules)
            finally:
                closed(child_fd)
            if child is known:
                continue
            if isinstance(child, Skipped):
                return None
            if state is None and not _is_as_known(child, known):
                state = previous.copy()
            (state or previous).children[name] = child
            if state is not None and child.noted:
                state.noted = True
        if self.meter is not None:
            self.meter.passed(len(previous.rows) // ROW.size)
        return state or previous

    def _files_again(self, fd: int, path: bytes, previous: DirectoryState) -> DirectoryState | None:
        """The directory with changed files read again, or itself if there are none; None if other
        things changed."""
        changed = self._changed_files(fd, previous) if previous.names else ()
        if changed is None or (previous.symlinks and not self._links_unchanged(fd, previous)):
            return None
        if not changed:
            return previous
        return Survey(self, Place(fd, path, previous)).read_again(changed)

    def _visit_child(self, place: Place, rules: KnownRules) -> DirectoryState | Skipped:
        """Visit a child that is not known to be unchanged."""
        depth = place.depth
        if depth == DEEP:
            allow_deep_recursion()
        if depth > DEEPEST:
            return Skipped(place.path, SkipReason.TOO_DEEP, f"more than {DEEPEST} levels")
        return self.visit(place, self._rule_files.known(rules))

    def _changed_files(
        self, fd: int, previous: DirectoryState
    ) -> list[tuple[bytes, os.stat_result]] | None:
        """Files whose numbers differ; None if a name is gone or no longer a regular file."""
        names, lstat = previous.names.split(b"\0"), self.fs.stat
        stat_answer = self.fs.stat_all(names, dir_fd=fd)
        try:
            if stat_answer is None:
                looks = ((n, lstat(n, dir_fd=fd, follow_symlinks=False)) for n in names)
                rows = zip(looks, NUMBERS.iter_unpack(previous.rows), strict=True)
                changed = [look for look, row in rows if _differs(numbers_of(look[1]), row)]
            elif stat_answer == previous.stat_answer:
                return []
            else:
                differing = self._differing(names, stat_answer, previous)
                changed = [(n, lstat(n, dir_fd=fd, follow_symlinks=False)) for n in differing]
        except FileNotFoundError:
            return None
        for name, st in changed:
            if not stat.S_ISREG(st.st_mode) or st.st_size > self.policy.max_file_size:
                return None
            if name in DECIDING_FILES:
                return None
        return changed

    def _differing(
        self, names: list[bytes], stat_answer: bytes, previous: DirectoryState
    ) -> list[bytes]:
        """The names of files that differ. If there are none, the raw stat result is kept, and an
        equal one proves it next time."""
        rows = NUMBERS.iter_unpack(previous.rows)
        looks = zip(names, self.fs.stat_numbers(stat_answer), rows, strict=True)
        differing = [name for name, now, row in looks if _differs(now, row)]
        if not differing and self._keeps_answers:
            previous.stat_answer = stat_answer
        return differing

    def _links_unchanged(self, fd: int, previous: DirectoryState) -> bool:
        for link in previous.symlinks:
            try:
                st = self.fs.stat(link.name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                return False
            if st.st_ino != link.inode or st.st_ctime_ns != link.ctime_ns:
                return False
        return True


def nothing_known(path: bytes) -> DirectoryState | None:
    """For a walk that remembers no directory."""
    return None


def is_settled(ctime_ns: int, now_ns: int) -> bool:
    """Whether a later change must show in the times. File systems with whole seconds give times
    without a fraction."""
    tick_ns = _FINE_TICK_NS if ctime_ns % _WHOLE_SECOND_NS else _COARSE_TICK_NS
    return ctime_ns < now_ns - tick_ns


def allow_deep_recursion() -> None:
    """Very deep trees need more frames than Python allows by default. Frames of Python functions
    are on the heap, so a higher limit costs nothing. It is never lowered, because another thread
    may be in a deep recursion as well."""
    if sys.getrecursionlimit() < _DEEP_RECURSION:
        sys.setrecursionlimit(_DEEP_RECURSION)


def _differs(now: tuple[int, ...], row: tuple[int, ...]) -> bool:
    """Whether a file changed, or may have changed unnoticed."""
    return now != row[:5] or bool(row[5] & UNSETTLED)


def _is_as_known(child: DirectoryState, known: DirectoryState | KnownChild) -> bool:
    """Whether a newly loaded child is the one in its parent's tree."""
    return (
        isinstance(known, KnownChild)
        and child.digest == known.digest
        and child.key.mode == known.mode
    )
