"""Which messages of a conversation still hold, after work was taken back and forth.

    each restore of everything: messages up to the target's place are as they were when the target
    was made; later ones that held until now are rolled back by this restore

An undo is a restore like any other: to a state in which the messages held that held then. So the
marks follow from the restores alone, and two who compute them come to the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from holdfast.values.classes import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages from `first` to `last` that an operation rolled back."""

    first: int
    last: int
    operation: int


Marks: TypeAlias = tuple[Stretch, ...]
"""In order and apart from each other; a message in none of them holds."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """What one restore did to the marks. `record` is the sequence number of the checkpoint that it
    left behind, `through` the index of the last message there was."""

    operation: int
    record: int
    through: int
    before: Marks
    after: Marks


def roll_back(
    earlier: Sequence[Rollback],
    *,
    operation: int,
    record: int,
    target: int | None,
    keeps: int,
    through: int,
) -> Rollback:
    """What a restore does, after all `earlier` ones. `target` is the sequence number of the
    checkpoint that was restored, `keeps` the index of the last message that it knows. Without a
    target, as when only some paths were restored, nothing changes."""
    now = earlier[-1].after if earlier else ()
    if target is None:
        return Rollback(operation, record, through, now, now)
    then = next((r.before for r in earlier if r.record > target), now)
    after = _cut(then, 0, keeps)
    after += _cut(now, keeps + 1, through)
    after += [Stretch(a, b, operation) for a, b in _gaps(now, keeps + 1, through)]
    return Rollback(operation, record, through, now, joined(after))


def rolled_back_by(marks: Marks, index: int) -> int | None:
    """The operation that rolled a message back, or None if it holds."""
    if not marks:
        return None
    place = bisect_right(marks, index, key=lambda stretch: stretch.first) - 1
    found = marks[place] if place >= 0 else None
    return found.operation if found is not None and index <= found.last else None


def _cut(marks: Marks, first: int, last: int) -> list[Stretch]:
    found = [Stretch(max(s.first, first), min(s.last, last), s.operation) for s in marks]
    return [s for s in found if s.first <= s.last]


def _gaps(marks: Marks, first: int, last: int) -> list[tuple[int, int]]:
    found = []
    for stretch in _cut(marks, first, last):
        if first < stretch.first:
            found.append((first, stretch.first - 1))
        first = stretch.last + 1
    return [*found, (first, last)] if first <= last else found


def joined(stretches: list[Stretch]) -> Marks:
    """In order, with neighbours of one operation made one."""
    joined: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda s: s.first):
        last = joined[-1] if joined else None
        if last and last.operation == stretch.operation and last.last + 1 == stretch.first:
            joined[-1] = Stretch(last.first, stretch.last, stretch.operation)
        else:
            joined.append(stretch)
    return tuple(joined)
