"""Searching the raw bytes of a store for what should not be there any more.

    while the content is still at hand: take its digests, samples of its bytes and of the bytes
    that stand for it on disk → after the removal: read every file of the store and look for them

A sample inside a pack, or in what a record of a pack decodes to, can only belong to content that
stays: packs consist of needed records. It is reported as being elsewhere too. Anywhere else it is a
trace. Very short or uniform content gives no sample that would mean anything; its digest is
searched anyway. No index lists any digest that went; in raw bytes, when there are more than can be
searched in reasonable time, an even choice is. The files of an encrypted store are searched as they
are and as its key opens them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import Digest
from holdfast.domain.purges import PurgeProof, Trace
from holdfast.engine.purge.contents import ComponentFiles, Contents
from holdfast.engine.vault import Vault
from holdfast.ports.objects import all_digests

_SAMPLE_BYTES = 32
_SHORTEST_SAMPLE_BYTES = 6
_FEWEST_DISTINCT_BYTES = 4
_SAMPLED_OBJECTS = 200
_BLOCK_BYTES = 4 << 20
_SEARCH_WORK_BYTES = 8 << 30
_FEWEST_DIGESTS = 64
_MOST_DIGESTS = 20_000
_TELLING_BYTES = 16
"""A shorter sample may be found in content that has nothing to do with it."""

_FEWEST_NEEDLES = 8

_PACKS = Path("objects", "packs")
"""Packs that a repair set aside are none of these: nobody has taken out of them what goes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sought:
    """Bytes to look for, and what finding them would mean."""

    needle: bytes
    what: str
    content: Digest | None = None


def sought_for(
    vault: Vault, contents: Iterable[Digest], removed: Sequence[Checkpoint]
) -> list[Sought]:
    """Samples of content and of what was said, gathered while everything can still be read."""
    found: list[Sought] = []
    packs = vault.open_packs()
    for digest in _even_choice(sorted(contents), _SAMPLED_OBJECTS):
        data = vault.objects.read(digest)
        # A version of a file that stays resembles the one that goes; that is nothing to report.
        told = None if removed else digest
        found += [Sought(s, "some of its bytes", told) for s in _samples(data)]
        stored = packs.stored_form(digest)
        if stored != data:
            found += [Sought(s, "some of its stored bytes") for s in _samples(stored)[:1]]
    for text in _texts(vault, removed):
        found += [Sought(sample, "what was said about it") for sample in _samples(text)]
    return found


def search(vault: Vault, samples: Sequence[Sought], gone: AbstractSet[Digest]) -> PurgeProof:
    """Called with the store's lock held, when everything should be gone."""
    files = list(vault.files.files())
    size = sum(map(_size_of, files)) or 1
    most = max(_FEWEST_DIGESTS, min(_MOST_DIGESTS, _SEARCH_WORK_BYTES // size))
    digests = _even_choice(sorted(gone), most)
    sought = [Sought(form, "a digest") for d in digests for form in (d, d.hex().encode())]
    known = gone - vault.objects.missing(gone)
    traces = dict.fromkeys(Trace("objects", f"object {digest.hex()}") for digest in sorted(known))
    elsewhere: set[Digest] = set()
    searched_bytes = 0
    for path in files:
        name = path.relative_to(vault.files.directory)
        in_pack = name.parent == _PACKS
        if path.suffix == ".pack" and not in_pack:
            traces[Trace(name.as_posix(), "a pack that is out of use, and may hold it")] = None
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
    told = [s.needle for s in samples if s.content is not None and len(s.needle) >= _TELLING_BYTES]
    most = max(_FEWEST_NEEDLES, _SEARCH_WORK_BYTES // size)
    places, components = paths_holding(vault, {*needles, *_even_choice(told, most)})
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
    """From the beginning, the middle and the end; nothing that would be found anywhere."""
    middle = max(len(data) // 2 - _SAMPLE_BYTES // 2, 0)
    starts = {0, middle, max(len(data) - _SAMPLE_BYTES, 0)}
    cut = [data[start : start + _SAMPLE_BYTES] for start in sorted(starts)]
    return [
        sample
        for sample in dict.fromkeys(cut)
        if len(sample) >= _SHORTEST_SAMPLE_BYTES and len(set(sample)) >= _FEWEST_DISTINCT_BYTES
    ]


def _texts(vault: Vault, removed: Sequence[Checkpoint]) -> Iterator[bytes]:
    """Reasons, names and the like of removed checkpoints that nothing else says too."""
    if not removed:
        return
    gone = {checkpoint.id for checkpoint in removed}
    staying = [_said(c) for c in vault.catalog.roots() if c.id not in gone]
    for checkpoint in removed:
        for text in _said(checkpoint):
            if not any(text in other for said in staying for other in said):
                yield text.encode()


def _said(checkpoint: Checkpoint) -> list[str]:
    intent = checkpoint.intent
    said = [intent.reasoning, intent.goal_id, intent.task_id, intent.checkpoint_name, *intent.tags]
    said += [call for call in intent.tool_calls if isinstance(call, str)]
    return [text for text in said if text]


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in large pieces that overlap, so that nothing is missed between two of them. Some need
    no lock to be removed, such as the notes of hooks: what is gone holds nothing."""
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
    """Paths of checkpoints whose content holds one of the samples, and components with content that
    does and belongs to no path. Every object is decoded for it."""
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
    for checkpoint in vault.catalog.roots():
        places.update(contents.places(checkpoint.tree, holders, known))
        places |= files.places(checkpoint.components, holders)
        components |= files.unnamed(checkpoint.components, holders)
    return tuple(sorted(places)), tuple(sorted(components))


def is_in_file_names(vault: Vault, needles: Iterable[bytes]) -> bool:
    """Whether any file or directory of a checkpoint is named with one of the needles."""
    pending = list({checkpoint.tree for checkpoint in vault.catalog.roots()})
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
