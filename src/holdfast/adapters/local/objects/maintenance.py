"""Rewriting packs: to free space, to leave damage behind, or to erase content permanently.

    collect: a pack with nothing needed is deleted; one with much waste is rewritten without it
    mend:    sound records → new pack, durable → index points to it, durable → old pack renamed away
    erase:   needed records with an unneeded base are stored without one, durable → every pack that
             holds anything else is rewritten without it, durable → the old one unlinked → the
             directory synced → the index rebuilt, its log emptied

Rewriting a pack: new pack durable → index points to it, durable → old pack unlinked. A record
stored against a base needs that base. A block is rewritten with the members that are needed.

Guarantees: at every moment, each kept object is readable; a second run finishes what a first one
began. After an erasure, packs consist of needed records only, byte for byte.
Not guaranteed: what the file system does with the blocks of an unlinked file.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.objects.packs import (
    PACK_MAGIC,
    SEAL_AT_BYTES,
    PackAppender,
    block_record,
    objects_in,
    open_block,
    pack_name,
    single_record,
)
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import copy_database, quarantine, sync_directory
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, Record, RecordFormat
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.progress import NoProgress, Progress
from holdfast.values.compression import Codec

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import StoreKeys
    from holdfast.ports.filesystem import Filesystem

REWRITE_ABOVE_WASTE = 0.3
_THOROUGHLY_ABOVE_WASTE = 0.01

Records: TypeAlias = dict[Location, list[Digest]]
"""The positions of records, and the relevant objects in each: one object, or members of a block."""


def collect(
    store: LocalObjectStore,
    needed: AbstractSet[Digest],
    limit_bytes: int | None = None,
    *,
    thorough: bool = False,
) -> int:
    """Called with the store's lock held; returns the freed bytes. If `thorough`, packs with little
    waste are rewritten too.

    It stops after about `limit_bytes` of packs, and the next call continues. Nothing is deleted if
    the index lacks a needed object, because then it cannot tell what is waste.
    """
    placed = dict(store.index.locations())
    needed = needed | _bases(store, needed, placed)
    if missing := len(needed - placed.keys()):
        raise StoreDamaged(
            f"no space was freed, because {missing} required objects are missing",
            hint="run: holdfast check --data",
        )
    _remove_empty_packs(store)
    by_pack = _by_pack(placed.items())
    known = store.index.pack_lengths()
    tolerated = _THOROUGHLY_ABOVE_WASTE if thorough else REWRITE_ABOVE_WASTE
    wasteful = []
    for number in store.packs.numbers():
        if number not in known:
            continue  # its content is not indexed yet
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
    # Before anything is deleted, and durably: callers with cached digests must learn that some are
    # gone.
    store.index.start_generation()
    freed = looked_at = 0
    for number, size, kept in wasteful:
        freed += size - _rewrite(store, number, kept)
        looked_at += size
        if limit_bytes is not None and looked_at >= limit_bytes:
            break
    return freed


def stored_sizes(store: LocalObjectStore) -> Iterator[tuple[Digest, int]]:
    """Members of a block share its size; a base counts only for itself."""
    placed = list(store.index.locations())
    members = Counter(place for _, place in placed)
    return ((digest, place.length // members[place]) for digest, place in placed)


def unneeded_bytes(store: LocalObjectStore, needed: AbstractSet[Digest]) -> int:
    """The size of unreferenced objects; how much of it is freed depends on the packs."""
    placed = dict(store.index.locations())
    needed = needed | _bases(store, needed, placed)
    return sum(
        place.length * sum(digest not in needed for digest in digests) // len(digests)
        for records in _by_pack(placed.items()).values()
        for place, digests in records.items()
    )


def _by_pack(places: Iterable[tuple[Digest, Location]]) -> defaultdict[int, Records]:
    """The records of each pack, in the order of the places."""
    found: defaultdict[int, Records] = defaultdict(dict)
    for digest, place in places:
        found[place.pack].setdefault(place, []).append(digest)
    return found


def _remove_empty_packs(store: LocalObjectStore) -> None:
    """Delete packs that were abandoned before anything was written."""
    known = store.index.pack_lengths()
    for number in store.packs.numbers():
        if number not in known and store.packs.size_of(number) <= len(PACK_MAGIC):
            store.packs.remove(number)


def _bases(
    store: LocalObjectStore, needed: AbstractSet[Digest], placed: Mapping[Digest, Location]
) -> set[Digest]:
    """The bases of needed records, and their bases."""
    bases: set[Digest] = set()
    pending = [place for digest, place in placed.items() if digest in needed and place.depth]
    while pending:
        place = pending.pop()
        base = _record_at(store, place).base
        if base is None or base in bases:
            continue
        bases.add(base)
        found = placed.get(base)
        if found is not None and found.depth and base not in needed:
            pending.append(found)
    return bases


def _rewrite(store: LocalObjectStore, number: int, kept: Records) -> int:
    """Copy kept records to a new pack and unlink the old one; returns the size of the new pack."""
    records = store.packs.records
    moved, target = _copy(
        store, number, kept, lambda data, wanted: (_without_others(records, data, wanted), wanted)
    )
    store.index.replace_pack(number, moved, target)
    store.packs.remove(number)
    return 0 if target is None else target[1]


def _copy(
    store: LocalObjectStore,
    number: int,
    kept: Records,
    convert: Callable[[bytes, list[Digest]], tuple[bytes, list[Digest]]],
) -> tuple[list[tuple[Digest, Location]], tuple[int, int] | None]:
    """Copy records of a pack to a new one, durably; returns the new positions, its number and its
    length.

    `convert` returns the record to write, given a record and its kept objects, and which of these
    it holds.
    """
    if not kept:
        return [], None
    appender = store.new_pack()
    moved: list[tuple[Digest, Location]] = []
    try:
        for place, wanted in kept.items():
            stored = store.packs.read(number, place.offset, place.length)
            encoded, held = convert(stored, wanted)
            if held:
                offset = appender.append(encoded)
                new_place = Location(appender.number, offset, len(encoded), place.depth)
                moved += [(digest, new_place) for digest in held]
        appender.sync()
        return moved, (appender.number, appender.end)
    except BaseException:
        # If interrupted, nothing refers to the new pack yet, and the old one is complete.
        with contextlib.suppress(OSError):
            store.packs.remove(appender.number)
        raise
    finally:
        appender.close()


def _without_others(records: RecordFormat, encoded: bytes, digests: list[Digest]) -> bytes:
    """The same record; for a block, one with only these members."""
    record = records.decode(encoded)
    if record.codec is not Codec.BLOCK or set(digests) == set(objects_in(record)):
        return encoded
    try:
        members = open_block(record)
    except ValueError as error:
        raise BadRecord(str(error)) from None
    kept = [(digest, members[digest]) for digest in digests if digest in members]
    if len(kept) < len(digests) or any(digest_of(data) != digest for digest, data in kept):
        raise BadRecord("a block has the wrong content")
    return records.encode(block_record(kept))


def damaged_packs(store: LocalObjectStore, progress: Progress) -> dict[int, str]:
    """Beyond the committed length there are at most leftovers of a killed save, which is not
    damage."""
    lengths = store.index.pack_lengths()
    magic = store.packs.records.pack_magic
    readable = sorted(set(store.packs.numbers()) & lengths.keys())
    found: dict[int, str] = {}
    for done, number in enumerate(readable):
        progress.advance("checking packs", done, len(readable))
        if store.packs.read(number, 0, len(magic)) != magic:
            found[number] = "it is not a pack file"
        for offset, record, end in store.packs.scan(number, 0):
            if offset >= lengths[number]:
                break
            if record is None:
                found[number] = f"{end - offset} bytes at {offset} are not a valid record"
            elif any(store.index.find(digest) is None for digest in objects_in(record)):
                found[number] = f"the object at {offset} is not in the index"
    return found


class LocalPackMaintenance:
    """See `holdfast.ports.objects.PackMaintenance`."""

    def __init__(self, store: LocalObjectStore) -> None:
        self._store = store

    def damaged_packs(self) -> dict[int, str]:
        with self._store.lock, store_trouble("reading packs"):
            return damaged_packs(self._store, NoProgress())

    def mend_packs(self, occasion: str) -> int:
        with self._store.lock, store_trouble("repairing packs"):
            damaged = damaged_packs(self._store, NoProgress())
            for number in damaged:
                _mend(self._store, number, occasion)
            return len(damaged)

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        with self._store.lock, store_trouble("erasing content"):
            try:
                return _erase_all_but(self._store, needed)
            except BadRecord as error:
                raise StoreDamaged(
                    f"some content was not erased, because a required record is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None
            finally:
                self._store.forget_cached()

    def stored_form(self, digest: Digest) -> bytes:
        with self._store.lock:
            return self._store.record(digest).stored


def _mend(store: LocalObjectStore, number: int, occasion: str) -> None:
    """A damaged record stays in the old pack, which is quarantined."""
    records = store.packs.records
    moved, target = _copy(
        store,
        number,
        _by_pack(store.index.locations())[number],
        lambda data, wanted: (data, _held(records, data, wanted)),
    )
    store.index.replace_pack(number, moved, target)
    store.packs.close()
    quarantine(store.directory.parent, occasion, store.packs.directory / pack_name(number))


def _held(records: RecordFormat, encoded: bytes, wanted: list[Digest]) -> list[Digest]:
    try:
        held = set(objects_in(records.decode(encoded)))
    except BadRecord:
        return []
    return [digest for digest in wanted if digest in held]


def _erase_all_but(store: LocalObjectStore, needed: AbstractSet[Digest]) -> int:
    store.index.start_generation()
    size_before = _size(store)
    _store_without_base(store, needed)
    by_pack = _by_pack(one for one in store.index.locations() if one[0] in needed)
    for number in store.packs.numbers():
        kept = by_pack[number]
        size = len(PACK_MAGIC) + sum(place.length for place in kept)
        if (
            not kept
            or size != store.packs.size_of(number)
            or any(_holds_others(store, place, needed) for place in kept)
        ):
            _rewrite(store, number, kept)
    sync_directory(store.fs, os.fsencode(store.packs.directory))
    store.index.keep_only(needed)
    return max(size_before - _size(store), 0)


def _holds_others(store: LocalObjectStore, place: Location, needed: AbstractSet[Digest]) -> bool:
    """Whether a record is a block with members that are not needed."""
    return any(digest not in needed for digest in objects_in(_record_at(store, place)))


def _record_at(store: LocalObjectStore, place: Location) -> Record:
    return store.packs.records.decode(store.packs.read(place.pack, place.offset, place.length))


def _store_without_base(store: LocalObjectStore, needed: AbstractSet[Digest]) -> None:
    """Store needed records with an unneeded base again without one, in separate packs."""
    appenders: list[PackAppender] = []
    moved: list[tuple[Digest, Location]] = []
    try:
        for digest, place in list(store.index.locations()):
            if place.depth == 0 or digest not in needed:
                continue
            base = _record_at(store, place).base
            if base is None or base in needed:
                continue
            encoded = store.packs.records.encode(single_record(digest, store.read(digest)))
            if not appenders or appenders[-1].end >= SEAL_AT_BYTES:
                appenders.append(store.new_pack())
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


class ScratchIndex:
    """One process's index for a store whose own is behind and cannot be written: a copy in a
    temporary directory, brought up to date from the packs. The store is only read.

    Hold the store's lock while it is created; close the objects before it is closed.
    """

    def __init__(self, fs: Filesystem, objects: Path, keys: StoreKeys | None) -> None:
        import tempfile  # late: collecting does not need it

        with contextlib.ExitStack() as undone:
            with store_trouble("indexing in a temporary directory"):
                place = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-")))
                index = place / "objects" / "index.db"
                index.parent.mkdir()
                copy_database(objects / "index.db", index)
            self.objects = LocalObjectStore(fs, objects, keys, index=index)
            undone.callback(lambda: self.objects.close())
            self.objects.catch_up()
            self._undone = undone.pop_all()

    def close(self) -> None:
        self._undone.close()
