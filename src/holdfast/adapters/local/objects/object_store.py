"""Objects in packs on the local disk: the default object store.

Reading: index → pack → verify. Writing is a separate batch, see `writer`. The index may be behind
the packs, and is brought up to date from them when a store is opened.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.index import GONE, Location, PackIndex, PackLength
from holdfast.adapters.local.objects.packs import (
    PACK_MAGIC,
    PackAppender,
    PackDirectory,
    objects_in,
    open_block,
)
from holdfast.adapters.local.objects.writer import LocalObjectWriter
from holdfast.adapters.local.store_errors import SyncFailures, store_trouble, translate_os_error
from holdfast.adapters.local.store_files import identity_of, quarantine
from holdfast.adapters.local.system import RandomIds
from holdfast.domain.errors import IndexDamaged, ObjectDamaged, ObjectMissing, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import DEEPEST_CHAIN, BadRecord, Record, RecordFormat
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectProblem
from holdfast.ports.progress import NoProgress, Progress
from holdfast.values.compression import Codec, decompress

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import StoreKeys
    from holdfast.adapters.local.objects.maintenance import LocalPackMaintenance

_CACHE_BYTES = 8 << 20
_READ_AT_ONCE = 5_000
_MOST_OPEN_BLOCKS = 16


class LocalObjectStore:
    """Thread-safe for reading; one writer at a time, under the store's lock."""

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        keys: StoreKeys | None = None,
        sync_failures: SyncFailures | None = None,
        *,
        index: Path | None = None,
    ) -> None:
        """`index` puts the index elsewhere, for a caller that must not touch the store's own."""
        self.fs = fs
        self._sync_failures = sync_failures
        records = None if keys is None else _sealed_records(keys)
        self.packs = PackDirectory(fs, directory / "packs", records, sync_failures)
        self.directory = directory
        self._index_path = index or directory / "index.db"
        self._index_cipher = keys.cipher("index") if keys else None
        self._index: PackIndex | None = None
        self.lock = threading.RLock()
        with contextlib.suppress(IndexDamaged):  # it is rebuilt under the store's lock
            self.index  # noqa: B018
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._open_blocks: deque[dict[Digest, bytes]] = deque(maxlen=_MOST_OPEN_BLOCKS)

    @property
    def index(self) -> PackIndex:
        if self._index is None:
            self._index = PackIndex(self._index_path, self._index_cipher, self._sync_failures)
            self._index_file = identity_of(self._index_path)
        return self._index

    def catch_up(self) -> None:
        """Bring the index up to date with the packs; call under the store's lock.

        New records in the packs are added. Entries for a missing pack are deleted, so the next save
        stores such content again; the pack is indexed if it returns. A damaged index is quarantined
        and rebuilt.
        """
        try:
            self._catch_up()
        except IndexDamaged:
            self.rebuild_index()

    def rebuild_index(self) -> None:
        """Quarantine the index and rebuild it from the packs; call under the store's lock."""
        with self.lock, store_trouble("rebuilding the index"):
            self._close_index()
            store = self._index_path.parent.parent
            quarantine(store, "index", self._index_path)
            # Never a number used before, so that callers with cached digests ask again.
            generation = int(RandomIds.new_id()[:7], 16)
            self._index = PackIndex(
                self._index_path,
                self._index_cipher,
                self._sync_failures,
                first_generation=generation,
            )
            self._index_file = identity_of(self._index_path)
            self._catch_up()

    def index_was_replaced(self) -> bool:
        """Whether another process rebuilt the index; it is then reopened."""
        with self.lock:
            if self._index is None or identity_of(self._index_path) == self._index_file:
                return False
            self._close_index()
            return True

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()

    def _catch_up(self) -> None:
        with self.lock, store_trouble("reading packs"):
            if missing := self._missing_packs():
                self.index.start_generation()
                for number in missing:
                    self.index.replace_pack(number, (), (number, GONE))
            for number, known in self._grown_packs():
                if known == 0 and not self.packs.begins_well(number):
                    self.packs.begin_again(number)
                # The writer may have been killed before its sync.
                self.packs.sync(number)
                found: list[tuple[Digest, Location]] = []
                sound_until, torn = known, False
                for offset, record, end in self.packs.scan(number, known):
                    torn = torn or record is None
                    if record is not None:
                        place = Location(number, offset, record.length, record.depth)
                        found.extend((digest, place) for digest in objects_in(record))
                        sound_until = sound_until if torn else end
                self.index.add(found, [(number, sound_until, self.packs.size_of(number))])

    def is_behind(self) -> bool:
        """Whether packs and index differ."""
        try:
            with self.lock, store_trouble("reading packs"):
                return bool(self._grown_packs() or self._missing_packs())
        except IndexDamaged:
            return True

    def _missing_packs(self) -> set[int]:
        known = {n for n, length in self.index.pack_lengths().items() if length != GONE}
        return known - set(self.packs.numbers())

    def _grown_packs(self) -> list[tuple[int, int]]:
        """Packs that have grown since they were last read, each with the known length."""
        known = self.index.packs()
        unknown = PackLength(0, len(PACK_MAGIC))
        found = [(number, known.get(number, unknown)) for number in self.packs.numbers()]
        return [
            (number, pack.length)
            for number, pack in found
            if self.packs.size_of(number) > max(pack.seen, len(PACK_MAGIC))
        ]

    def contains(self, digest: Digest) -> bool:
        with self.lock:
            return self.index.find(digest) is not None

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        wanted = set(digests)
        with self.lock:
            return wanted - self.index.known(wanted)

    def read(self, digest: Digest, place: Location | None = None) -> bytes:
        """A caller that just looked up the position passes it as `place`."""
        with self.lock:
            if (cached := self._cache.get(digest)) is not None:
                self._cache.move_to_end(digest)
                return cached
            data = self._read_chain(digest, DEEPEST_CHAIN, place)
            self.remember(digest, data)
            return data

    def read_many(
        self, digests: Iterable[Digest], *, skip_unreadable: bool = False
    ) -> Iterator[tuple[Digest, bytes]]:
        """In pack order: neighbours share a block, which is then opened once."""
        unread = iter(digests)
        while batch := list(islice(unread, _READ_AT_ONCE)):
            with self.lock:
                places = self.index.find_all(batch)
            nowhere = (math.inf,)
            batch.sort(key=lambda digest: places.get(digest, nowhere))
            for digest in batch:
                try:
                    data = self._read_at(digest, places.get(digest))
                except IndexDamaged:
                    raise
                except StoreDamaged:
                    if skip_unreadable:
                        continue
                    raise
                yield digest, data

    def _read_at(self, digest: Digest, place: Location | None) -> bytes:
        """Another process may have moved it since its position was looked up."""
        try:
            return self.read(digest, place)
        except StoreDamaged:
            return self.read(digest)

    def base_of(self, digest: Digest) -> Digest:
        """The last base of an object's chain, or the object itself."""
        with self.lock:
            while True:
                place = self.index.find(digest)
                if place is None:
                    raise ObjectMissing(f"the store has no object {digest.hex()[:16]}")
                base = self.record(digest).base if place.depth else None
                if base is None:
                    return digest
                digest = base

    def _read_chain(self, digest: Digest, depth_left: int, place: Location | None = None) -> bytes:
        data = self._in_open_block(digest)
        if data is not None:
            return data
        try:
            record = self.record(digest, place)
        except (ObjectMissing, ObjectDamaged):
            # Another process may have moved it between our two reads, or started a pack with the
            # number of one that is still open here.
            self.packs.close()
            record = self.record(digest)
        return self._open_record(digest, record, depth_left)

    def record(self, digest: Digest, place: Location | None = None) -> Record:
        """The record that stores an object."""
        place = place or self.index.find(digest)
        if place is None:
            raise ObjectMissing(
                f"the store has no object {digest.hex()[:16]}", hint="run: holdfast check --data"
            )
        try:
            stored = self.packs.read(place.pack, place.offset, place.length)
            record = self.packs.records.decode(stored)
        except FileNotFoundError:
            raise ObjectMissing(
                f"the store's pack {place.pack} is missing", hint="run: holdfast check --data"
            ) from None
        except OSError as error:
            raise translate_os_error(error, f"reading pack {place.pack}") from error
        except BadRecord as error:
            raise _damaged(digest, str(error)) from None
        if record.codec is not Codec.BLOCK and record.digest != digest:
            raise _damaged(digest, "its place contains another object")
        return record

    def _open_record(self, digest: Digest, record: Record, depth_left: int) -> bytes:
        base = None
        if record.base is not None:
            if depth_left == 0:
                raise _damaged(digest, "its delta chain is too long")
            base = self._cache.get(record.base)
            if base is None:
                base = self._read_chain(record.base, depth_left - 1)
        try:
            if record.codec is Codec.BLOCK:
                data = self._from_block(digest, record)
            else:
                data = decompress(record.codec, record.stored, record.size, base)
        except ValueError as error:
            raise _damaged(digest, str(error)) from None
        if digest_of(data) != digest:
            raise _damaged(digest, "its bytes do not match its name (I2)")
        return data

    def _from_block(self, digest: Digest, record: Record) -> bytes:
        """Neighbours in a block are neighbours in the tree, and often read next."""
        members = open_block(record)
        if digest not in members:
            raise ValueError("its block does not contain it")
        self._open_blocks.appendleft(members)
        return members[digest]

    def _in_open_block(self, digest: Digest) -> bytes | None:
        """A member of a recently opened block, verified against its digest (I2)."""
        for members in self._open_blocks:
            data = members.get(digest)
            if data is not None and digest_of(data) == digest:
                return data
        return None

    def remember(self, digest: Digest, data: bytes) -> None:
        """Recently used objects are bases and directories, which are likely to be needed again."""
        if len(data) > _CACHE_BYTES // 8 or digest in self._cache:
            return
        self._cache[digest] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])

    def forget_cached(self) -> None:
        """Later reads go to the packs again."""
        with self.lock:
            self._forget_read()
            self.packs.close()

    def maintenance(self) -> LocalPackMaintenance:
        from holdfast.adapters.local.objects.maintenance import (
            LocalPackMaintenance,  # only for repairs and purges
        )

        return LocalPackMaintenance(self)

    def new_pack(self) -> PackAppender:
        """Numbered above the index's packs too, because a missing pack may return."""
        number = max((*self.packs.numbers(), *self.index.pack_lengths()), default=0) + 1
        return PackAppender(self.fs, self.packs, number, create=True)

    def writer(self, *, limit_bytes: int | None = None) -> LocalObjectWriter:
        if self._sync_failures is not None:
            self._sync_failures.refuse()
        return LocalObjectWriter(self, limit_bytes)

    def digests(self, *, after: Digest | None = None, limit: int) -> list[Digest]:
        with self.lock:
            return self.index.digests(after or b"", limit)

    def count(self) -> int:
        with self.lock:
            return self.index.count()

    def size_bytes(self) -> int:
        with self.lock:
            return self.index.content_bytes()

    def stored_sizes(self) -> Iterator[tuple[Digest, int]]:
        from holdfast.adapters.local.objects.maintenance import stored_sizes  # no save needs it

        with self.lock:
            return stored_sizes(self)

    def unneeded_bytes(self, needed: AbstractSet[Digest]) -> int:
        from holdfast.adapters.local.objects.maintenance import unneeded_bytes  # no save needs it

        with self.lock:
            return unneeded_bytes(self, needed)

    def retain_only(
        self,
        needed: AbstractSet[Digest],
        *,
        limit_bytes: int | None = None,
        thorough: bool = False,
    ) -> int:
        from holdfast.adapters.local.objects.maintenance import collect  # no save needs it

        if self._sync_failures is not None:
            self._sync_failures.refuse()
        with self.lock, store_trouble("freeing space"):
            try:
                return collect(self, needed, limit_bytes, thorough=thorough)
            except BadRecord as error:
                raise StoreDamaged(
                    f"no space was freed, because a required record is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None

    def generation(self) -> str:
        with self.lock:
            return str(self.index.generation())

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        from holdfast.adapters.local.verify import check_objects  # no save needs it

        with self.lock:
            yield from check_objects(self, data=data, progress=progress or NoProgress())

    def unreadable(self) -> dict[Digest, str]:
        """Every unreadable object, and why."""
        from holdfast.adapters.local.verify import unreadable_objects

        with self.lock:
            return dict(unreadable_objects(self))

    def forget(self, digests: Iterable[Digest]) -> None:
        """Drop unreadable objects from the index; only those may be named here."""
        with self.lock:
            self.index.start_generation()
            self.index.forget(digests)
            self._forget_read()

    def _forget_read(self) -> None:
        self._cache.clear()
        self._cached_bytes = 0
        self._open_blocks.clear()

    def close(self) -> None:
        with self.lock:
            self.packs.close()
            self._close_index()


def _sealed_records(keys: StoreKeys) -> RecordFormat:
    from holdfast.adapters.local.encryption.cipher import (
        SealedRecords,  # late: few stores need it
    )

    return SealedRecords(keys.cipher("packs"))


def _damaged(digest: Digest, reason: str) -> ObjectDamaged:
    return ObjectDamaged(
        f"object {digest.hex()[:16]} is damaged: {reason}", hint="run: holdfast check --data"
    )
