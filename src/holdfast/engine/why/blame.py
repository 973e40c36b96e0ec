"""Finds the version of a file that first had each line, walking back from the newest.

    newest of the open versions → its parents: equal content passes all lines on; otherwise, lines
    that the differ pairs go to the parent, and lines without a pair were written here

Versions are handled newest first by sequence (I7), each once, however it is reached. A version with
two parents is the record of a restore of some paths: restored lines are credited to the restored
checkpoint.

Guarantee: if all lines are different and keep their order, the answer is exact. Memory holds the
lines of two versions, and a number for each requested line. Not guaranteed: which of several equal
lines is the old one, and that a moved line is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from holdfast.engine.compare.line_diff import align


class Version(Protocol):
    """A file at a point of its history. Equal `content` means equal bytes."""

    @property
    def sequence(self) -> int: ...

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal versions."""
        ...

    @property
    def content(self) -> bytes: ...


V = TypeVar("V", bound=Version)
Pairs = list[tuple[int, int]]
"""The position of a line in a version, and in the requested file."""


@dataclass(frozen=True, slots=True)
class Found(Generic[V]):
    """The first version of each requested line; `ended` are versions where the search stopped
    although there are older ones."""

    origins: dict[int, V]
    ended: frozenset[tuple[object, ...]]


@dataclass(slots=True)
class _Open(Generic[V]):
    version: V
    pairs: Pairs = field(default_factory=list)


def blame(
    newest: V,
    wanted: Sequence[int],
    parents: Callable[[V], Sequence[V]],
    lines: Callable[[V], Sequence[bytes] | None],
    *,
    most_versions: int,
    most_lines: int,
) -> Found[V]:
    """`parents` returns a version's predecessors, `lines` its lines, or None if unavailable. The
    search ends after a number of versions, or of compared lines."""
    origins: dict[int, V] = {}
    ended: set[tuple[object, ...]] = set()
    open_ones: dict[tuple[object, ...], _Open[V]] = {}
    queue: list[tuple[int, tuple[object, ...]]] = []

    def hand(version: V, pairs: Pairs) -> None:
        if version.key not in open_ones:
            open_ones[version.key] = _Open(version)
            heappush(queue, (-version.sequence, version.key))
        open_ones[version.key].pairs += pairs

    hand(newest, [(line, line) for line in wanted])
    compared = 0
    while queue:
        _, key = heappop(queue)
        at = open_ones.pop(key)
        most_versions -= 1
        older = parents(at.version)
        if older and (most_versions < 0 or compared > most_lines):
            ended.add(key)
            older = ()
        same = next((one for one in older if one.content == at.version.content), None)
        if same is not None:
            hand(same, at.pairs)
            continue
        left = at.pairs
        for parent in older:
            if not left:
                break
            old, new = lines(parent), lines(at.version)
            if old is None or new is None:
                ended.add(key)
                continue
            compared += len(old) + len(new)
            partner = _partners(old, new)
            kept = [(partner[here], there) for here, there in left if here in partner]
            left = [pair for pair in left if pair[0] not in partner]
            if kept:
                hand(parent, kept)
        origins.update((there, at.version) for _, there in left)
    return Found(origins, frozenset(ended))


def _partners(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    """For each new line that equals an old one, that line's position. Equal ends are cut off first,
    as in the differ, because most versions differ in a few lines."""
    shorter = min(len(old), len(new))
    top = 0
    while top < shorter and old[top] == new[top]:
        top += 1
    bottom = 0
    while bottom < shorter - top and old[-1 - bottom] == new[-1 - bottom]:
        bottom += 1
    partner = {line: line for line in range(top)}
    shift = len(old) - len(new)
    partner.update((line, line + shift) for line in range(len(new) - bottom, len(new)))
    middle = align(old[top : len(old) - bottom], new[top : len(new) - bottom])
    partner.update((top + j, top + i) for i, j in middle.pairs)
    return partner
