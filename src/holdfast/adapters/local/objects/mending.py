"""Packs with damaged stretches written anew from their sound records; the old ones set aside.

    sound records → new pack, durable → index points to it, durable → old pack renamed away

Guarantee: whatever could be read before can be read after, and at every instant between.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.blocks import objects_in
from holdfast.adapters.local.objects.checking import damaged_packs
from holdfast.adapters.local.objects.collection import Records
from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.objects.packs import PackAppender, pack_name
from holdfast.adapters.local.objects.records import BadRecord
from holdfast.adapters.local.setting_aside import set_aside
from holdfast.domain.ids import Digest

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.local import LocalObjectStore


def mend_packs(store: LocalObjectStore, directory: Path, occasion: str) -> int:
    """Called with the store's lock held."""
    damaged = damaged_packs(store)
    for number in damaged:
        kept: Records = {}
        for digest, place in store.index.locations():
            if place.pack == number:
                kept.setdefault(place, []).append(digest)
        moved, target = _copy(store, number, kept)
        store.index.replace_pack(number, moved, target)
        store.packs.close()
        set_aside(directory, occasion, store.packs.directory / pack_name(number))
    return len(damaged)


def _copy(
    store: LocalObjectStore, number: int, kept: Records
) -> tuple[list[tuple[Digest, Location]], tuple[int, int] | None]:
    if not kept:
        return [], None
    target = max((*store.packs.numbers(), *store.index.pack_lengths())) + 1
    appender = PackAppender(store.fs, store.packs, target, create=True)
    moved: list[tuple[Digest, Location]] = []
    try:
        for place, digests in kept.items():
            record = store.packs.read(number, place.offset, place.length)
            try:
                held = set(objects_in(store.packs.records.decode(record)))
            except BadRecord:
                continue  # it stays in the pack that is set aside
            if held.isdisjoint(digests):
                continue
            offset = appender.append(record)
            new_place = Location(target, offset, place.length, place.depth)
            moved += [(digest, new_place) for digest in digests if digest in held]
        appender.sync()
        return moved, (target, appender.end)
    finally:
        appender.close()
