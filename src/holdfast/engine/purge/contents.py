"""Locations of content: paths in trees, and files that components hold.

A component with files maps absolute paths to content (`FileComponent`). For other components, only
equal bytes can be found. Each tree and manifest is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.domain.component_states import (
    ComponentState,
    StoredContent,
    decode_manifest,
    encode_manifest,
)
from holdfast.domain.errors import Refused
from holdfast.domain.ids import Digest
from holdfast.domain.paths import is_within, join
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.trees.objects import decode_chunk_list, digest_of
from holdfast.engine.components.contents import StoreSource
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.components.recorded import recorded_names
from holdfast.engine.vault import Vault
from holdfast.ports.component import FileComponent

T = TypeVar("T")


def files_below(load: TreeLoader, tops: Iterable[Entry], seen: set[Digest]) -> Iterator[FileEntry]:
    """The files of some entries and everything below; directories in `seen` are not entered."""
    pending = list(tops)
    while pending:
        at = pending.pop()
        if isinstance(at, FileEntry):
            yield at
        elif isinstance(at, DirectoryEntry) and at.digest not in seen:
            seen.add(at.digest)
            tree = load(at.digest)
            pending += [*tree.files, *tree.directories]


class Contents:
    """Searches trees, each distinct one once."""

    def __init__(self, vault: Vault, load: TreeLoader) -> None:
        self._vault = vault
        self._load = load
        self._pieces: dict[Digest, frozenset[Digest]] = {}

    def of_file(self, entry: FileEntry) -> frozenset[Digest]:
        """The objects with a file's bytes; none for an empty file, which identifies nothing."""
        if entry.size == 0:
            return frozenset()
        if entry.chunks is None:
            return frozenset((entry.digest,))
        if entry.chunks not in self._pieces:
            listed = decode_chunk_list(self._vault.objects.read(entry.chunks))
            self._pieces[entry.chunks] = frozenset(piece.digest for piece in listed)
        return self._pieces[entry.chunks]

    def below(self, tops: Iterable[Entry], found: set[Digest], seen: set[Digest]) -> None:
        """Add the contents of some entries and everything below them to `found`."""
        for file in files_below(self._load, tops, seen):
            found |= self.of_file(file)

    def places(
        self, root: Digest, wanted: AbstractSet[Digest], known: dict[Digest, tuple[bytes, ...]]
    ) -> tuple[bytes, ...]:
        """Every path of a tree with content in `wanted`; `known` caches subtrees."""
        pending = [root]
        while pending:
            digest = pending[-1]
            if digest in known:
                pending.pop()
                continue
            tree = self._load(digest)
            unknown = [d.digest for d in tree.directories if d.digest not in known]
            if unknown:
                pending += unknown
                continue
            here = [f.name for f in tree.files if not wanted.isdisjoint(self.of_file(f))]
            for directory in tree.directories:
                here += [join(directory.name, path) for path in known[directory.digest]]
            known[digest] = tuple(here)
            pending.pop()
        return known[root]


def is_absolute(path: bytes) -> bool:
    """Whether this is a component's path; workspace paths are relative."""
    return path.startswith(b"/")


def file_components(vault: Vault) -> dict[str, FileComponent]:
    return {c.name: c for c in vault.components.all() if isinstance(c, FileComponent)}


@dataclass(frozen=True, slots=True)
class _Held:
    """One component state, with the content of each of its paths."""

    state: ComponentState
    files: dict[bytes, StoredContent]
    component: FileComponent | None


class ComponentFiles:
    """`read` returns an object, even one that is not stored yet."""

    def __init__(self, vault: Vault, read: Callable[[Digest], bytes]) -> None:
        self._vault = vault
        self._read = read
        self._components = file_components(vault)
        self._held: dict[Digest, tuple[_Held, ...]] = {}

    def has(self, manifest: Digest | None, path: bytes) -> bool:
        return any(self._below(held, (path,)) for held in self._of(manifest))

    def contents(self, manifest: Digest | None, paths: Collection[bytes] | None) -> set[Digest]:
        """The objects with the bytes of these paths, or of everything."""
        found: set[Digest] = set()
        for held in self._of(manifest):
            if paths is None:
                chosen: Iterable[StoredContent] = held.state.contents
            else:
                chosen = [held.files[path] for path in self._below(held, paths)]
            for content in chosen:
                found |= self._objects(content)
        return found

    def places(self, manifest: Digest | None, wanted: AbstractSet[Digest]) -> set[bytes]:
        """Every path with content in `wanted`."""
        return {
            path
            for held in self._of(manifest)
            for path, content in held.files.items()
            if not wanted.isdisjoint(self._objects(content))
        }

    def unnamed(self, manifest: Digest | None, wanted: AbstractSet[Digest]) -> set[str]:
        """Components that have such content but cannot say at which path."""
        return {
            held.state.name
            for held in self._of(manifest)
            if held.component is None
            and any(not wanted.isdisjoint(self._objects(c)) for c in held.state.contents)
        }

    def unsearched(self, manifest: Digest | None) -> set[str]:
        """Components that keep data but cannot say for which paths. Recorded-only components keep
        no file content."""
        unnamed = {held.state.name for held in self._of(manifest) if held.component is None}
        return unnamed - recorded_names(self._vault, unnamed)

    def without(self, manifest: Digest, paths: Collection[bytes]) -> dict[Digest, bytes]:
        """New objects for a manifest without these paths; the manifest itself comes last."""
        new: dict[Digest, bytes] = {}
        states = []
        for held in self._of(manifest):
            state = held.state
            tops = [path for path in paths if self._below(held, (path,))]
            if tops and held.component is not None:
                state = self._rewritten(held, held.component, tops, new)
            states.append(state)
        data = encode_manifest(tuple(states))
        new[digest_of(data)] = data
        return new

    def _rewritten(
        self,
        held: _Held,
        component: FileComponent,
        tops: Sequence[bytes],
        new: dict[Digest, bytes],
    ) -> ComponentState:
        state = held.state
        rest = self._asked(lambda: component.without(state, self._source(state), tops), state.name)
        dropped = {held.files[path].name for path in self._below(held, tops)}
        contents = {c.name: c for c in state.contents if c.name not in dropped}
        for name, data in rest.changed.items():
            digest = digest_of(data)
            new[digest] = data
            contents[name] = StoredContent(name, digest, None, len(data))
        listed = tuple(contents[name] for name in sorted(contents))
        # Remove the notes, so that no later capture concludes that nothing has changed.
        return replace(state, facts=rest.facts, contents=listed, notes={})

    def _below(self, held: _Held, paths: Collection[bytes]) -> list[bytes]:
        return [path for path in held.files if any(is_within(path, top) for top in paths)]

    def _of(self, manifest: Digest | None) -> tuple[_Held, ...]:
        if manifest is None:
            return ()
        if manifest not in self._held:
            states = decode_manifest(self._read(manifest))
            self._held[manifest] = tuple(self._look(state) for state in states)
        return self._held[manifest]

    def _look(self, state: ComponentState) -> _Held:
        component = self._components.get(state.name)
        if component is None or state.failure is not None:
            return _Held(state, {}, None)
        try:
            named = self._asked(lambda: component.files(state, self._source(state)), state.name)
        except Refused:
            return _Held(state, {}, None)  # data without paths is only compared
        found = {path: content for path, name in named.items() if (content := state.content(name))}
        return _Held(state, found, component)

    def _objects(self, content: StoredContent) -> set[Digest]:
        """No objects for an empty file, which identifies nothing."""
        if content.size == 0:
            return set()
        if content.chunks is None:
            return {content.digest}
        return {piece.digest for piece in decode_chunk_list(self._read(content.chunks))}

    def _source(self, state: ComponentState) -> StoreSource:
        return StoreSource(self._vault.objects, state)

    def _asked(self, call: Callable[[], T], name: str) -> T:
        try:
            return guarded(call, timeout_s=self._vault.settings.component_timeout)
        except Refusal as error:
            raise Refused(
                f"nothing was purged: {name} cannot list its content: {error}",
                hint="fix that and try again",
            ) from None
