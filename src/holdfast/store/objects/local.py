"""Objects in packs on the local disk: the default object store.

Reading: index → pack → verify. Writing is a batch of its own, see `writer`.
The index is behind the packs at worst, and is caught up from them when a store is opened.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.digests import digest_of
from holdfast.domain.errors import ObjectDamaged, ObjectMissing, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectProblem
from holdfast.ports.progress import NoProgress, Progress
from holdfast.store.faults import store_trouble, translate_os_error
from holdfast.store.objects.blocks import objects_in, open_block
from holdfast.store.objects.compression import Codec, decompress
from holdfast.store.objects.index import GONE, Location, PackIndex
from holdfast.store.objects.packs import PACK_MAGIC, PackDirectory
from holdfast.store.objects.records import DEEPEST_CHAIN, BadRecord, Record, RecordFormat
from holdfast.store.objects.writer import LocalObjectWriter
from holdfast.store.suspicion import Suspicion

if TYPE_CHECKING:
    from holdfast.store.encryption.cipher import StoreKeys

_CACHE_BYTES = 8 << 20


class LocalObjectStore:
    """Thread safe for reading; one writer at a time, under the store's lock."""

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        keys: StoreKeys | None = None,
        suspicion: Suspicion | None = None,
    ) -> None:
        self.fs = fs
        self._suspicion = suspicion
        records = None if keys is None else _sealed_records(keys)
        self.packs = PackDirectory(fs, directory / "packs", records, suspicion)
        cipher = keys.cipher("index") if keys else None
        self.index = PackIndex(directory / "index.db", cipher, suspicion)
        self.lock = threading.RLock()
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._open_block: tuple[Digest | None, dict[Digest, bytes]] = (None, {})

    def catch_up(self) -> None:
        """Make the index say what the packs say; call under the store's lock.

        What packs hold beyond it is taken in. What it says of a pack that is gone is forgotten, so
        that the next save stores such content again; the pack is taken in should it come back.
        """
        with self.lock, store_trouble("reading packs"):
            if missing := self._missing_packs():
                self.index.start_generation()
                for number in missing:
                    self.index.replace_pack(number, (), (number, GONE))
            for number, known in self._grown_packs():
                if known == 0 and not self.packs.begins_well(number):
                    self.packs.begin_again(number)
                # Whoever wrote this may have been killed before its sync.
                self.packs.sync(number)
                found: list[tuple[Digest, Location]] = []
                sound_until, torn = known, False
                for offset, record, end in self.packs.scan(number, known):
                    torn = torn or record is None
                    if record is not None:
                        place = Location(number, offset, record.length, record.depth)
                        found.extend((digest, place) for digest in objects_in(record))
                        sound_until = sound_until if torn else end
                self.index.add(found, [(number, sound_until)])

    def is_behind(self) -> bool:
        """Whether packs and index tell different stories."""
        with self.lock, store_trouble("reading packs"):
            return bool(self._grown_packs() or self._missing_packs())

    def _missing_packs(self) -> set[int]:
        known = {n for n, length in self.index.pack_lengths().items() if length != GONE}
        return known - set(self.packs.numbers())

    def _grown_packs(self) -> list[tuple[int, int]]:
        """Packs longer than the index says, each with the length that it knows."""
        lengths = self.index.pack_lengths()
        known = [(number, lengths.get(number, 0)) for number in self.packs.numbers()]
        return [
            (number, length)
            for number, length in known
            if self.packs.size_of(number) > max(length, len(PACK_MAGIC))
        ]

    def contains(self, digest: Digest) -> bool:
        with self.lock:
            return self.index.find(digest) is not None

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        wanted = set(digests)
        with self.lock:
            return wanted - self.index.known(wanted)

    def read(self, digest: Digest) -> bytes:
        with self.lock:
            if (cached := self._cache.get(digest)) is not None:
                self._cache.move_to_end(digest)
                return cached
            data = self._read_chain(digest, DEEPEST_CHAIN)
            self.remember(digest, data)
            return data

    def base_of(self, digest: Digest) -> Digest:
        """What an object is stored against, or the object itself."""
        with self.lock:
            while True:
                place = self.index.find(digest)
                if place is None:
                    raise ObjectMissing(f"the store has no object {digest.hex()[:16]}")
                base = self._record(digest).base if place.depth else None
                if base is None:
                    return digest
                digest = base

    def _read_chain(self, digest: Digest, depth_left: int) -> bytes:
        try:
            record = self._record(digest)
        except (ObjectMissing, ObjectDamaged):
            # Another process may have moved it between our two looks, or begun a pack under the
            # number of one that we still have open.
            self.packs.close()
            record = self._record(digest)
        return self._open_record(digest, record, depth_left)

    def _record(self, digest: Digest) -> Record:
        place = self.index.find(digest)
        if place is None:
            raise ObjectMissing(
                f"the store has no object {digest.hex()[:16]}", hint="run: holdfast check --data"
            )
        try:
            stored = self.packs.read(place.pack, place.offset, place.length)
            record = self.packs.records.decode(stored)
        except FileNotFoundError:
            raise ObjectMissing(
                f"pack {place.pack} of the store is missing", hint="run: holdfast check --data"
            ) from None
        except OSError as error:
            raise translate_os_error(error, f"reading pack {place.pack}") from error
        except BadRecord as error:
            raise _damaged(digest, str(error)) from None
        if record.codec is not Codec.BLOCK and record.digest != digest:
            raise _damaged(digest, "another object stands in its place")
        return record

    def _open_record(self, digest: Digest, record: Record, depth_left: int) -> bytes:
        base = None
        if record.base is not None:
            if depth_left == 0:
                raise _damaged(digest, "its chain of bases is too long")
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
            self._open_block = (None, {})
            raise _damaged(digest, "its bytes do not match its name (I2)")
        return data

    def _from_block(self, digest: Digest, record: Record) -> bytes:
        """Neighbours in a block are neighbours in the tree, and often read one after the other."""
        if self._open_block[0] != record.digest:
            self._open_block = (record.digest, open_block(record))
        data = self._open_block[1].get(digest)
        if data is None:
            raise ValueError("the block in its place does not hold it")
        return data

    def remember(self, digest: Digest, data: bytes) -> None:
        """Recently used objects are bases and directories that are soon wanted again."""
        if len(data) > _CACHE_BYTES // 8 or digest in self._cache:
            return
        self._cache[digest] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])

    def forget_cached(self) -> None:
        """What is wanted next is read from the packs again."""
        with self.lock:
            self._cache.clear()
            self._cached_bytes = 0
            self.packs.close()

    def writer(self, *, limit_bytes: int | None = None) -> LocalObjectWriter:
        if self._suspicion is not None:
            self._suspicion.refuse()
        return LocalObjectWriter(self, limit_bytes)

    def digests(self) -> Iterator[Digest]:
        with self.lock:
            known = list(self.index.digests())
        return iter(known)

    def count(self) -> int:
        with self.lock:
            return self.index.count()

    def size_bytes(self) -> int:
        with self.lock:
            return self.index.content_bytes()

    def retain_only(self, needed: AbstractSet[Digest]) -> int:
        from holdfast.store.objects.collection import collect  # no save needs it

        if self._suspicion is not None:
            self._suspicion.refuse()
        with self.lock, store_trouble("giving space back"):
            try:
                return collect(self, needed)
            except BadRecord as error:
                raise StoreDamaged(
                    f"nothing was collected: a record that is needed is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        from holdfast.store.objects.erasing import erase_all_but

        with self.lock, store_trouble("erasing content"):
            try:
                return erase_all_but(self, needed)
            except BadRecord as error:
                raise StoreDamaged(
                    f"not everything was erased: a record that is needed is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None
            finally:
                self.packs.close()
                self._cache.clear()
                self._cached_bytes = 0

    def stored_form(self, digest: Digest) -> bytes:
        with self.lock:
            return self._record(digest).stored

    def generation(self) -> str:
        with self.lock:
            return str(self.index.generation())

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        from holdfast.store.objects.checking import check  # no save needs it

        with self.lock:
            yield from check(self, data=data, progress=progress or NoProgress())

    def close(self) -> None:
        with self.lock:
            self.packs.close()
            self.index.close()


def _sealed_records(keys: StoreKeys) -> RecordFormat:
    from holdfast.store.encryption.sealed_records import SealedRecords  # late: few stores need it

    return SealedRecords(keys.cipher("packs"))


def _damaged(digest: Digest, reason: str) -> ObjectDamaged:
    return ObjectDamaged(
        f"object {digest.hex()[:16]} is damaged: {reason}", hint="run: holdfast check --data"
    )
