"""Objects in packs on the local disk: the default object store.

Writing: append records → fsync the pack → tell the index. Reading: index → pack → verify.
The index is behind the packs at worst, and is caught up from them when a store is opened.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from holdfast.domain.digests import digest_of
from holdfast.domain.errors import NoSpace, ObjectDamaged, ObjectMissing, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectProblem, WriteTotals
from holdfast.store.faults import store_trouble, translate_os_error
from holdfast.store.objects.collection import collect
from holdfast.store.objects.compression import (
    SMALLEST_WORTH_COMPRESSING,
    Codec,
    compress,
    compress_against,
    decompress,
)
from holdfast.store.objects.index import Location, PackIndex
from holdfast.store.objects.packs import PACK_MAGIC, SEAL_AT_BYTES, PackAppender, PackDirectory
from holdfast.store.objects.records import (
    DEEPEST_CHAIN,
    BadRecord,
    Record,
    decode_record,
    encode_record,
)

_LARGEST_DELTA_BYTES = 2 << 20
_CACHE_BYTES = 8 << 20
_PREPARE_AT_OBJECTS = 20_000
"""A writer hands what it holds in memory to the index in batches of this many."""


class LocalObjectStore:
    """Thread safe for reading; one writer at a time, under the store's lock."""

    def __init__(self, fs: Filesystem, directory: Path) -> None:
        self.fs = fs
        self._directory = directory
        self.packs = PackDirectory(fs, directory / "packs")
        self.index = PackIndex(directory / "index.db")
        self._lock = threading.RLock()
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0

    def catch_up(self) -> None:
        """Take in what packs hold beyond the index; call under the store's lock."""
        with self._lock, store_trouble("reading packs"):
            for number, known in self._grown_packs():
                found: list[tuple[Digest, Location]] = []
                sound_until = known
                for offset, record, end in self.packs.scan(number, known):
                    if record is not None:
                        place = Location(number, offset, record.length, record.depth)
                        found.append((record.digest, place))
                        sound_until = end
                self.index.add(found, [(number, sound_until)])

    def is_behind(self) -> bool:
        """Whether packs hold more than the index knows."""
        with self._lock, store_trouble("reading packs"):
            return bool(self._grown_packs())

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
        with self._lock:
            return self.index.find(digest) is not None

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        wanted = set(digests)
        with self._lock:
            return wanted - self.index.known(wanted)

    def read(self, digest: Digest) -> bytes:
        with self._lock:
            if (cached := self._cache.get(digest)) is not None:
                self._cache.move_to_end(digest)
                return cached
            data = self._read_chain(digest, DEEPEST_CHAIN)
            self._remember(digest, data)
            return data

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
                f"the store has no object {digest.hex()[:16]}", hint="run: holdfast check"
            )
        try:
            record = decode_record(self.packs.read(place.pack, place.offset, place.length))
        except FileNotFoundError:
            raise ObjectMissing(
                f"pack {place.pack} of the store is missing", hint="run: holdfast check"
            ) from None
        except OSError as error:
            raise translate_os_error(error, f"reading pack {place.pack}") from error
        except BadRecord as error:
            raise _damaged(digest, str(error)) from None
        if record.digest != digest:
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
            data = decompress(record.codec, record.stored, record.size, base)
        except ValueError as error:
            raise _damaged(digest, str(error)) from None
        if digest_of(data) != digest:
            raise _damaged(digest, "its bytes do not match its name (I2)")
        return data

    def _remember(self, digest: Digest, data: bytes) -> None:
        """Recently used objects are bases and directories that are soon wanted again."""
        if len(data) > _CACHE_BYTES // 8 or digest in self._cache:
            return
        self._cache[digest] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])

    def writer(self, *, limit_bytes: int | None = None) -> LocalObjectWriter:
        return LocalObjectWriter(self, limit_bytes)

    def digests(self) -> Iterator[Digest]:
        with self._lock:
            known = list(self.index.digests())
        return iter(known)

    def count(self) -> int:
        with self._lock:
            return self.index.count()

    def size_bytes(self) -> int:
        files = [p for p in self.packs.directory.iterdir() if p.is_file()]
        files += self._directory.glob("index.db*")
        return sum(path.stat().st_size for path in files)

    def retain_only(self, needed: AbstractSet[Digest]) -> int:
        with self._lock, store_trouble("giving space back"):
            try:
                return collect(self, needed)
            except BadRecord as error:
                raise StoreDamaged(
                    f"nothing was collected: a record that is needed is damaged: {error}",
                    hint="run: holdfast check --data",
                ) from None

    def generation(self) -> str:
        with self._lock:
            return str(self.index.generation())

    def check(self, *, data: bool) -> Iterator[ObjectProblem]:
        with self._lock:
            yield from _check(self, self.packs, self.index, data=data)

    def close(self) -> None:
        with self._lock:
            self.packs.close()
            self.index.close()


class LocalObjectWriter:
    """One batch; the pack is opened with the first object that is new."""

    def __init__(self, store: LocalObjectStore, limit_bytes: int | None) -> None:
        self._store = store
        self._limit_bytes = limit_bytes
        self._appenders: list[PackAppender] = []
        self._added: dict[Digest, Location] = {}
        self._objects = 0
        self._stored_bytes = 0
        self._deduplicated_bytes = 0
        with store._lock:
            self._nothing_stored_yet = store.index.is_empty()

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        with self._store._lock:
            if digest in self._added or self._is_stored(digest):
                self._deduplicated_bytes += len(data)
                return False
            record = self._encode(digest, data, similar_to)
            encoded = encode_record(record)
            self._stored_bytes += len(encoded)
            if self._limit_bytes is not None and self._stored_bytes > self._limit_bytes:
                raise NoSpace(f"more than {self._limit_bytes} new bytes to store")
            try:
                appender = self._appender()
                offset = appender.append(encoded)
            except OSError as error:
                raise translate_os_error(error, "writing content") from error
            self._added[digest] = Location(appender.number, offset, len(encoded), record.depth)
            self._objects += 1
            if len(self._added) >= _PREPARE_AT_OBJECTS:
                self._store.index.prepare(self._added.items())
                self._added.clear()
                self._nothing_stored_yet = False
            return True

    def _is_stored(self, digest: Digest) -> bool:
        return not self._nothing_stored_yet and self._store.index.find(digest) is not None

    def _encode(self, digest: Digest, data: bytes, similar_to: Digest | None) -> Record:
        if similar_to is not None and len(data) > SMALLEST_WORTH_COMPRESSING:
            base = self._base(similar_to)
            if base is not None and len(data) <= _LARGEST_DELTA_BYTES:
                base_data, base_depth = base
                codec, stored = compress_against(data, base_data)
                if codec is Codec.ZSTD_AGAINST_BASE:
                    return Record(digest, codec, base_depth + 1, len(data), similar_to, stored)
                return Record(digest, codec, 0, len(data), None, stored)
        codec, stored = compress(data)
        return Record(digest, codec, 0, len(data), None, stored)

    def _base(self, digest: Digest) -> tuple[bytes, int] | None:
        """A base that is durable already, sound, and not at the end of a long chain."""
        place = self._store.index.find(digest)
        if place is None or place.depth >= DEEPEST_CHAIN:
            return None
        try:
            data = self._store.read(digest)
        except StoreDamaged:
            return None
        return (data, place.depth) if 0 < len(data) <= _LARGEST_DELTA_BYTES else None

    def _appender(self) -> PackAppender:
        if not self._appenders:
            self._appenders.append(self._open_appender())
        elif self._appenders[-1].end >= SEAL_AT_BYTES:
            number = self._appenders[-1].number + 1
            self._appenders.append(
                PackAppender(self._store.fs, self._store.packs, number, create=True)
            )
        return self._appenders[-1]

    def _open_appender(self) -> PackAppender:
        """Go on in the newest pack if it ends where the index says, else start a new one."""
        store = self._store
        numbers = store.packs.numbers()
        if numbers:
            newest = numbers[-1]
            size = store.packs.size_of(newest)
            # One that the index does not know and that holds nothing was begun and abandoned.
            ends_as_known = size == store.index.pack_lengths().get(newest, len(PACK_MAGIC))
            if ends_as_known and len(PACK_MAGIC) <= size < SEAL_AT_BYTES:
                return PackAppender(store.fs, store.packs, newest, create=False)
        number = numbers[-1] + 1 if numbers else 1
        return PackAppender(store.fs, store.packs, number, create=True)

    def commit(self) -> WriteTotals:
        with self._store._lock, store_trouble("writing content"):
            try:
                for appender in self._appenders:
                    appender.sync()
                if self._appenders:
                    lengths = [(a.number, a.end) for a in self._appenders]
                    self._store.index.add(self._added.items(), lengths)
            finally:
                self._close()
            return WriteTotals(self._stored_bytes, self._deduplicated_bytes, self._objects)

    def abandon(self) -> None:
        with self._store._lock:
            self._store.index.forget_prepared()
            try:
                for appender in self._appenders:
                    # What a failing disk does not let go is an unfinished save like any other.
                    with contextlib.suppress(OSError):
                        appender.forget()
            finally:
                self._close()

    def _close(self) -> None:
        while self._appenders:
            self._appenders.pop().close()


def _damaged(digest: Digest, reason: str) -> ObjectDamaged:
    return ObjectDamaged(
        f"object {digest.hex()[:16]} is damaged: {reason}", hint="run: holdfast check"
    )


def _check(
    store: LocalObjectStore, packs: PackDirectory, index: PackIndex, *, data: bool
) -> Iterator[ObjectProblem]:
    for problem in index.problems():
        yield ObjectProblem("index.db", problem, "index")
    present = set(packs.numbers())
    lengths = index.pack_lengths()
    for number, length in sorted(lengths.items()):
        if number not in present:
            yield ObjectProblem(f"pack {number}", "the file is missing", "I1")
        elif packs.size_of(number) < length:
            yield ObjectProblem(f"pack {number}", "the file is shorter than it was", "I1")
    if not data:
        return
    for number in sorted(present & lengths.keys()):
        if packs.read(number, 0, len(PACK_MAGIC)) != PACK_MAGIC:
            yield ObjectProblem(f"pack {number}", "it does not begin as a pack does", "I2")
        for offset, record, end in packs.scan(number, 0):
            # Behind the committed length stands, at worst, what a killed save left: no damage.
            if record is None and offset < lengths[number]:
                what = f"{end - offset} bytes at {offset} are no sound record"
                yield ObjectProblem(f"pack {number}", what, "I2")
    for digest in list(index.digests()):
        try:
            store.read(digest)
        except StoreDamaged as error:
            yield ObjectProblem(f"object {digest.hex()}", error.message, "I2")
