"""Holdfast's own line differ: finds the common lines of two texts, without external programs.

1. Equal ends are cut off. Lines that occur once on both sides, in the same order, are anchors.
2. Between anchors, the same again. Where no line is unique, Myers' greedy search runs in windows: a
   window that would cost too much ends at the furthest point it reached, and the next starts there.
3. A run of only added or only removed lines slides to where a reader expects it: before the least
   indented line, after a blank one.

Guarantee: the hunks lead from old to new exactly. For every input (equal, periodic, shuffled, all
different lines), time and memory stay linear in the number of lines, except for one logarithm.
Not guaranteed: the shortest edit. Bounded time and readable hunks matter more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain

from holdfast.domain.diff.hunks import Change, Hunk, diff_line, hunks_between, hunks_of, split_lines
from holdfast.values.classes import dataclass

# The cost of all searches together before they get the smallest window; about a second.
_SEARCH_STEPS = 2_000_000
_SMALLEST_WINDOW = 16
_LARGEST_WINDOW = 512
# Nesting of anchors: real texts end after three or four rounds.
_ROUNDS = 12
_FURTHEST_SLIDE = 100
# The part of a line that shows its indentation.
_MARGIN_BYTES = 80


@dataclass(frozen=True, slots=True)
class Alignment:
    """The changes between two sequences in order, the equal lines, and the cost of the search."""

    changes: tuple[Change, ...]
    partners: Sequence[int]
    """For each old line the index of the equal new one, or -1."""
    steps: int

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        return ((i, j) for i, j in enumerate(self.partners) if j >= 0)


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> Alignment:
    """The changes that lead from one sequence to the other."""
    numbers: dict[Hashable, int] = {}
    search = _Search(
        [numbers.setdefault(line, len(numbers)) for line in old],
        [numbers.setdefault(line, len(numbers)) for line in new],
    )
    search.run()
    return Alignment(tuple(search.changes()), search.partners, search.steps)


def line_hunks(
    old: bytes,
    new: bytes,
    *,
    context: int,
    margin: int = 0,
    lines_before: int = 0,
    heading: bytes = b"",
) -> Iterator[Hunk]:
    """Hunks between two texts that follow `lines_before` equal lines, under `heading`.

    No change slides into the first and last `margin` lines, so that they remain as its context.
    """
    old_lines, new_lines = split_lines(old), split_lines(new)
    changes = _slide(align(old_lines, new_lines).changes, old_lines, new_lines, margin)
    return hunks_between(
        changes, old_lines, new_lines, context=context, lines_before=lines_before, heading=heading
    )


def replacement_hunks(
    above: Sequence[bytes],
    old: Iterable[bytes],
    new: Iterable[bytes],
    below: Sequence[bytes],
    *,
    lines_before: int,
    heading: bytes,
) -> Iterator[Hunk]:
    """Hunks that remove every old line and add every new one, reading both only as needed."""
    lines = chain(
        (diff_line(" ", line) for line in above),
        (diff_line("-", line) for line in old),
        (diff_line("+", line) for line in new),
        (diff_line(" ", line) for line in below),
    )
    return hunks_of(lines, lines_before + 1, lines_before + 1, heading)


class _Search:
    """An alignment in progress: lines as numbers, and the partner found for each old line."""

    def __init__(self, old: list[int], new: list[int]) -> None:
        self._old = old
        self._new = new
        self.partners = [-1] * len(old)
        self._allowance = _SEARCH_STEPS
        self.steps = 0

    def run(self) -> None:
        pending = [(0, len(self._old), 0, len(self._new), 0)]
        while pending:
            low, high, left, right, rounds = pending.pop()
            low, high, left, right = self._cut_equal_ends(low, high, left, right)
            if low == high or left == right:
                continue
            anchors = self._anchors(low, high, left, right) if rounds < _ROUNDS else []
            if not anchors:
                self._search_greedily(low, high, left, right)
                continue
            for i, j in anchors:
                self.partners[i] = j
                if low < i and left < j:
                    pending.append((low, i, left, j, rounds + 1))
                low, left = i + 1, j + 1
            pending.append((low, high, left, right, rounds + 1))

    def changes(self) -> Iterator[Change]:
        i = j = 0
        for position, partner in enumerate(chain(self.partners, [len(self._new)])):
            if partner < 0:
                continue
            if position > i or partner > j:
                yield Change(i, position, j, partner)
            i, j = position + 1, partner + 1

    def _cut_equal_ends(
        self, low: int, high: int, left: int, right: int
    ) -> tuple[int, int, int, int]:
        old, new = self._old, self._new
        before = low - high
        while low < high and left < right and old[low] == new[left]:
            self.partners[low] = left
            low, left = low + 1, left + 1
        while low < high and left < right and old[high - 1] == new[right - 1]:
            high, right = high - 1, right - 1
            self.partners[high] = right
        self.steps += low - high - before + 1
        return low, high, left, right

    def _anchors(self, low: int, high: int, left: int, right: int) -> list[tuple[int, int]]:
        """Pairs of lines that are unique on both sides: the longest sequence rising on both."""
        in_new = _unique(self._new, left, right)
        in_old = _unique(self._old, low, high)
        pairs = [(i, in_new[line]) for line, i in in_old.items() if line in in_new]
        self.steps += high - low + right - left + len(pairs) * len(pairs).bit_length()
        ends: list[int] = []  # for each length, the smallest new line that ends such a sequence
        holders: list[int] = []  # the pair that this new line belongs to
        previous: list[int] = []  # for each pair, the one before it in its sequence
        for index, (_, j) in enumerate(pairs):
            length = bisect_left(ends, j)
            previous.append(holders[length - 1] if length else -1)
            ends[length : length + 1] = [j]
            holders[length : length + 1] = [index]
        chosen: list[tuple[int, int]] = []
        index = holders[-1] if holders else -1
        while index >= 0:
            chosen.append(pairs[index])
            index = previous[index]
        return chosen[::-1]

    def _search_greedily(self, low: int, high: int, left: int, right: int) -> None:
        """Pair the lines that a short edit keeps, among lines that occur on both sides."""
        shared = set(self._old[low:high]).intersection(self._new[left:right])
        rows = [i for i in range(low, high) if self._old[i] in shared]
        columns = [j for j in range(left, right) if self._new[j] in shared]
        self.steps += high - low + right - left
        old, new = [self._old[i] for i in rows], [self._new[j] for j in columns]
        affordable = self._allowance // (len(old) + len(new) + 1)
        limit = max(_SMALLEST_WINDOW, min(_LARGEST_WINDOW, affordable))
        i = j = 0
        while i < len(old) and j < len(new):
            window = _Window(old, new, i, j)
            i, j = window.search(limit)
            self.steps += window.steps
            self._allowance = max(0, self._allowance - window.steps)
            for row, column in window.pairs(i, j):
                self.partners[rows[row]] = columns[column]


class _Window:
    """Myers' greedy search from one point, up to a number of changes.

    `reach[k]` is the furthest point in old of the best path on diagonal k (old minus new). The
    rounds are kept to trace the path back. The furthest point of d changes is at least d lines
    ahead, so windows of d changes cost a small multiple of d for each line they pass.
    """

    def __init__(self, old: list[int], new: list[int], row: int, column: int) -> None:
        self._old = old
        self._new = new
        self._row = row
        self._column = column
        self._rounds: list[dict[int, int]] = []
        self.steps = 0

    def search(self, limit: int) -> tuple[int, int]:
        """The end of both sides, or the furthest point that `limit` changes reach."""
        old, new, row, shift = self._old, self._new, self._row, self._column - self._row
        height, width = len(old), len(new)
        reach = {1: row}
        for changes in range(limit + 1):
            before, reach = reach, {}
            self._rounds.append(before)
            for k in range(-changes, changes + 1, 2):
                i = start = before[k + 1] if _adds(before, changes, k) else before[k - 1] + 1
                j = i - k + shift
                while i < height and j < width and old[i] == new[j]:
                    i, j = i + 1, j + 1
                self.steps += i - start + 1
                if i >= height and j >= width:
                    return i, j
                reach[k] = i
        points = ((i, i - k + shift) for k, i in reach.items())
        return max((p for p in points if p[0] <= height and p[1] <= width), key=sum)

    def pairs(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        """The equal lines on the path to a point that `search` returned, last first."""
        shift = self._column - self._row
        for changes in range(len(self._rounds) - 1, -1, -1):
            before = self._rounds[changes]
            k = i - j + shift
            adds = _adds(before, changes, k)
            start = before[k + 1] if adds else before[k - 1] + 1
            while i > start:
                i, j = i - 1, j - 1
                yield i, j
            i, j = (i, j - 1) if adds else (i - 1, j)


def _adds(reach: dict[int, int], changes: int, k: int) -> bool:
    """Whether the best path reaches diagonal k by an added line rather than a removed one."""
    return k == -changes or (k != changes and reach[k - 1] < reach[k + 1])


def _unique(lines: list[int], begin: int, end: int) -> dict[int, int]:
    """The position of each line that occurs once in this range, in order."""
    places: dict[int, int] = {}
    for index in range(begin, end):
        places[lines[index]] = -1 if lines[index] in places else index
    return {line: index for line, index in places.items() if index >= 0}


def _slide(
    changes: Sequence[Change], old: Sequence[bytes], new: Sequence[bytes], margin: int
) -> list[Change]:
    """The same changes, each moved along equal lines to the position that reads best."""
    result: list[Change] = []
    for index, change in enumerate(changes):
        top = result[-1].old_end if result else margin
        bottom = changes[index + 1].old_start if index + 1 < len(changes) else len(old) - margin
        above, below = change.old_start - top, bottom - change.old_end
        shift = 0
        if change.old_start == change.old_end:
            shift = _best_shift(new, change.new_start, change.new_end, above, below)
        elif change.new_start == change.new_end:
            shift = _best_shift(old, change.old_start, change.old_end, above, below)
        moved = Change(*(position + shift for position in change))
        if result and result[-1].old_end == moved.old_start:
            # No equal lines are left between the two, so they become one change.
            moved = Change(result[-1].old_start, moved.old_end, result[-1].new_start, moved.new_end)
            result.pop()
        result.append(moved)
    return result


def _best_shift(lines: Sequence[bytes], start: int, end: int, above: int, below: int) -> int:
    up = down = 0
    while up < min(above, _FURTHEST_SLIDE) and lines[start - up - 1] == lines[end - up - 1]:
        up += 1
    while down < min(below, _FURTHEST_SLIDE) and lines[start + down] == lines[end + down]:
        down += 1
    if not up and not down:
        return 0
    return min(range(down, -up - 1, -1), key=lambda shift: _awkwardness(lines, start + shift))


def _awkwardness(lines: Sequence[bytes], start: int) -> tuple[int, bool]:
    """How badly a change would begin here: deep or blank first line, no blank line above it."""
    line = lines[start][:_MARGIN_BYTES].expandtabs(8)
    text = line.lstrip()
    indentation = len(line) - len(text) if text else _MARGIN_BYTES * 8
    return indentation, start > 0 and bool(lines[start - 1].strip())
