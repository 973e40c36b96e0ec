"""Searches for remaining purged content: in the store's raw bytes, in git, and in other stores.

    while the content is still available: take its digests, samples of its bytes and of its stored
    bytes, and its git ids → after the removal: search every file of the store for them; let
    components search outside the store; ask the user's other stores for the digests

A sample in a pack, or in a decoded pack record, can only belong to remaining content, because packs
contain only needed records. It is reported as also being elsewhere. Anywhere else it is a trace.
Very short or uniform content has no meaningful sample, but its digest is searched for anyway. No
index lists a removed digest. If there are too many digests for a search of raw bytes in reasonable
time, an evenly spread selection is used. The files of an encrypted store are searched both raw and
decrypted.

Guarantee: only searched places are reported as searched. Not guaranteed: transformed content, for
example by a git filter, is found by its path only.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.purges import Holder, Purged, PurgeProof, Trace
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.wording import count_words
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.purge.contents import ComponentFiles, Contents, files_below, is_absolute
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.component import SearchableComponent
from holdfast.ports.objects import all_digests

_SAMPLE_BYTES = 32
_SHORTEST_SAMPLE_BYTES = 6
_FEWEST_DISTINCT_BYTES = 4
_SAMPLED_OBJECTS = 200
_BLOCK_BYTES = 4 << 20
_SEARCH_WORK_BYTES = 8 << 30
_FEWEST_DIGESTS = 64
_MOST_DIGESTS = 20_000
_DISTINCTIVE_BYTES = 16
"""A shorter sample may occur in unrelated content."""

_FEWEST_NEEDLES = 8
_MOST_HASHED_BYTES = 1 << 30

_PACKS = Path("objects", "packs")
"""Quarantined packs are not included: purged content has not been removed from them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes to search for, and the meaning of a match."""

    needle: bytes
    what: str
    content: Digest | None = None


def samples_for(
    vault: Vault, contents: Iterable[Digest], removed: Sequence[Checkpoint]
) -> list[Sample]:
    """Samples of content and messages, taken while everything can still be read."""
    found: list[Sample] = []
    packs = vault.open_packs()
    for digest in _even_choice(sorted(contents), _SAMPLED_OBJECTS):
        data = vault.objects.read(digest)
        # A remaining version of a file resembles the removed one, which is not a trace.
        content = None if removed else digest
        found += [Sample(s, "some of its bytes", content) for s in _samples(data)]
        stored = packs.stored_form(digest)
        if stored != data:
            found += [Sample(s, "some of its stored bytes") for s in _samples(stored)[:1]]
    for text in _texts(vault, removed):
        found += [Sample(sample, "a mention of it") for sample in _samples(text)]
    return found


def search(vault: Vault, samples: Sequence[Sample], gone: AbstractSet[Digest]) -> PurgeProof:
    """Called with the store's lock held, after the removal."""
    files = list(vault.files.files())
    size = sum(map(_size_of, files)) or 1
    most = max(_FEWEST_DIGESTS, min(_MOST_DIGESTS, _SEARCH_WORK_BYTES // size))
    digests = _even_choice(sorted(gone), most)
    sought = [Sample(form, "a digest") for d in digests for form in (d, d.hex().encode())]
    known = gone - vault.objects.missing(gone)
    traces = dict.fromkeys(Trace("objects", f"object {digest.hex()}") for digest in sorted(known))
    elsewhere: set[Digest] = set()
    searched_bytes = 0
    for path in files:
        name = path.relative_to(vault.files.directory)
        in_pack = name.parent == _PACKS
        if path.suffix == ".pack" and not in_pack:
            traces[Trace(name.as_posix(), "an unused pack that may contain it")] = None
        for block in chain(_blocks(path), vault.files.opened_parts(path)):
            searched_bytes += len(block)
            found = [one for one in sought if one.needle in block]
            for one in (sample for sample in samples if sample.needle in block):
                if not in_pack:
                    found.append(one)
                elif one.content is not None:
                    elsewhere.add(one.content)
            traces |= dict.fromkeys(Trace(name.as_posix(), one.what) for one in found)
    needles = [s.needle for s in samples if s.content in elsewhere]
    distinctive = [
        s.needle for s in samples if s.content is not None and len(s.needle) >= _DISTINCTIVE_BYTES
    ]
    most = max(_FEWEST_NEEDLES, _SEARCH_WORK_BYTES // size)
    places, components = paths_holding(vault, {*needles, *_even_choice(distinctive, most)})
    return PurgeProof(
        files=len(files),
        searched_bytes=searched_bytes,
        digests=len(digests),
        samples=len(samples),
        traces=tuple(traces),
        elsewhere=places,
        components=components,
    )


def _samples(data: bytes) -> list[bytes]:
    """From the start, the middle and the end; without bytes that could occur anywhere."""
    middle = max(len(data) // 2 - _SAMPLE_BYTES // 2, 0)
    starts = {0, middle, max(len(data) - _SAMPLE_BYTES, 0)}
    cut = [data[start : start + _SAMPLE_BYTES] for start in sorted(starts)]
    return [
        sample
        for sample in dict.fromkeys(cut)
        if len(sample) >= _SHORTEST_SAMPLE_BYTES and len(set(sample)) >= _FEWEST_DISTINCT_BYTES
    ]


def _texts(vault: Vault, removed: Sequence[Checkpoint]) -> Iterator[bytes]:
    """Reasons, names and the like that only removed checkpoints contain."""
    if not removed:
        return
    gone = {checkpoint.id for checkpoint in removed}
    staying = [_texts_of(c) for c in all_checkpoints(vault.catalog) if c.id not in gone]
    for checkpoint in removed:
        for text in _texts_of(checkpoint):
            if not any(text in other for said in staying for other in said):
                yield text.encode()


def _texts_of(checkpoint: Checkpoint) -> list[str]:
    intent = checkpoint.intent
    said = [intent.reasoning, intent.goal_id, intent.task_id, intent.checkpoint_name, *intent.tags]
    said += [call for call in intent.tool_calls if isinstance(call, str)]
    return [text for text in said if text]


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in large overlapping blocks, so that no match is missed between two. Some files, such
    as the notes of hooks, may be deleted without a lock; those contain nothing."""
    overlap = b""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield overlap + block
            overlap = block[-4096:]


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def paths_holding(
    vault: Vault, samples: AbstractSet[bytes]
) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """Paths in checkpoints whose content contains a sample, and components with such content that
    belongs to no path. Decodes every object."""
    holders = {
        digest
        for digest, data in vault.objects.read_many(all_digests(vault.objects) if samples else ())
        if any(sample in data for sample in samples)
    }
    if not holders:
        return (), ()
    contents = Contents(vault, vault.load_tree)
    known: dict[Digest, tuple[bytes, ...]] = {}
    files = ComponentFiles(vault, vault.objects.read)
    places: set[bytes] = set()
    components: set[str] = set()
    for checkpoint in all_checkpoints(vault.catalog):
        places.update(contents.places(checkpoint.tree, holders, known))
        places |= files.places(checkpoint.components, holders)
        components |= files.unnamed(checkpoint.components, holders)
    return tuple(sorted(places)), tuple(sorted(components))


def is_in_file_names(vault: Vault, needles: Iterable[bytes]) -> bool:
    """Whether any file or directory name in a checkpoint contains one of the needles."""
    pending = list({checkpoint.tree for checkpoint in all_checkpoints(vault.catalog)})
    seen = set(pending)
    while pending:
        tree = vault.load_tree(pending.pop())
        if any(needle in name for name in tree.by_name for needle in needles):
            return True
        below = {directory.digest for directory in tree.directories} - seen
        seen |= below
        pending += below
    return False


def _even_choice(items: Sequence[T], most: int) -> list[T]:
    if len(items) <= most:
        return list(items)
    return [items[number * len(items) // most] for number in range(most)]


def purged_content(
    vault: Vault,
    load: TreeLoader,
    roots: Sequence[Checkpoint],
    paths: Sequence[bytes],
    gone: frozenset[Digest],
) -> Purged:
    """The content to purge, as other places would know it: the files at these paths or, without
    paths, those whose content is removed."""
    inside = tuple(path for path in paths if not is_absolute(path))
    found: dict[Digest, FileEntry] = {}
    seen: set[Digest] = set()
    for checkpoint in roots:
        at_paths = (entry_at(load, checkpoint.tree, path) for path in inside)
        tops = [entry for entry in at_paths if entry is not None]
        if not paths:
            tops = list(load(checkpoint.tree).by_name.values())
        for entry in files_below(load, tops, seen):
            if paths or entry.digest in gone or entry.chunks in gone:
                found[entry.digest] = entry
    ids: set[str] = set()
    left = _MOST_HASHED_BYTES
    hashed = 0
    for entry in sorted(found.values(), key=lambda one: one.size):
        left -= entry.size
        if entry.size and left >= 0:
            ids |= _git_ids(vault, entry)
            hashed += 1
    whole = hashed == sum(1 for entry in found.values() if entry.size)
    return Purged(inside, frozenset(ids), is_whole=whole)


def _git_ids(vault: Vault, entry: FileEntry) -> set[str]:
    """The blob ids of these bytes in repositories of either format."""
    made = [hashlib.sha1(usedforsecurity=False), hashlib.sha256()]
    for one in made:
        one.update(b"blob %d\0" % entry.size)
    try:
        for piece in read_content(vault.objects, entry):
            for one in made:
                one.update(piece)
    except StoreDamaged:
        return set()
    return {one.hexdigest() for one in made}


def find_holders(
    vault: Vault, purged: Purged, contents: frozenset[Digest], components: Sequence[str]
) -> tuple[Holder, ...]:
    """`components` are those that hold checkpoint data in another form."""
    found: list[Holder] = []
    searched: set[str] = set()
    unsearched: dict[str, str] = {}
    for component in vault.components.all():
        if words := getattr(component, "not_searched", None):
            unsearched[component.name] = words
        if isinstance(component, SearchableComponent):
            found += _held_by_component(vault, component, purged)
            searched |= {component.name, *getattr(component, "also_searches", ())}
    for name in components:
        if name not in searched:
            generic = f"data that {name} keeps outside the store was not searched"
            found.append(Holder(name, unsearched.get(name, generic), is_held=False))
    return (*found, *_held_by_other_stores(vault, contents), *_held_by_agents(vault))


def _held_by_component(
    vault: Vault, component: SearchableComponent, purged: Purged
) -> Sequence[Holder]:
    timeout_s = vault.settings.component_timeout
    try:
        return guarded(
            lambda: component.holders(vault.workspace, purged, timeout_s=timeout_s),
            timeout_s=timeout_s,
        )
    except Refusal as error:
        return [Holder(component.name, f"it could not be searched: {error}", is_held=False)]


def _held_by_other_stores(vault: Vault, contents: frozenset[Digest]) -> Iterator[Holder]:
    held, unsearched = vault.search_other_stores(contents)
    for workspace in held:
        yield Holder(
            "store",
            f"the store of {workspace} has the same content",
            f"holdfast -C {workspace} purge PATH",
        )
    if unsearched:
        stores = count_words(len(unsearched), "other store")
        words = f"{stores} could not be searched (encrypted or unreadable)"
        yield Holder("store", words, "run the purge in that workspace too", is_held=False)


def _held_by_agents(vault: Vault) -> Iterator[Holder]:
    agents = sorted({one.agent for one in vault.catalog.sessions() if one.agent is not None})
    if agents:
        words = f"transcripts and memory of {', '.join(agents)} were not searched"
        yield Holder("agents", words, is_held=False)
