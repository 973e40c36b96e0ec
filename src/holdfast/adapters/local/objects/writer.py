"""Writes one batch of objects: append records → fsync the pack → update the index."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.index import Location
from holdfast.adapters.local.objects.packs import (
    FULL_AT_BYTES,
    LARGEST_MEMBER_BYTES,
    PACK_MAGIC,
    SEAL_AT_BYTES,
    PackAppender,
    objects_in,
    record_of,
    single_record,
)
from holdfast.adapters.local.store_errors import store_trouble, translate_os_error
from holdfast.domain.errors import BudgetReached, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import Record
from holdfast.ports.objects import WriteTotals
from holdfast.values.classes import NamedTuple
from holdfast.values.compression import (
    SMALLEST_WORTH_COMPRESSING,
    Codec,
    compress_against,
)

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.object_store import LocalObjectStore

_LARGEST_DELTA_BYTES = 2 << 20
_SHORT_CHAIN = 6
_WORTH_REMEMBERING_BYTES = 256 << 10
"""The next version of an edited file or directory is stored against this one, so it is cached."""

_MOST_SUCCESSOR_BYTES = 8 << 20
"""One batch may have more of them than fit into memory."""

_PREPARE_AT_OBJECTS = 20_000
"""A writer passes its objects to the index in batches of this many."""


class _Base(NamedTuple):
    """The base of a new object, and the resulting depth."""

    digest: Digest
    data: bytes
    depth: int


class LocalObjectWriter:
    """One batch; the pack is opened with the first new object."""

    def __init__(self, store: LocalObjectStore, limit_bytes: int | None) -> None:
        self._store = store
        self._limit_bytes = limit_bytes
        self._appenders: list[PackAppender] = []
        self._added: dict[Digest, Location] = {}
        self._small: dict[Digest, bytes] = {}
        self._small_bytes = 0
        self._objects = 0
        self._successors: dict[Digest, bytes] = {}
        self._successor_bytes = 0
        self._stored_bytes = 0
        self._deduplicated_bytes = 0
        with store.lock:
            self.nothing_stored_yet = store.index.is_empty()

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        with self._store.lock:
            if self._has(digest):
                self._deduplicated_bytes += len(data)
                return False
            self._objects += 1
            if similar_to is None and len(data) <= LARGEST_MEMBER_BYTES:
                self._small[digest] = data
                self._small_bytes += len(data)
                if self._small_bytes >= FULL_AT_BYTES:
                    self._store_small()
                return True
            base = self._base(similar_to, data) if similar_to is not None else None
            self._append(_record(digest, data, base), (digest,))
            if similar_to is not None and len(data) <= _WORTH_REMEMBERING_BYTES:
                self._note_successor(digest, data)
            return True

    def add_record(self, record: Record) -> None:
        """Add objects that another process has compressed. Known objects are stored a second time
        if others share their record, and the later position counts."""
        with self._store.lock:
            objects = objects_in(record)
            new = [one for one in objects if not self._has(one)]
            self._objects += len(new)
            if new:
                self._append(record, objects)
            else:
                self._deduplicated_bytes += record.size

    def _note_successor(self, digest: Digest, data: bytes) -> None:
        self._successors[digest] = data
        self._successor_bytes += len(data)
        while self._successor_bytes > _MOST_SUCCESSOR_BYTES:  # the oldest first
            oldest = next(iter(self._successors))
            self._successor_bytes -= len(self._successors.pop(oldest))

    def _store_small(self) -> None:
        """Write waiting small objects as one record."""
        if not self._small:
            return
        small, self._small, self._small_bytes = list(self._small.items()), {}, 0
        self._append(record_of(small), [digest for digest, _ in small])

    def _append(self, record: Record, objects: Iterable[Digest]) -> None:
        """Write a record, and note its objects."""
        encoded = self._store.packs.records.encode(record)
        self._stored_bytes += len(encoded)
        if self._limit_bytes is not None and self._stored_bytes > self._limit_bytes:
            raise BudgetReached(f"the new content exceeds {self._limit_bytes} bytes")
        try:
            appender = self._appender()
            offset = appender.append(encoded)
        except OSError as error:
            raise translate_os_error(error, "writing content") from error
        place = Location(appender.number, offset, len(encoded), record.depth)
        for digest in objects:
            self._added[digest] = place
        if len(self._added) >= _PREPARE_AT_OBJECTS:
            self._store.index.prepare(self._added.items())
            self._added.clear()
            self.nothing_stored_yet = False

    def _has(self, digest: Digest) -> bool:
        return digest in self._added or digest in self._small or self._is_stored(digest)

    def _is_stored(self, digest: Digest) -> bool:
        """Whether it is stored with everything needed to read it. Collection may have left a record
        whose base is gone, because neither was needed."""
        if self.nothing_stored_yet:
            return False
        place = self._store.index.find(digest)
        if place is None or place.depth == 0:
            return place is not None
        try:
            self._store.base_of(digest)
        except StoreDamaged:
            return False
        return True

    def _base(self, similar_to: Digest, data: bytes) -> _Base | None:
        """A durable, sound base, and the resulting depth.

        A version is stored against the previous one, and every few versions against the first of
        them. So reading any version takes few records, and damage costs few versions.
        """
        if not SMALLEST_WORTH_COMPRESSING < len(data) <= _LARGEST_DELTA_BYTES:
            return None
        place = self._store.index.find(similar_to)
        if place is None:
            return None
        try:
            short = place.depth < _SHORT_CHAIN
            base = similar_to if short else self._store.base_of(similar_to)
            base_data = self._store.read(base, place if short else None)
        except StoreDamaged:
            return None
        depth = place.depth + 1 if short else 1
        return _Base(base, base_data, depth) if len(base_data) <= _LARGEST_DELTA_BYTES else None

    def _appender(self) -> PackAppender:
        if not self._appenders:
            self._appenders.append(self._open_appender())
        elif self._appenders[-1].end >= SEAL_AT_BYTES:
            self._appenders.append(self._store.new_pack())
        return self._appenders[-1]

    def _open_appender(self) -> PackAppender:
        """Continue the newest pack if it ends where the index says, else start a new one."""
        store = self._store
        numbers = store.packs.numbers()
        if numbers:
            newest = numbers[-1]
            size = store.packs.size_of(newest)
            known = store.index.pack_lengths().get(newest)
            if known is None and size == len(PACK_MAGIC) and store.packs.begins_well(newest):
                # Created and abandoned, perhaps before it was synced.
                store.packs.sync(newest)
                known = size
            if size == known and len(PACK_MAGIC) <= size < SEAL_AT_BYTES:
                return PackAppender(store.fs, store.packs, newest, create=False)
        return store.new_pack()

    def commit(self) -> WriteTotals:
        with self._store.lock, store_trouble("writing content"):
            self._store_small()
            try:
                for appender in self._appenders:
                    appender.sync()
                if self._appenders:
                    lengths = [(a.number, a.end) for a in self._appenders]
                    self._store.index.add(self._added.items(), lengths)
            finally:
                self._close()
            for digest, data in self._successors.items():
                self._store.remember(digest, data)
            return WriteTotals(self._stored_bytes, self._deduplicated_bytes, self._objects)

    def abandon(self) -> None:
        with self._store.lock:
            self._store.index.forget_prepared()
            try:
                for appender in self._appenders:
                    # If a failing disk prevents this, it is an unfinished save like any other.
                    with contextlib.suppress(OSError):
                        appender.forget()
            finally:
                self._close()

    def _close(self) -> None:
        while self._appenders:
            self._appenders.pop().close()


def _record(digest: Digest, data: bytes, base: _Base | None) -> Record:
    if base is None:
        return single_record(digest, data)
    codec, stored = compress_against(data, base.data)
    if codec is Codec.ZSTD_AGAINST_BASE:
        return Record(digest, codec, base.depth, len(data), base.digest, stored)
    return Record(digest, codec, 0, len(data), None, stored)
