"""Objects in memory: the smallest implementation of the contract; for tests and dry runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from holdfast.domain.errors import BudgetReached, ObjectDamaged, ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import ObjectProblem, WriteTotals
from holdfast.ports.progress import Progress


class MemoryObjectStore:
    def __init__(self) -> None:
        self._objects: dict[Digest, bytes] = {}
        self._generation = 1

    def read(self, digest: Digest) -> bytes:
        try:
            data = self._objects[digest]
        except KeyError:
            raise ObjectMissing(f"the store has no object {digest.hex()[:16]}") from None
        if digest_of(data) != digest:
            raise ObjectDamaged(f"object {digest.hex()[:16]} is damaged")
        return data

    def read_many(
        self, digests: Iterable[Digest], *, skip_unreadable: bool = False
    ) -> Iterator[tuple[Digest, bytes]]:
        for digest in digests:
            try:
                data = self.read(digest)
            except (ObjectMissing, ObjectDamaged):
                if skip_unreadable:
                    continue
                raise
            yield digest, data

    def contains(self, digest: Digest) -> bool:
        return digest in self._objects

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        return set(digests) - self._objects.keys()

    def writer(self, *, limit_bytes: int | None = None) -> MemoryObjectWriter:
        return MemoryObjectWriter(self._objects, limit_bytes)

    def maintenance(self) -> MemoryPackMaintenance:
        return MemoryPackMaintenance(self)

    def digests(self, *, after: Digest | None = None, limit: int) -> list[Digest]:
        return sorted(d for d in self._objects if after is None or d > after)[:limit]

    def count(self) -> int:
        return len(self._objects)

    def size_bytes(self) -> int:
        return sum(map(len, self._objects.values()))

    def unneeded_bytes(self, needed: AbstractSet[Digest]) -> int:
        return sum(len(data) for digest, data in self._objects.items() if digest not in needed)

    def retain_only(
        self,
        needed: AbstractSet[Digest],
        *,
        limit_bytes: int | None = None,
        thorough: bool = False,
    ) -> int:
        gone = {digest: data for digest, data in self._objects.items() if digest not in needed}
        for digest in gone:
            del self._objects[digest]
        self._generation += bool(gone)
        return sum(map(len, gone.values()))

    def stored_sizes(self) -> Iterator[tuple[Digest, int]]:
        return ((digest, len(content)) for digest, content in self._objects.items())

    def generation(self) -> str:
        return str(self._generation)

    def unreadable(self) -> dict[Digest, str]:
        return {d: "it is damaged" for d, c in self._objects.items() if digest_of(c) != d}

    def forget(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            del self._objects[digest]
        self._generation += 1

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        for digest, content in self._objects.items():
            if data and digest_of(content) != digest:
                yield ObjectProblem(f"object {digest.hex()}", "it is damaged", "I2")

    def close(self) -> None:
        return None


class MemoryPackMaintenance:
    """There are no packs, so none is ever damaged."""

    def __init__(self, store: MemoryObjectStore) -> None:
        self._store = store

    def damaged_packs(self) -> dict[int, str]:
        return {}

    def mend_packs(self, occasion: str) -> int:
        return 0

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        return self._store.retain_only(needed)

    def stored_form(self, digest: Digest) -> bytes:
        return self._store.read(digest)


class MemoryObjectWriter:
    def __init__(self, objects: dict[Digest, bytes], limit_bytes: int | None) -> None:
        self._objects = objects
        self._limit_bytes = limit_bytes
        self._new: dict[Digest, bytes] = {}
        self._deduplicated_bytes = 0

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        if digest in self._objects or digest in self._new:
            self._deduplicated_bytes += len(data)
            return False
        total = sum(map(len, self._new.values())) + len(data)
        if self._limit_bytes is not None and total > self._limit_bytes:
            raise BudgetReached(f"more than {self._limit_bytes} new bytes to store")
        self._new[digest] = data
        return True

    def commit(self) -> WriteTotals:
        self._objects.update(self._new)
        stored = sum(map(len, self._new.values()))
        totals = WriteTotals(stored, self._deduplicated_bytes, len(self._new))
        self._new = {}
        return totals

    def abandon(self) -> None:
        self._new = {}
