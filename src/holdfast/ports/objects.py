"""Content: immutable objects named by the digest of their bytes.

    ObjectReader ← ObjectStore, whose `writer` makes an ObjectWriter: one batch

Reading is a separate port, so objects can be read from a place that only receives them. The store
is where a save becomes durable. Reading needs no lock; there is one writer at a time.
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
    """What one writer did: bytes that went to disk, and bytes that were there already."""

    stored_bytes: int = 0
    deduplicated_bytes: int = 0
    objects: int = 0


class ObjectWriter(Protocol):
    """One batch of new objects. Nothing in it may be named before `commit` returns (I1)."""

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        """Take an object whose digest the caller computed from `data`; False when it is known.

        `similar_to` may name an object with similar content; a store may use it to store less.
        """

    def commit(self) -> WriteTotals:
        """Make every object of the batch durable; after this they are readable and stay so."""

    def abandon(self) -> None:
        """Forget the batch; objects of it that others do not hold take no space."""


class ObjectReader(Protocol):
    """A set of objects that can be read."""

    def read(self, digest: Digest) -> bytes:
        """The bytes of an object, proven to match its name (I2).

        `ObjectMissing` when there is none, `ObjectDamaged` when its bytes do not match.
        """

    def read_many(
        self, digests: Iterable[Digest], *, skip_unreadable: bool = False
    ) -> Iterator[tuple[Digest, bytes]]:
        """Each of these objects, proven as `read` does, in the order that is quickest.

        The caller names each once. Raises as `read` does, or leaves out objects that are missing
        or damaged.
        """

    def contains(self, digest: Digest) -> bool: ...

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        """Those of `digests` that are not held, asked at once."""

    def digests(self, *, after: Digest | None = None, limit: int) -> Sequence[Digest]:
        """The next digests in ascending order: one page of all that are held."""

    def count(self) -> int: ...

    def size_bytes(self) -> int:
        """Bytes that the objects take on their medium, without what is kept about them."""

    def close(self) -> None: ...


class ObjectStore(ObjectReader, Protocol):
    """The place where objects become durable, and where unneeded ones are dropped."""

    def writer(self, *, limit_bytes: int | None = None) -> ObjectWriter:
        """Start a batch; `NoSpace` when it would store more than the limit."""

    def generation(self) -> str:
        """Another text after objects have been forgotten."""

    def stored_sizes(self) -> Iterator[tuple[Digest, int]]:
        """Every object, and about what it takes on the medium, one after the other."""

    def unneeded_bytes(self, needed: AbstractSet[Digest]) -> int:
        """Bytes that objects outside `needed` take."""

    def retain_only(
        self,
        needed: AbstractSet[Digest],
        *,
        limit_bytes: int | None = None,
        thorough: bool = False,
    ) -> int:
        """Forget every object that is not in `needed`; the bytes given back.

        Only the holder of the store's lock calls it. May keep more than was asked for, hardly
        anything if it is `thorough`; with a limit it stops about there, and gives back 0 when
        called with nothing left to do.
        """

    def forget(self, digests: Iterable[Digest]) -> None:
        """No longer hold objects that cannot be read, so that they can be stored again."""

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        """Problems of the store's own structure; with `data`, of every byte of every object."""

    def unreadable(self) -> dict[Digest, str]:
        """Every object that is held and cannot be read, and why; reads every byte."""


class PackMaintenance(Protocol):
    """Surgery on packs, the files in which the local store keeps its objects: for repairs and for
    exact erasure only. The caller holds the store's lock."""

    def damaged_packs(self) -> Mapping[int, str]:
        """Packs that are not whole up to where they are known to be, by number, and why."""

    def mend_packs(self, occasion: str) -> int:
        """Rewrite damaged packs from their sound records; how many there were.

        The old files are quarantined under `occasion`. No object that can be read is lost.
        """

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        """Leave `needed` on the medium, and no byte of any other object, in whatever form; the
        bytes given back.

        Interrupted, it loses nothing that is needed and can be run again. `Busy` when a reader
        keeps it from finishing.
        """

    def stored_form(self, digest: Digest) -> bytes:
        """The stored bytes of an object: what a raw file would show."""


def all_digests(objects: ObjectReader) -> Iterator[Digest]:
    """Every object that is held, page by page."""
    last: Digest | None = None
    while page := objects.digests(after=last, limit=_PAGE):
        yield from page
        last = page[-1]
