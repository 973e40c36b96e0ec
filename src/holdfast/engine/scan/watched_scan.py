"""Scans a watched workspace: only changed places if the hint is proven, otherwise everything.

    proven hint that covers all changes → walk the places that it names
    any doubt, or a restore's request   → walk everything, with every directory watched first

    places to visit = events + directories that may change without one + the way from the root
    on the way           → continue to the children to visit, look at nothing
    a place itself       → as in any walk, but only into the children to visit
    nothing known below  → an ordinary walk

Guarantee: if the hint is complete, the result equals that of a full walk. Files that can change
without an event in their directory are checked each time: files with several names, files that a
program was writing to, unreadable files, and directories with a repository, whose list of excluded
paths is outside the watched directories. In paranoid mode, both walks run and are compared, and the
full walk counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.paths import join, parent
from holdfast.engine.scan.directory_state import BEING_WRITTEN, MANY_NAMES, ROW, DirectoryState
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy, DirectoryRules
from holdfast.engine.scan.rule_files import KnownRules
from holdfast.engine.scan.scanner import Scan, Scanner, ScanRequest, ScanStart, state_at
from holdfast.engine.scan.survey import VOLATILE, Place
from holdfast.engine.scan.walker import (
    DEEP,
    Walker,
    allow_deep_recursion,
    is_settled,
    nothing_known,
)
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem
from holdfast.ports.watcher import ChangedPlaces, WorkspaceWatch

if TYPE_CHECKING:
    from holdfast.engine.scan.target_rules import RequiredTree
    from holdfast.ports.live_database import LiveDatabases


class IncompleteHint(Exception):
    """The scan found changes in places that the hint does not name."""


class Visit:
    """One directory to visit: `look` at it, visit the `whole` of it, or only pass through it."""

    __slots__ = ("children", "look", "whole")

    def __init__(self) -> None:
        self.children: dict[bytes, Visit] = {}
        self.look = False
        self.whole = False


def plan_visits(root: DirectoryState, places: ChangedPlaces, eventless: Iterable[bytes]) -> Visit:
    """A place that the last scan did not enter is left to the nearest entered directory above."""
    top = Visit()
    for path in (*places.directories, *eventless):
        _visit_at(top, root, path).look = True
    for path in places.subtrees:
        _visit_at(top, root, path).whole = True
    return top


def _visit_at(top: Visit, root: DirectoryState, path: bytes) -> Visit:
    visit, state = top, root
    for name in path.split(b"/") if path else ():
        child = state.children.get(name)
        if not isinstance(child, DirectoryState):
            visit.look = True
            # If that directory enters it now, it does so as an unknown one.
            return visit.children.setdefault(name, Visit())
        if not child.by_rules:
            visit.look = True  # its survey decides the mode for the child
        visit = visit.children.setdefault(name, Visit())
        state = child
    return visit


class HintedWalker(Walker):
    """One scan of the places to visit."""

    def __init__(
        self,
        fs: Filesystem,
        capture: FileCapture,
        policy: CapturePolicy,
        started_ns: int,
        visits: Visit,
        watch: Callable[[bytes, int], None],
        databases: LiveDatabases | None,
    ) -> None:
        super().__init__(fs, capture, policy, nothing_known, started_ns, None, watch, databases)
        self._visits = visits
        self._at = visits
        self.looked: list[tuple[DirectoryState | None, DirectoryState]] = []

    def walk(
        self, root_fd: int, previous: DirectoryState | None, wanted: RequiredTree | None
    ) -> DirectoryState:
        rules = self._rule_files.above_root()
        if previous is None or wanted is not None or previous.parent_rules != rules.fingerprint:
            raise IncompleteHint("the rules above the workspace changed")
        state = self._go((rules, root_fd, b"", previous), self._visits, 0)
        assert isinstance(state, DirectoryState)
        return state

    def found_repository(self) -> None:
        """Its tracked files may be anywhere below."""
        self._at.whole = True

    def visit(self, place: Place, parent: DirectoryRules) -> DirectoryState | Skipped:
        state = super().visit(place, parent)
        if isinstance(state, DirectoryState) and state is not place.previous:
            self.looked.append((place.previous, state))
        return state

    def _go(
        self,
        known: tuple[DirectoryRules, int, bytes, DirectoryState],
        visit: Visit,
        depth: int,
    ) -> DirectoryState | Skipped:
        if depth == DEEP:
            allow_deep_recursion()
        before, self._at = self._at, visit
        try:
            if not visit.look and not visit.whole:
                passed = self._pass(known, known[3], depth)
                if passed is not None:
                    return passed
                visit.look = True
            rules, fd, path, previous = known
            return self.visit(Place(fd, path, previous, None, depth), rules)
        finally:
            self._at = before

    def enter(
        self, place: Place, name: bytes, previous: DirectoryState | None, rules: DirectoryRules
    ) -> DirectoryState | Skipped:
        if self._at.whole:
            return super().enter(place, name, previous, rules)
        visit = self._at.children.get(name)
        known = previous is not None and previous.parent_rules == rules.fingerprint
        if known and visit is None:
            assert previous is not None
            return previous
        if visit is None or not known or visit.whole or previous is None:
            visit = _visit_all()
        before, self._at = self._at, visit
        try:
            if visit.look or visit.whole:
                return super().enter(place, name, previous, rules)
            assert previous is not None
            child_fd = self.fs.open(name, DIRECTORY_FLAGS, dir_fd=place.fd)
            try:
                inside = (rules, child_fd, join(place.path, name), previous)
                return self._go(inside, visit, place.depth + 1)
            finally:
                self.fs.close(child_fd)
        finally:
            self._at = before

    def _revisit(
        self, rules: KnownRules, wanted: RequiredTree | None, depth: int
    ) -> DirectoryState | None:
        _, fd, path, previous = rules
        if self._at.whole:
            again = super()._revisit(rules, wanted, depth)
            if again is not None and again is not previous:
                self.looked.append((previous, again))
            return again
        state = self._files_again(fd, path, previous)
        return None if state is None else self._pass(rules, state, depth)

    def _pass(self, rules: KnownRules, state: DirectoryState, depth: int) -> DirectoryState | None:
        """The directory after visiting the planned children; None if it must be surveyed itself.
        `state` is the known one, with the changes so far."""
        _, fd, path, previous = rules
        for name, visit in self._at.children.items():
            known = previous.children.get(name)
            if not isinstance(known, DirectoryState) or known.parent_rules != previous.rules:
                return None
            try:
                child_fd = self.fs.open(name, DIRECTORY_FLAGS, dir_fd=fd)
            except OSError:
                return None
            try:
                below = join(path, name)
                if visit.look or visit.whole:
                    self.begin_directory(below, child_fd)
                inside = (self._rule_files.known(rules), child_fd, below, known)
                child = self._go(inside, visit, depth + 1)
            finally:
                self.fs.close(child_fd)
            if child is known:
                continue
            if isinstance(child, Skipped):
                return None
            if state is previous:
                state = previous.copy()
            state.children[name] = child
            if child.noted:
                state.noted = True
        return state

    def require_same_links(self) -> None:
        """`IncompleteHint` if the number of a file's names changed: the other names can be
        anywhere."""
        for before, after in self.looked:
            if _linked(before) != _linked(after):
                raise IncompleteHint("files with several names changed")


def _visit_all() -> Visit:
    visit = Visit()
    visit.whole = True
    return visit


def _linked(state: DirectoryState | None) -> list[tuple[object, ...]]:
    """The files of a directory that have several names, with their numbers."""
    if state is None or not state.noted:
        return []
    rows = zip(state.file_names(), ROW.iter_unpack(state.rows), strict=True)
    return [(name, *row) for name, row in rows if row[5] & MANY_NAMES]


def eventless_directories(state: DirectoryState, path: bytes = b"") -> Iterator[bytes]:
    """The directories, from this one down, in which files can change without an event."""
    if is_eventless(state):
        yield path
    for name, child in state.children.items():
        if isinstance(child, DirectoryState):
            yield from eventless_directories(child, join(path, name))


def is_eventless(state: DirectoryState) -> bool:
    return (
        state.has_git
        or any(skip.reason in VOLATILE for skip in state.skipped)
        or any(not isinstance(child, DirectoryState) for child in state.children.values())
        or _has_eventless_file(state)
    )


def _has_eventless_file(state: DirectoryState) -> bool:
    return any(row[5] & (MANY_NAMES | BEING_WRITTEN) for row in ROW.iter_unpack(state.rows))


def watched_scan(
    scanner: Scanner, watch: WorkspaceWatch, root_fd: int, request: ScanRequest
) -> Scan:
    if request.wanted or scanner.root is None or request.largest_bytes is not None:
        return _everything(scanner, watch, root_fd, request)
    status = scanner.fs.fstat(root_fd)
    places = watch.places(status.st_dev, status.st_ino)
    if not isinstance(places, ChangedPlaces):
        return _everything(scanner, watch, root_fd, request)
    try:
        found = _by_hint(scanner, watch, root_fd, request, scanner.root, places)
    except IncompleteHint:
        return _everything(scanner, watch, root_fd, request)
    if not scanner.paranoid:
        return found
    whole = scanner.whole(root_fd, request, found.start)
    if found.tree != whole.tree or found.skipped != whole.skipped:
        after = watch.places(status.st_dev, status.st_ino)
        if isinstance(after, ChangedPlaces) and after.mark == places.mark:
            watch.differed(_first_difference(found.root, whole.root))
    return whole


def _everything(
    scanner: Scanner, watch: WorkspaceWatch, root_fd: int, request: ScanRequest
) -> Scan:
    start = ScanStart(watch.begin(), whole=True, plain=not request.wanted)
    return scanner.whole(root_fd, request, start)


def _by_hint(
    scanner: Scanner,
    watch: WorkspaceWatch,
    root_fd: int,
    request: ScanRequest,
    previous: DirectoryState,
    places: ChangedPlaces,
) -> Scan:
    exceptions = _changed_exceptions(scanner, request)
    walker = HintedWalker(
        scanner.fs,
        FileCapture(scanner.fs, request.writer, request.started_ns),
        request.policy,
        request.started_ns,
        plan_visits(previous, places, (*scanner.eventless, *exceptions)),
        watch.watch,
        scanner.databases,
    )
    root = walker.walk(root_fd, previous, None)
    walker.require_same_links()
    return scanner.built(root, request, ScanStart(places.mark, whole=False))


def _changed_exceptions(scanner: Scanner, request: ScanRequest) -> set[bytes]:
    """The directories of files that git started or stopped tracking, or that a tool named. No watch
    event reports these."""
    before, now = scanner.kept, request.policy.kept
    if before is None or now is None:
        if before is not now:
            raise IncompleteHint("the captured exceptions are unknown")
        return set()
    changed = now.changed_since(before, lambda ctime_ns: is_settled(ctime_ns, request.started_ns))
    if changed is None:
        raise IncompleteHint("too many exceptions changed")
    return {parent(path) for path in changed}


def remember_watched(scanner: Scanner, watch: WorkspaceWatch, scan: Scan, start: ScanStart) -> None:
    """Called when a scan is kept: settle the visited places, and note those without events."""
    if start.whole:
        scanner.eventless = set(eventless_directories(scan.root))
    else:
        gone = {path for path in scanner.eventless if state_at(scan.root, path) is None}
        scanner.eventless -= gone
        for path, state in scan.fresh.items():
            (scanner.eventless.add if is_eventless(state) else scanner.eventless.discard)(path)
    watch.seen(start.mark, whole=start.whole)
    if not start.plain:
        watch.doubt("a restore captured ignored files")


def _first_difference(one: DirectoryState, other: DirectoryState, path: str = "") -> str:
    """The topmost directory in both that itself differs, for the log."""
    for name, child in one.children.items():
        twin = other.children.get(name)
        if (
            isinstance(child, DirectoryState)
            and isinstance(twin, DirectoryState)
            and child.digest != twin.digest
        ):
            below = name.decode("utf-8", "backslashreplace")
            return _first_difference(child, twin, f"{path}{below}/")
    return path or "the uppermost directory"
