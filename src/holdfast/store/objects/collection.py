"""Giving space back: packs are rewritten without what nobody needs.

    a pack with nothing needed goes; one with much waste has its needed records copied to a new pack
    → new pack durable → index points to it, durable → old pack unlinked

A record stored against a base needs that base, so bases of needed records are needed too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from holdfast.domain.ids import Digest
from holdfast.store.objects.index import Location
from holdfast.store.objects.packs import PackAppender
from holdfast.store.objects.records import decode_record

if TYPE_CHECKING:
    from holdfast.store.objects.local import LocalObjectStore

REWRITE_ABOVE_WASTE = 0.3


def collect(store: LocalObjectStore, needed: AbstractSet[Digest]) -> int:
    """Called with the store's lock held; returns the bytes given back."""
    needed = needed | _bases(store, needed)
    by_pack: defaultdict[int, list[tuple[Digest, Location]]] = defaultdict(list)
    for digest, place in store.index.locations():
        by_pack[place.pack].append((digest, place))
    wasteful = []
    for number in store.packs.numbers():
        kept = [item for item in by_pack[number] if item[0] in needed]
        size = store.packs.size_of(number)
        live = sum(place.length for _, place in kept)
        if size - live > size * REWRITE_ABOVE_WASTE:
            wasteful.append((number, size, kept))
    if not wasteful:
        return 0
    # Before anything goes, and durably: whoever remembers digests must learn that some are gone.
    store.index.start_generation()
    return sum(size - _rewrite(store, number, kept) for number, size, kept in wasteful)


def _bases(store: LocalObjectStore, needed: AbstractSet[Digest]) -> set[Digest]:
    """Every base, and base of a base, of a needed record."""
    bases: set[Digest] = set()
    pending = [(digest, place) for digest, place in store.index.locations() if digest in needed]
    while pending:
        _, place = pending.pop()
        if place.depth == 0:
            continue
        base = decode_record(store.packs.read(place.pack, place.offset, place.length)).base
        if base is None or base in bases:
            continue
        bases.add(base)
        found = store.index.find(base)
        if found is not None and base not in needed:
            pending.append((base, found))
    return bases


def _rewrite(store: LocalObjectStore, number: int, kept: list[tuple[Digest, Location]]) -> int:
    """Copy what is kept to a new pack and unlink the old one; the size of the new pack."""
    moved: list[tuple[Digest, Location]] = []
    size = 0
    target = 0
    if kept:
        target = store.packs.numbers()[-1] + 1
        appender = PackAppender(store.fs, store.packs, target, create=True)
        try:
            for digest, place in sorted(kept, key=lambda item: item[1].offset):
                record = store.packs.read(number, place.offset, place.length)
                decode_record(record)
                offset = appender.append(record)
                moved.append((digest, Location(target, offset, place.length, place.depth)))
            appender.sync()
            size = appender.end
        finally:
            appender.close()
    store.index.replace_pack(number, moved, (target, size) if kept else None)
    store.packs.remove(number)
    return size
