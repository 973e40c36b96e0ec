"""Walking a workspace by directory handles, reading only what may have changed.

    known directory, same times  → stat the names it had, read those whose numbers differ
    anything else                → list it, decide about each name, read what is new or differs
    children first, by handles opened without following links

Guarantees: no path is used as a string across a check (I6); special files are never opened; a
file modified so shortly before it was read that a later change could hide in the same clock tick
is read again next time (RL-5). Not guaranteed: one instant for the whole tree — files are read
one after the other, each at a moment of its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from holdfast.domain.checkpoints import Skipped, SkipReason
from holdfast.domain.entries import DirectoryEntry
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees import Tree
from holdfast.engine.scan.directory_state import (
    ROW,
    UNSETTLED,
    DirectoryKey,
    DirectoryState,
    KnownChild,
)
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import IGNORE_FILES, CapturePolicy, DirectoryRules
from holdfast.engine.scan.rule_files import RuleFiles
from holdfast.engine.scan.survey import Survey
from holdfast.ports.filesystem import Filesystem

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 800
_FINE_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_500_000_000
_WHOLE_SECOND_NS = 1_000_000_000
_SURVEY_ATTEMPTS = 3


class Walker:
    """One scan. `remembered` gives what was known of a directory, `load_tree` a wanted subtree."""

    def __init__(
        self,
        fs: Filesystem,
        capture: FileCapture,
        policy: CapturePolicy,
        remembered: Callable[[bytes], DirectoryState | None],
        load_tree: Callable[[Digest], Tree],
        started_ns: int,
    ) -> None:
        self.fs = fs
        self.capture = capture
        self.policy = policy
        self._remembered = remembered
        self._load_tree = load_tree
        self._started_ns = started_ns
        self._rule_files = RuleFiles(fs, policy)
        self._unpack_rows = ROW.iter_unpack

    def walk(
        self, root_fd: int, previous: DirectoryState | None, wanted: Tree | None
    ) -> DirectoryState:
        rules = self._rule_files.above_root()
        state = self.visit(root_fd, b"", previous, rules, wanted, 0)
        assert isinstance(state, DirectoryState)
        return state

    def is_settled(self, ctime_ns: int) -> bool:
        """Whether a later change must show in the times. File systems that keep whole seconds
        give times without a fraction."""
        tick_ns = _FINE_TICK_NS if ctime_ns % _WHOLE_SECOND_NS else _COARSE_TICK_NS
        return ctime_ns < self._started_ns - tick_ns

    def visit(
        self,
        fd: int,
        path: bytes,
        previous: DirectoryState | None,
        parent: DirectoryRules,
        wanted: Tree | None,
        depth: int,
    ) -> DirectoryState | Skipped:
        key = DirectoryKey.of(self.fs.fstat(fd))
        if (
            previous is not None
            and previous.settled
            and previous.key == key
            and previous.parent_rules == parent.fingerprint
            and not previous.has_git
            and (wanted is None or not _wants_skipped(previous, wanted))
        ):
            again = self._revisit(fd, path, previous, parent, wanted, depth)
            if again is not None:
                return again
        for attempt in range(_SURVEY_ATTEMPTS):
            survey = Survey(self, fd, path, previous, wanted, depth)
            result = survey.run(parent, self._rule_files, last=attempt == _SURVEY_ATTEMPTS - 1)
            if result is not None:
                return result
        raise AssertionError("the last survey always answers")

    def enter(
        self,
        fd: int,
        path: bytes,
        name: bytes,
        previous: DirectoryState | None,
        rules: DirectoryRules,
        wanted: Tree | None,
        depth: int,
    ) -> DirectoryState | Skipped:
        """Visit a subdirectory of the open directory `fd`; OSError when it cannot be opened."""
        below = join(path, name)
        if depth >= DEEPEST:
            return Skipped(below, SkipReason.TOO_DEEP, f"more than {DEEPEST} levels")
        child_wanted = None
        if wanted is not None:
            entry = wanted.by_name.get(name)
            if isinstance(entry, DirectoryEntry):
                child_wanted = self._load_tree(entry.digest)
        child_fd = self.fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
        try:
            if previous is None:
                previous = self._remembered(below)
            return self.visit(child_fd, below, previous, rules, child_wanted, depth + 1)
        finally:
            self.fs.close(child_fd)

    def _revisit(
        self,
        fd: int,
        path: bytes,
        previous: DirectoryState,
        parent: DirectoryRules,
        wanted: Tree | None,
        depth: int,
    ) -> DirectoryState | None:
        """The names are as they were: look at the files. None when it is not that simple."""
        changed = self._changed_files(fd, previous)
        if changed is None or not self._links_unchanged(fd, previous):
            return None
        rules = self._rule_files.unchanged(fd, path, previous, parent)
        state: DirectoryState | None = None
        if changed:
            state = self._with_files_read_again(fd, path, previous, changed)
            if state is None:
                return None
        for name, known in list(previous.children.items()):
            try:
                loaded = known if isinstance(known, DirectoryState) else None
                child = self.enter(fd, path, name, loaded, rules, wanted, depth)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES):
                    raise
                return None
            if isinstance(child, Skipped):
                return None
            if child is known:
                continue
            if state is None and not _is_as_known(child, known):
                state = previous.copy()
            (state or previous).children[name] = child
            if state is not None and child.noted:
                state.noted = True
        return state or previous

    def _changed_files(
        self, fd: int, previous: DirectoryState
    ) -> list[tuple[bytes, os.stat_result]] | None:
        """Files whose numbers differ. This loop is what an unchanged checkpoint costs."""
        changed: list[tuple[bytes, os.stat_result]] = []
        if not previous.names:
            return changed
        lstat = self.fs.stat
        try:
            for name, (inode, size, mtime_ns, ctime_ns, mode, flags, _) in zip(
                previous.names.split(b"\0"), self._unpack_rows(previous.rows), strict=True
            ):
                st = lstat(name, dir_fd=fd, follow_symlinks=False)
                if (
                    st.st_ctime_ns != ctime_ns
                    or st.st_mtime_ns != mtime_ns
                    or st.st_size != size
                    or st.st_ino != inode
                    or st.st_mode != mode
                    or flags & UNSETTLED
                ):
                    changed.append((name, st))
        except FileNotFoundError:
            return None
        for name, st in changed:
            if not stat.S_ISREG(st.st_mode) or st.st_size > self.policy.max_file_size:
                return None
            if name in IGNORE_FILES:
                return None
        return changed

    def _links_unchanged(self, fd: int, previous: DirectoryState) -> bool:
        for link in previous.symlinks:
            try:
                st = self.fs.stat(link.name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                return False
            if st.st_ino != link.inode or st.st_ctime_ns != link.ctime_ns:
                return False
        return True

    def _with_files_read_again(
        self,
        fd: int,
        path: bytes,
        previous: DirectoryState,
        changed: list[tuple[bytes, os.stat_result]],
    ) -> DirectoryState | None:
        survey = Survey(self, fd, path, previous, None, 0)
        return survey.read_again(changed)


def _is_as_known(child: DirectoryState, known: DirectoryState | KnownChild) -> bool:
    """Whether a child that has just been loaded is the one that its parent's tree names."""
    return (
        isinstance(known, KnownChild)
        and child.digest == known.digest
        and child.key.mode == known.mode
    )


def _wants_skipped(previous: DirectoryState, wanted: Tree) -> bool:
    """Whether something left out last time is needed now."""
    names = wanted.by_name
    return any(s.path.rpartition(b"/")[2] in names for s in previous.skipped)
