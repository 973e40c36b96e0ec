"""A scan from start to tree: walk, annotate, build; and what to remember for the next one.

What is remembered is only replaced by `remember`, which the caller calls after everything that
the scan stored is durable; a scan whose save failed leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees import Tree, decode_tree
from holdfast.engine.scan.annotations import annotate
from holdfast.engine.scan.directory_state import DirectoryState, decode_state, encode_state
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.engine.scan.tree_builder import build_trees
from holdfast.engine.scan.walker import Walker
from holdfast.engine.scan.wanted import WantedTree
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectStore, ObjectWriter
from holdfast.ports.stat_cache import StatCache

if TYPE_CHECKING:
    from holdfast.engine.progress_relay import ProgressRelay
    from holdfast.engine.scan.scan_meter import ScanMeter


@dataclass(slots=True)
class Scan:
    """The tree of a workspace at one time. `previous` is the scan that was remembered before it;
    `fresh` are the directories that were built for it, and `encoded` their trees, for as long as a
    store does not have them."""

    root: DirectoryState
    tree: Digest
    skipped: list[Skipped]
    previous: DirectoryState | None = None
    encoded: dict[Digest, bytes] = field(default_factory=dict)
    fresh: dict[bytes, DirectoryState] = field(default_factory=dict)

    @property
    def files(self) -> int:
        return self.root.files

    @property
    def size_bytes(self) -> int:
        return self.root.size


class Scanner:
    """Scans one workspace again and again, each time reading only what may have changed."""

    def __init__(self, fs: Filesystem, objects: ObjectStore, cache: StatCache | None) -> None:
        self._fs = fs
        self._objects = objects
        self._cache = cache
        self._generation: str | None = None
        self._root: DirectoryState | None = None
        self._stored: dict[bytes, bytes] = {}

    def scan(
        self,
        root_fd: int,
        policy: CapturePolicy,
        writer: ObjectWriter,
        *,
        generation: str,
        started_ns: int,
        wanted: tuple[Digest, ...] = (),
        keep_trees: bool = False,
        progress: ProgressRelay | None = None,
    ) -> Scan:
        """`wanted` are trees whose paths must be captured even if rules leave them out;
        `keep_trees` is for scans whose writer stores nothing."""
        self._use_generation(generation)
        previous = self._root or self._remembered(b"")
        meter = None
        if progress is not None and progress.live:
            meter = self._meter(root_fd, policy, started_ns, previous, progress)
        walker = Walker(
            self._fs,
            FileCapture(self._fs, writer, started_ns, meter),
            policy,
            self._remembered,
            started_ns,
            meter,
        )
        wanted_tree = WantedTree(self._load_tree, wanted) if wanted else None
        root, skipped = annotate(walker.walk(root_fd, previous, wanted_tree))
        encoded_trees: dict[Digest, bytes] = {}
        fresh: dict[bytes, DirectoryState] = {}

        def sink(path: bytes, state: DirectoryState, encoded: bytes) -> None:
            assert state.digest is not None
            writer.add(state.digest, encoded, similar_to=state.base)
            if keep_trees:
                encoded_trees[state.digest] = encoded
            fresh[path] = state

        build_trees(root, b"", sink)
        assert root.digest is not None
        return Scan(root, root.digest, skipped, self._root, encoded_trees, fresh)

    def _meter(
        self,
        root_fd: int,
        policy: CapturePolicy,
        started_ns: int,
        previous: DirectoryState | None,
        progress: ProgressRelay,
    ) -> ScanMeter:
        from holdfast.engine.scan.scan_meter import NothingRead, ScanMeter

        if previous is not None:
            return ScanMeter(progress, "reading files", previous.files)
        counted = ScanMeter(progress, "counting files", None)
        capture = NothingRead(self._fs, started_ns)
        Walker(self._fs, capture, policy, _nothing_known, started_ns, counted).walk(
            root_fd, None, None
        )
        return ScanMeter(progress, "reading files", counted.files)

    def remember(self, scan: Scan) -> None:
        """Keep this scan for the next one, in this process and, through the cache, beyond it."""
        before, self._root = self._root, scan.root
        self._stored = {}
        if self._cache is None or self._generation is None or not scan.fresh:
            return
        self._cache.update(self._generation, _changed_entries(before, scan.fresh))

    def _use_generation(self, generation: str) -> None:
        if generation == self._generation:
            return
        self._generation = generation
        self._root = None
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


def _nothing_known(path: bytes) -> DirectoryState | None:
    return None


def _changed_entries(
    before: DirectoryState | None, fresh: dict[bytes, DirectoryState]
) -> Iterator[tuple[bytes, bytes | None]]:
    """What the cache has to store, one at a time, and which directories it can forget."""
    for path, state in fresh.items():
        earlier = _state_at(before, path)
        for name in earlier.children.keys() - state.children.keys() if earlier else ():
            yield join(path, name), None
        yield path, encode_state(state)


def _state_at(root: DirectoryState | None, path: bytes) -> DirectoryState | None:
    state: object = root
    for name in path.split(b"/") if path else ():
        if not isinstance(state, DirectoryState):
            return None
        state = state.children.get(name)
    return state if isinstance(state, DirectoryState) else None
