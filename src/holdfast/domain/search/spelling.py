"""The known words that a mistyped one may have meant.

Distance: letters that were changed, added, left out, or exchanged with their neighbour. Short words
may differ in one, longer ones in two. A known word is near as well when it contains what was typed,
or when their stems are near: "refesh" may mean "refreshing", "tokn" may mean "tokens".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.domain.search.stemming import stem

_SHORT = 4
_SHORTEST = 3
_FARTHEST = 2
_LONGEST = 40


def nearest(word: str, known: Iterable[tuple[str, int]], limit: int) -> list[str]:
    """At most so many, the nearest first, of equals the one that stands in more texts; `known`
    are words with the number of their texts."""
    if not _SHORTEST <= len(word) <= _LONGEST:
        return []
    found: list[tuple[float, int, str]] = []
    most = 1 if len(word) <= _SHORT else _FARTHEST
    own_stem = stem(word)
    for candidate, texts in known:
        if candidate == word or not candidate.isalpha() or len(candidate) < _SHORTEST:
            continue
        away = distance(word, candidate, most)
        if away is not None:
            found.append((away, -texts, candidate))
        elif _have_near_stems(own_stem, stem(candidate)):
            found.append((most + 0.25, -texts, candidate))
        elif len(word) > _SHORT and word in candidate:
            found.append((most + 0.5, -texts, candidate))
    return [candidate for _, _, candidate in sorted(found)[:limit]]


def _have_near_stems(one: str, other: str) -> bool:
    """One letter apart at most: endings have gone, so what is left has to agree more closely."""
    return min(len(one), len(other)) >= _SHORT and distance(one, other, 1) is not None


def beginnings(word: str) -> Iterator[str]:
    """What a word begins with that may have been meant: with its first letter, or the second in
    its place."""
    yield from dict.fromkeys(word[:2])


def distance(one: str, other: str, most: int) -> int | None:
    """None when it is more than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, against in enumerate(other, 1):
            cost = min(
                last[column] + 1,
                now[column - 1] + 1,
                last[column - 1] + (letter != against),
            )
            exchanged = row > 1 and column > 1 and letter == other[column - 2]
            if exchanged and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        if min(now) > most:
            return None
        before, last = last, now
    return last[-1] if last[-1] <= most else None
