"""A complete scan: walk, annotate, build the tree, and remember results for the next one.

In a watched workspace, the walk visits only places that may have changed. If there is any doubt, or
for a restore, it visits everything.

The caller calls `remember` after everything that the scan stored is durable, so a scan whose save
failed leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.engine.scan.directory_state import DirectoryState, decode_state, encode_state
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy, FileFilter
from holdfast.engine.scan.state_trees import annotate, build_trees
from holdfast.engine.scan.walker import Walker, nothing_known
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectStore, ObjectWriter
from holdfast.values.classes import dataclass, field

if TYPE_CHECKING:
    from holdfast.engine.scan.repositories import ExemptPaths
    from holdfast.engine.scan.scan_meter import ScanMeter
    from holdfast.engine.scan.target_rules import RequiredTree
    from holdfast.ports.live_database import LiveDatabases
    from holdfast.ports.progress import ProgressRelay
    from holdfast.ports.scan_hints import SecondReader, StatCache
    from holdfast.ports.watcher import WorkspaceWatch

_MOST_PENDING = 400


@dataclass(frozen=True, slots=True)
class ScanStart:
    """Where a watched scan began, whether it visited the `whole` workspace, and whether rules alone
    decided which files it captured (`plain`)."""

    mark: int
    whole: bool
    plain: bool = True


@dataclass(slots=True)
class Scan:
    """A workspace's tree at one time. `previous` is the last remembered scan. `fresh` are the
    directories built for this scan, and `encoded` are their trees until a store has them. `start`
    is None without a watch."""

    root: DirectoryState
    tree: Digest
    skipped: list[Skipped]
    previous: DirectoryState | None = None
    encoded: dict[Digest, bytes] = field(default_factory=dict)
    fresh: dict[bytes, DirectoryState] = field(default_factory=dict)
    start: ScanStart | None = None
    kept: ExemptPaths | None = None

    @property
    def files(self) -> int:
        return self.root.files

    @property
    def size_bytes(self) -> int:
        return self.root.size


@dataclass(frozen=True, slots=True)
class RulesOf:
    """The tree whose ignore rules a scan applies besides the current ones, for everything or for
    some paths."""

    tree: Digest
    within: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Options of one scan. `wanted` are trees whose paths are captured even if rules leave them
    out, as is everything that the rules of `rules_of` capture. `keep_trees` is for writers that
    store nothing. With `aided_writer`, a second process may help to read an unknown workspace, and
    store its contents there. With `largest_bytes`, new content of larger files is left out, and
    files that had no room in the last scan are reconsidered."""

    policy: CapturePolicy
    writer: ObjectWriter
    started_ns: int
    wanted: tuple[Digest, ...] = ()
    keep_trees: bool = False
    progress: ProgressRelay | None = None
    aided_writer: ObjectWriter | None = None
    largest_bytes: int | None = None
    rules_of: RulesOf | None = None


class PendingNotes:
    """Cache updates in order, only the last one for each directory."""

    def __init__(self) -> None:
        self._notes: dict[tuple[bytes, bool], DirectoryState | None] = {}

    def add(self, notes: Iterable[tuple[bytes, DirectoryState | None]]) -> None:
        for path, state in notes:
            # A removal also removes everything below, so it is kept apart from an update.
            key = (path, state is None)
            self._notes.pop(key, None)
            self._notes[key] = state

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[tuple[bytes, DirectoryState | None]]:
        return ((path, state) for (path, _), state in self._notes.items())


class Scanner:
    """Scans one workspace repeatedly, each time reading only files that may have changed."""

    def __init__(
        self,
        fs: Filesystem,
        objects: ObjectStore,
        cache: StatCache | None,
        second_reader: SecondReader | None = None,
        databases: LiveDatabases | None = None,
        file_filter: FileFilter | None = None,
    ) -> None:
        self.fs = fs
        self.file_filter = file_filter
        self.databases = databases
        self._second_reader = second_reader
        self.watch: WorkspaceWatch | None = None
        self.paranoid = False
        self.eventless: set[bytes] = set()
        self.kept: ExemptPaths | None = None
        self._objects = objects
        self._cache = cache
        self._generation: str | None = None
        self._root: DirectoryState | None = None
        self._stored: dict[bytes, bytes] = {}
        self._pending = PendingNotes()

    @property
    def root(self) -> DirectoryState | None:
        """The last remembered scan of this process."""
        return self._root

    def scan(self, root_fd: int, request: ScanRequest, *, generation: str) -> Scan:
        self._use_generation(generation)
        if self.watch is not None:
            from holdfast.engine.scan.watched_scan import watched_scan  # late: few are watched

            return watched_scan(self, self.watch, root_fd, request)
        return self.whole(root_fd, request)

    def whole(self, root_fd: int, request: ScanRequest, start: ScanStart | None = None) -> Scan:
        """Visit everything."""
        previous = self._root or self._remembered(b"")
        meter = None
        progress = request.progress
        if progress is not None and progress.live:
            meter = self._meter(root_fd, request.policy, request.started_ns, previous, progress)
        rationed = request.largest_bytes is not None
        if previous is None and not (request.wanted or rationed):
            aided = self._walked_with_aid(root_fd, request, meter)
            if aided is not None:
                return self.built(aided, request, start)
        walker = self._walker(request, self._capture(request, meter), self._remembered, meter)
        with self._wanted(root_fd, request) as wanted:
            walked = walker.walk(root_fd, previous, wanted)
        return self.built(walked, request, start)

    @contextmanager
    def _wanted(self, root_fd: int, request: ScanRequest) -> Iterator[RequiredTree | None]:
        if not request.wanted:
            yield None
            return
        # Imported late: only restores need these.
        from holdfast.engine.restore.directory_handles import DirectoryHandles
        from holdfast.engine.scan.target_rules import RequiredTree, TargetRules

        if request.rules_of is None:
            yield RequiredTree(self._load_tree, request.wanted)
        else:
            with DirectoryHandles(self.fs, root_fd) as handles:
                rules = TargetRules(
                    self.fs,
                    handles,
                    request.policy,
                    self._objects,
                    self._load_tree,
                    request.rules_of.tree,
                    within=request.rules_of.within,
                )
                yield RequiredTree(self._load_tree, request.wanted, rules=rules)

    def _capture(self, request: ScanRequest, meter: ScanMeter | None) -> FileCapture:
        if request.largest_bytes is None:
            return FileCapture(self.fs, request.writer, request.started_ns, meter)
        from holdfast.engine.scan.scan_meter import BudgetedCapture  # late: rarely needed

        return BudgetedCapture(
            self.fs,
            request.writer,
            request.started_ns,
            meter,
            self._objects,
            request.largest_bytes,
        )

    def knows_workspace(self, generation: str) -> bool:
        """Whether a scan now could use the results of an earlier one."""
        self._use_generation(generation)
        return self._root is not None or b"" in self._stored

    def measure(
        self, root_fd: int, policy: CapturePolicy, capture: FileCapture, *, started_ns: int
    ) -> DirectoryState:
        """Pass every file that a scan would read now to `capture`; reads and keeps nothing."""
        walker = Walker(
            self.fs, capture, policy, self._remembered, started_ns, databases=self.databases
        )
        return walker.walk(root_fd, self._root or self._remembered(b""), None)

    def left_out(
        self, root_fd: int, policy: CapturePolicy, *, generation: str, started_ns: int
    ) -> list[Skipped]:
        """The paths that a scan would leave out now; reads and keeps nothing."""
        from holdfast.engine.scan.scan_meter import NoReadCapture

        self._use_generation(generation)
        capture = NoReadCapture(self.fs, started_ns)
        return annotate(self.measure(root_fd, policy, capture, started_ns=started_ns))[1]

    def _walker(
        self,
        request: ScanRequest,
        capture: FileCapture,
        remembered: Callable[[bytes], DirectoryState | None],
        meter: ScanMeter | None,
    ) -> Walker:
        watch = self.watch.watch if self.watch is not None else None
        started_ns = request.started_ns
        policy, databases = request.policy, self.databases
        return Walker(self.fs, capture, policy, remembered, started_ns, meter, watch, databases)

    def _walked_with_aid(
        self, root_fd: int, request: ScanRequest, meter: ScanMeter | None
    ) -> DirectoryState | None:
        """None if there is no second process, or if it failed."""
        if self._second_reader is None or request.aided_writer is None:
            return None
        aid = self._second_reader.aid_for(request.aided_writer)
        if aid is None:
            return None
        from holdfast.engine.scan.aided_walk import AidedCapture  # late: needed once per store

        started_ns = request.started_ns
        capture = AidedCapture(self.fs, request.writer, started_ns, meter, aid, root_fd)
        try:
            walker = self._walker(request, capture, capture.remembered, meter)
            walked = walker.walk(root_fd, None, None)
            return walked if aid.finish() else None
        finally:
            aid.close()

    def built(self, walked: DirectoryState, request: ScanRequest, start: ScanStart | None) -> Scan:
        """Annotate the walked directories and build their trees."""
        root, skipped = annotate(walked)
        encoded_trees: dict[Digest, bytes] = {}
        fresh: dict[bytes, DirectoryState] = {}

        def sink(path: bytes, state: DirectoryState, encoded: bytes) -> None:
            assert state.digest is not None
            request.writer.add(state.digest, encoded, similar_to=state.base)
            if request.keep_trees:
                encoded_trees[state.digest] = encoded
            fresh[path] = state

        build_trees(root, b"", sink)
        assert root.digest is not None
        kept = request.policy.kept
        return Scan(root, root.digest, skipped, self._root, encoded_trees, fresh, start, kept)

    def _meter(
        self,
        root_fd: int,
        policy: CapturePolicy,
        started_ns: int,
        previous: DirectoryState | None,
        progress: ProgressRelay,
    ) -> ScanMeter:
        from holdfast.engine.scan.scan_meter import NoReadCapture, ScanMeter

        if previous is not None:
            return ScanMeter(progress, "reading files", previous.files)
        counted = ScanMeter(progress, "counting files", None)
        capture = NoReadCapture(self.fs, started_ns)
        Walker(
            self.fs, capture, policy, nothing_known, started_ns, counted, databases=self.databases
        ).walk(root_fd, None, None)
        return ScanMeter(progress, "reading files", counted.files)

    def remember(self, scan: Scan) -> None:
        """Keep this scan for the next one, in this process and in the cache."""
        before, self._root = self._root, scan.root
        self.kept = scan.kept
        self._stored = {}
        if self.watch is not None and scan.start is not None:
            from holdfast.engine.scan.watched_scan import remember_watched

            remember_watched(self, self.watch, scan, scan.start)
        if self._cache is None or self._generation is None or not scan.fresh:
            return
        self._pending.add(_changed_entries(before, scan.fresh))
        if scan.start is None or scan.start.whole or len(self._pending) > _MOST_PENDING:
            self.flush()

    def flush(self) -> None:
        """Write pending updates to the cache. A watched workspace does not need them soon, and lost
        updates only cost another read."""
        pending, self._pending = self._pending, PendingNotes()
        if len(pending) and self._cache is not None and self._generation is not None:
            self._cache.update(
                self._generation,
                ((path, None if state is None else encode_state(state)) for path, state in pending),
            )

    def _use_generation(self, generation: str) -> None:
        if generation == self._generation:
            return
        self._generation = generation
        self._root = None
        self._pending = PendingNotes()
        self._stored = self._cache.load(generation) if self._cache is not None else {}

    def _load_tree(self, digest: Digest) -> Tree:
        return decode_tree(self._objects.read(digest))

    def _remembered(self, path: bytes) -> DirectoryState | None:
        entry = self._stored.get(path)
        if entry is None:
            return None
        try:
            return decode_state(entry)
        except ValueError:
            return None


def _changed_entries(
    before: DirectoryState | None, fresh: dict[bytes, DirectoryState]
) -> Iterator[tuple[bytes, DirectoryState | None]]:
    """Cache updates: directories to store, and directories to forget."""
    for path, state in fresh.items():
        earlier = state_at(before, path)
        for name in earlier.children.keys() - state.children.keys() if earlier else ():
            yield join(path, name), None
        yield path, state


def state_at(root: DirectoryState | None, path: bytes) -> DirectoryState | None:
    state: object = root
    for name in path.split(b"/") if path else ():
        if not isinstance(state, DirectoryState):
            return None
        state = state.children.get(name)
    return state if isinstance(state, DirectoryState) else None
