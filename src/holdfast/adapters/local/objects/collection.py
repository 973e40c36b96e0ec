"""Giving space back: packs are rewritten without what nobody needs.

    a pack with nothing needed goes; one with much waste has its needed records copied to a new pack
    → new pack durable → index points to it, durable → old pack unlinked

A record stored against a base needs that base, so bases of needed records are needed too. A block
is written again with those of its members that are needed.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeAlias

from holdfast.adapters.local.objects.blocks import block_record, objects_in, open_block
from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.objects.packs import PACK_MAGIC, PackAppender
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, RecordFormat
from holdfast.domain.trees.objects import digest_of
from holdfast.values.compression import Codec

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.local import LocalObjectStore

REWRITE_ABOVE_WASTE = 0.3
_THOROUGHLY_ABOVE_WASTE = 0.01

Records: TypeAlias = dict[Location, list[Digest]]
"""Where records stand, and what of each is meant: one object, or members of a block."""


def collect(
    store: LocalObjectStore,
    needed: AbstractSet[Digest],
    limit_bytes: int | None = None,
    *,
    thorough: bool = False,
) -> int:
    """Called with the store's lock held; returns the bytes given back. If it is `thorough`, packs
    with little waste are rewritten as well.

    After about `limit_bytes` of packs it stops; called again it goes on. Nothing goes when the
    index does not know something that is needed: then it cannot tell what is waste.
    """
    placed = dict(store.index.locations())
    needed = needed | _bases(store, needed, placed)
    by_pack: defaultdict[int, Records] = defaultdict(dict)
    located = 0
    for digest, place in placed.items():
        by_pack[place.pack].setdefault(place, []).append(digest)
        located += digest in needed
    if located < len(needed):
        raise StoreDamaged(
            f"nothing was collected: {len(needed) - located} needed objects are missing",
            hint="run: holdfast check --data",
        )
    _remove_empty_packs(store)
    known = store.index.pack_lengths()
    tolerated = _THOROUGHLY_ABOVE_WASTE if thorough else REWRITE_ABOVE_WASTE
    wasteful = []
    for number in store.packs.numbers():
        if number not in known:
            continue  # nobody knows yet what it holds
        kept: Records = {}
        live = 0
        for place, digests in by_pack[number].items():
            if wanted := [digest for digest in digests if digest in needed]:
                kept[place] = wanted
                live += place.length * len(wanted) // len(digests)
        size = store.packs.size_of(number)
        if not kept or size - live > size * tolerated:
            wasteful.append((number, size, kept))
    if not wasteful:
        return 0
    # Before anything goes, and durably: whoever remembers digests must learn that some are gone.
    store.index.start_generation()
    freed = looked_at = 0
    for number, size, kept in wasteful:
        freed += size - rewrite_pack(store, number, kept)
        looked_at += size
        if limit_bytes is not None and looked_at >= limit_bytes:
            break
    return freed


def stored_sizes(store: LocalObjectStore) -> Iterator[tuple[Digest, int]]:
    """Members of a block share what it takes; a base counts for itself alone."""
    placed = list(store.index.locations())
    members = Counter(place for _, place in placed)
    return ((digest, place.length // members[place]) for digest, place in placed)


def unneeded_bytes(store: LocalObjectStore, needed: AbstractSet[Digest]) -> int:
    """What objects take that nobody needs; how much of it is given back depends on the packs."""
    placed = dict(store.index.locations())
    needed = needed | _bases(store, needed, placed)
    records: defaultdict[Location, list[Digest]] = defaultdict(list)
    for digest, place in placed.items():
        records[place].append(digest)
    return sum(
        place.length * sum(digest not in needed for digest in digests) // len(digests)
        for place, digests in records.items()
    )


def _remove_empty_packs(store: LocalObjectStore) -> None:
    """Packs that were begun and abandoned before anything was in them."""
    known = store.index.pack_lengths()
    for number in store.packs.numbers():
        if number not in known and store.packs.size_of(number) <= len(PACK_MAGIC):
            store.packs.remove(number)


def _bases(
    store: LocalObjectStore, needed: AbstractSet[Digest], placed: Mapping[Digest, Location]
) -> set[Digest]:
    """Every base, and base of a base, of a needed record."""
    bases: set[Digest] = set()
    pending = [place for digest, place in placed.items() if digest in needed and place.depth]
    while pending:
        place = pending.pop()
        base = store.packs.records.decode(
            store.packs.read(place.pack, place.offset, place.length)
        ).base
        if base is None or base in bases:
            continue
        bases.add(base)
        found = placed.get(base)
        if found is not None and found.depth and base not in needed:
            pending.append(found)
    return bases


def rewrite_pack(store: LocalObjectStore, number: int, kept: Records) -> int:
    """Copy what is kept to a new pack and unlink the old one; the size of the new pack."""
    moved: list[tuple[Digest, Location]] = []
    size = 0
    target = 0
    if kept:
        target = max((*store.packs.numbers(), *store.index.pack_lengths())) + 1
        appender = PackAppender(store.fs, store.packs, target, create=True)
        try:
            for place, digests in sorted(kept.items(), key=lambda item: item[0].offset):
                encoded = _without_others(
                    store.packs.records,
                    store.packs.read(number, place.offset, place.length),
                    digests,
                )
                offset = appender.append(encoded)
                new_place = Location(target, offset, len(encoded), place.depth)
                moved.extend((digest, new_place) for digest in digests)
            appender.sync()
            size = appender.end
        except BaseException:
            # Cut off in between: nothing names the new pack yet, and the old one is whole.
            with contextlib.suppress(OSError):
                store.packs.remove(target)
            raise
        finally:
            appender.close()
    store.index.replace_pack(number, moved, (target, size) if kept else None)
    store.packs.remove(number)
    return size


def _without_others(records: RecordFormat, encoded: bytes, digests: list[Digest]) -> bytes:
    """The same record; of a block, one that holds these members alone."""
    record = records.decode(encoded)
    if record.codec is not Codec.BLOCK or set(digests) == set(objects_in(record)):
        return encoded
    try:
        members = open_block(record)
    except ValueError as error:
        raise BadRecord(str(error)) from None
    kept = [(digest, members[digest]) for digest in digests if digest in members]
    if len(kept) < len(digests) or any(digest_of(data) != digest for digest, data in kept):
        raise BadRecord("a block does not hold what it should")
    return records.encode(block_record(kept))
