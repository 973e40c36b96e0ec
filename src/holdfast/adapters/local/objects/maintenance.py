"""Pack surgery: damaged packs rewritten from their sound records, and exact erasure.

    mend:  sound records → new pack, durable → index points to it, durable → old pack renamed away
    erase: needed records whose base goes are stored without one, durable → every pack that holds
           anything else is rewritten without it, durable → the old one unlinked → the directory
           synced → the index rebuilt, its log emptied

Guarantees: at every instant each object that is kept is readable; a second run finishes what a
first one began. After an erasure the packs consist of needed records only, byte for byte.
Not guaranteed: what the file system does with the blocks of a file that was unlinked.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.blocks import objects_in
from holdfast.adapters.local.objects.collection import Records, rewrite_pack
from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.objects.packs import PACK_MAGIC, SEAL_AT_BYTES, PackAppender, pack_name
from holdfast.adapters.local.objects.verify import damaged_packs
from holdfast.adapters.local.quarantine import quarantine
from holdfast.adapters.local.small_files import sync_directory
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, Record
from holdfast.values.compression import compress

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.local import LocalObjectStore


class LocalPackMaintenance:
    """See `holdfast.ports.pack_maintenance.PackMaintenance`."""

    def __init__(self, store: LocalObjectStore) -> None:
        self._store = store

    def damaged_packs(self) -> dict[int, str]:
        with self._store.lock, store_trouble("reading packs"):
            return damaged_packs(self._store)

    def mend_packs(self, occasion: str) -> int:
        with self._store.lock, store_trouble("mending packs"):
            damaged = damaged_packs(self._store)
            for number in damaged:
                _mend(self._store, number, occasion)
            return len(damaged)

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        with self._store.lock, store_trouble("erasing content"):
            try:
                return _erase_all_but(self._store, needed)
            except BadRecord as error:
                raise StoreDamaged(
                    f"not everything was erased: a record that is needed is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None
            finally:
                self._store.forget_cached()

    def stored_form(self, digest: Digest) -> bytes:
        with self._store.lock:
            return self._store.record(digest).stored


def _mend(store: LocalObjectStore, number: int, occasion: str) -> None:
    kept: Records = {}
    for digest, place in store.index.locations():
        if place.pack == number:
            kept.setdefault(place, []).append(digest)
    moved, target = _copy(store, number, kept)
    store.index.replace_pack(number, moved, target)
    store.packs.close()
    damaged = store.packs.directory / pack_name(number)
    quarantine(store.directory.parent, occasion, damaged)


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


def _erase_all_but(store: LocalObjectStore, needed: AbstractSet[Digest]) -> int:
    store.index.start_generation()
    size_before = _size(store)
    _store_on_their_own(store, needed)
    by_pack: defaultdict[int, Records] = defaultdict(dict)
    for digest, place in store.index.locations():
        if digest in needed:
            by_pack[place.pack].setdefault(place, []).append(digest)
    for number in store.packs.numbers():
        kept = by_pack[number]
        size = len(PACK_MAGIC) + sum(place.length for place in kept)
        if (
            not kept
            or size != store.packs.size_of(number)
            or any(_holds_others(store, place, needed) for place in kept)
        ):
            rewrite_pack(store, number, kept)
    sync_directory(store.fs, os.fsencode(store.packs.directory))
    store.index.keep_only(needed)
    return max(size_before - _size(store), 0)


def _holds_others(store: LocalObjectStore, place: Location, needed: AbstractSet[Digest]) -> bool:
    """Whether a record is a block with members that go, or that stand elsewhere as well."""
    return any(digest not in needed for digest in objects_in(_record_at(store, place)))


def _record_at(store: LocalObjectStore, place: Location) -> Record:
    return store.packs.records.decode(store.packs.read(place.pack, place.offset, place.length))


def _store_on_their_own(store: LocalObjectStore, needed: AbstractSet[Digest]) -> None:
    """Needed records whose base is not: stored again without one, in packs of their own."""
    appenders: list[PackAppender] = []
    moved: list[tuple[Digest, Location]] = []
    try:
        for digest, place in list(store.index.locations()):
            if place.depth == 0 or digest not in needed:
                continue
            base = _record_at(store, place).base
            if base is None or base in needed:
                continue
            codec, stored = compress(data := store.read(digest))
            record = Record(digest, codec, 0, len(data), None, stored)
            encoded = store.packs.records.encode(record)
            if not appenders or appenders[-1].end >= SEAL_AT_BYTES:
                number = max(store.packs.numbers(), default=0) + 1
                appenders.append(PackAppender(store.fs, store.packs, number, create=True))
            offset = appenders[-1].append(encoded)
            moved.append((digest, Location(appenders[-1].number, offset, len(encoded), 0)))
        for appender in appenders:
            appender.sync()
        if appenders:
            store.index.add(moved, [(a.number, a.end) for a in appenders])
    finally:
        for appender in appenders:
            appender.close()


def _size(store: LocalObjectStore) -> int:
    return sum(store.packs.size_of(number) for number in store.packs.numbers())
