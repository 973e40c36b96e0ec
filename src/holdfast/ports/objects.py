"""Content: immutable objects named by the digest of their bytes.

    ObjectReader ← ObjectStore, whose `writer` makes an ObjectWriter: one batch

Reading is a separate port, so that objects can be read from a replica. A save becomes durable in
the store. Reading needs no lock; there is one writer at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from holdfast.domain.ids import Digest
from holdfast.ports.progress import Progress
from holdfast.values.classes import dataclass

_PAGE = 10_000


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """Something wrong with stored content, as `check` reports it."""

    subject: str
    problem: str
    invariant: str


@dataclass(frozen=True, slots=True)
class WriteTotals:
    """The result of one writer: bytes written to disk, and bytes that were already stored."""

    stored_bytes: int = 0
    deduplicated_bytes: int = 0
    objects: int = 0


class ObjectWriter(Protocol):
    """One batch of new objects. Nothing may refer to them before `commit` returns (I1)."""

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        """Add an object whose digest the caller computed from `data`; False if it is already
        stored.

        `similar_to` may name an object with similar content, so that the store can save space.
        """

    def commit(self) -> WriteTotals:
        """Make every object of the batch durable. After this they can be read."""

    def abandon(self) -> None:
        """Drop the batch; its objects take no space unless others hold them."""


class ObjectReader(Protocol):
    """A set of objects that can be read."""

    def read(self, digest: Digest) -> bytes:
        """The bytes of an object, verified against its name (I2).

        `ObjectMissing` if there is none, `ObjectDamaged` if its bytes do not match.
        """

    def read_many(
        self, digests: Iterable[Digest], *, skip_unreadable: bool = False
    ) -> Iterator[tuple[Digest, bytes]]:
        """These objects, each verified as in `read`, in the fastest order.

        The caller names each once. Raises like `read`, or skips missing and damaged objects.
        """

    def contains(self, digest: Digest) -> bool: ...

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        """The `digests` that are not stored, in one query."""

    def digests(self, *, after: Digest | None = None, limit: int) -> Sequence[Digest]:
        """One page of all stored digests, in ascending order."""

    def count(self) -> int: ...

    def size_bytes(self) -> int:
        """The size of the objects on disk, without their index."""

    def close(self) -> None: ...


class ObjectStore(ObjectReader, Protocol):
    """The place where objects become durable, and where unneeded ones are deleted."""

    def writer(self, *, limit_bytes: int | None = None) -> ObjectWriter:
        """Start a batch; `NoSpace` when it would store more than the limit."""

    def generation(self) -> str:
        """Changes after objects were deleted."""

    def stored_sizes(self) -> Iterator[tuple[Digest, int]]:
        """Every object with its approximate size on disk."""

    def unneeded_bytes(self, needed: AbstractSet[Digest]) -> int:
        """The size of objects outside `needed`."""

    def retain_only(
        self,
        needed: AbstractSet[Digest],
        *,
        limit_bytes: int | None = None,
        thorough: bool = False,
    ) -> int:
        """Delete every object that is not in `needed`. Returns the freed bytes.

        Only the holder of the store's lock calls it. It may keep more objects than necessary, but
        hardly any if `thorough`. With a limit, it stops about there, and returns 0 when there is
        nothing left to do.
        """

    def forget(self, digests: Iterable[Digest]) -> None:
        """Drop unreadable objects from the index, so that they can be stored again."""

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        """Problems in the store's own structure; with `data`, in every byte of every object."""

    def unreadable(self) -> dict[Digest, str]:
        """Every stored object that is unreadable, with the reason. Reads every byte."""


class PackMaintenance(Protocol):
    """Low-level work on packs, the files with the local store's objects: for repairs and for exact
    erasure only. The caller holds the store's lock."""

    def damaged_packs(self) -> Mapping[int, str]:
        """Packs that are incomplete within their known length, by number, with the reason."""

    def mend_packs(self, occasion: str) -> int:
        """Rewrite damaged packs from their valid records. Returns their number.

        The old files are quarantined under `occasion`. No readable object is lost.
        """

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        """Keep `needed` on disk, and no byte of any other object in any form. Returns the freed
        bytes.

        If interrupted, it loses nothing that is needed and can be run again. `Busy` if a reader
        prevents it.
        """

    def stored_form(self, digest: Digest) -> bytes:
        """The stored bytes of an object, as they appear in the file."""


def all_digests(objects: ObjectReader) -> Iterator[Digest]:
    """Every stored digest, page by page."""
    last: Digest | None = None
    while page := objects.digests(after=last, limit=_PAGE):
        yield from page
        last = page[-1]
