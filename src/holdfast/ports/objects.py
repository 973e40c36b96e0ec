"""Where content lives: immutable objects named by the digest of their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Protocol

from holdfast.domain.ids import Digest
from holdfast.ports.progress import Progress
from holdfast.values.classes import dataclass


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
        ...

    def commit(self) -> WriteTotals:
        """Make every object of the batch durable; after this they are readable and stay so."""
        ...

    def abandon(self) -> None:
        """Forget the batch; objects of it that others do not hold take no space."""
        ...


class ObjectStore(Protocol):
    """A set of objects. Reads need no lock; at most one writer at a time."""

    def read(self, digest: Digest) -> bytes:
        """The bytes of an object, proven to match its name (I2).

        `ObjectMissing` when there is none, `ObjectDamaged` when its bytes do not match.
        """
        ...

    def contains(self, digest: Digest) -> bool: ...

    def missing(self, digests: Iterable[Digest]) -> set[Digest]:
        """Those of `digests` that are not held, asked at once."""
        ...

    def writer(self, *, limit_bytes: int | None = None) -> ObjectWriter:
        """Start a batch; `NoSpace` when it would store more than the limit."""
        ...

    def digests(self) -> Iterator[Digest]: ...

    def count(self) -> int: ...

    def size_bytes(self) -> int:
        """Bytes that the objects take on their medium, without what is kept about them."""
        ...

    def stored_sizes(self) -> Iterator[tuple[Digest, int]]:
        """Every object, and about what it takes on the medium."""
        ...

    def unneeded_bytes(self, needed: AbstractSet[Digest]) -> int:
        """What objects outside `needed` take."""
        ...

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
        ...

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        """Like `retain_only`, and nothing else stays: when it returns, the medium holds `needed`
        and no byte of any other object, in whatever form. The bytes given back.

        Interrupted, it loses nothing that is needed and can be run again. `Busy` when somebody's
        reading keeps it from finishing.
        """
        ...

    def stored_form(self, digest: Digest) -> bytes:
        """The bytes that stand for an object on the medium: what one would find in a raw file."""
        ...

    def generation(self) -> str:
        """Another text after objects have been forgotten."""
        ...

    def check(self, *, data: bool, progress: Progress | None = None) -> Iterator[ObjectProblem]:
        """Problems of the store's own structure; with `data`, of every byte of every object."""
        ...

    def unreadable(self) -> dict[Digest, str]:
        """Every object that is held and cannot be read, and why; reads every byte."""
        ...

    def forget(self, digests: Iterable[Digest]) -> None:
        """No longer hold objects that cannot be read, so that they can be stored again."""
        ...

    def damaged_packs(self) -> dict[int, str]:
        """Places of storage that are damaged, by number, and how."""
        ...

    def mend_packs(self, occasion: str) -> int:
        """Keep what is sound of damaged places and set the rest aside; how many there were."""
        ...

    def close(self) -> None: ...
