"""The words of a text about code, their stems, and known words similar to a mistyped one.

    getUserName → get user name     HTTPServer → http server     src/auth_test.py → src auth test py
    whole: getusername              httpserver                   authtest

A word is a run of letters and digits. A name is a run of words separated only by case, `_` or `-`.
Case and accents are removed. In scripts without spaces, every character is a word, so that any part
of such a text is a phrase. The same text always gives the same words.

A stem is the common part of an English word's forms: `refresh` for refreshing, refreshes,
refreshed. It is M. F. Porter's algorithm of 1980, as in SQLite's full-text index: endings are
removed or replaced in five steps, as long as enough of the word remains. Stems are compared, never
shown. Words with other characters than English letters are their own stem, because an id or a hash
has no forms.

The distance between two words counts letters that were changed, added, omitted, or swapped with
their neighbour. Short words may differ in one, longer ones in two. A known word also matches if it
contains the typed one, or if their stems are similar: "refesh" may mean "refreshing".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from holdfast.values.classes import NamedTuple

LONGEST_WORD = 64
"""Longer runs are data, not words, and are truncated."""

# Han, kana and similar scripts have no spaces, so each character counts.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENTS = "\u0300-\u036f"
_NAME = re.compile(
    rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[^\W{_UNSPACED}]|[{_ACCENTS}]|-(?=[^\W_]))*"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])|[_-]+")


class Word(NamedTuple):
    """One word in normalised form, and its position in the text."""

    text: str
    start: int
    end: int


class Name(NamedTuple):
    """A run of words; `whole` joins them if there are several."""

    words: tuple[Word, ...]
    whole: str | None

    @property
    def stem(self) -> str:
        """The common part of its forms: `refreshtoken` for refreshTokens."""
        return "".join(stem(word.text) for word in self.words)[:LONGEST_WORD]


def names(text: str) -> Iterator[Name]:
    """Every name of a text, in order."""
    for match in _NAME.finditer(text):
        words = tuple(_words(match[0], match.start()))
        if words:
            yield Name(words, "".join(w.text for w in words) if len(words) > 1 else None)


def words(text: str) -> list[str]:
    """All words in order, for phrase search."""
    return [word.text for name in names(text) for word in name.words]


def wholes(text: str) -> list[str]:
    """The names of several words, each joined into one."""
    return [name.whole[:LONGEST_WORD] for name in names(text) if name.whole is not None]


def _words(name: str, offset: int) -> Iterator[Word]:
    at = 0
    for cut in _HUMP.finditer(name):
        if cut.start() > at:
            yield Word(folded(name[at : cut.start()]), offset + at, offset + cut.start())
        at = cut.end()
    if at < len(name):
        yield Word(folded(name[at:]), offset + at, offset + len(name))


def folded(word: str) -> str:
    """Without case and accents, and truncated to the longest word."""
    return (without_accents(word) or word).casefold()[:LONGEST_WORD]


def without_accents(text: str) -> str:
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    return "".join(c for c in apart if not unicodedata.combining(c))


_SHORTEST, _LONGEST = 3, 30
_VOWELS = "aeiou"

# The longest matching ending counts, so they are in that order.
_STEP_2 = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("entli", "ent"),
    ("ousli", "ous"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("alli", "al"),
    ("ator", "ate"),
    ("bli", "ble"),
    ("eli", "e"),
)
_STEP_3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_STEP_4 = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion"),
    *("ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou"),
)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of a lower-case word."""
    if not (_SHORTEST <= len(word) <= _LONGEST and word.isascii() and word.isalpha()):
        return word
    word = _without_past(_without_plural(word))
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _exchanged(word, _STEP_2)
    word = _exchanged(word, _STEP_3)
    return _tidied(_without_suffix(word))


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_past(word: str) -> str:
    """Removes `-ed` and `-ing`."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        start = word.removesuffix(ending)
        if start != word:
            return _mended(start) if _has_vowel(start) else word
    return word


def _mended(start: str) -> str:
    """The stem before `-ed` and `-ing`: conflat(ed) is conflate, hopp(ing) is hop."""
    if start.endswith(("at", "bl", "iz")):
        return start + "e"
    if _ends_double(start) and start[-1] not in "lsz":
        return start[:-1]
    return start + "e" if _measure(start) == 1 and _ends_short(start) else start


def _exchanged(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, instead in endings:
        if word.endswith(ending):
            start = word[: -len(ending)]
            return start + instead if _measure(start) > 0 else word
    return word


def _without_suffix(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            start = word[: -len(ending)]
            if ending == "ion" and not start.endswith(("s", "t")):
                return word
            return start if _measure(start) > 1 else word
    return word


def _tidied(word: str) -> str:
    """Without a silent `e`, and with a single `l` at the end."""
    if word.endswith("e"):
        start = word[:-1]
        if _measure(start) > 1 or (_measure(start) == 1 and not _ends_short(start)):
            word = start
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _is_consonant(word: str, at: int) -> bool:
    if word[at] in _VOWELS:
        return False
    return word[at] != "y" or at == 0 or not _is_consonant(word, at - 1)


def _measure(start: str) -> int:
    """How often a consonant follows a vowel."""
    shape = [_is_consonant(start, at) for at in range(len(start))]
    return sum(now and not before for before, now in pairwise(shape))


def _has_vowel(start: str) -> bool:
    return any(not _is_consonant(start, at) for at in range(len(start)))


def _ends_double(start: str) -> bool:
    return len(start) > 1 and start[-1] == start[-2] and _is_consonant(start, len(start) - 1)


def _ends_short(start: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, the last not w, x or y: hop, but not snow."""
    if len(start) < 3 or start[-1] in "wxy":
        return False
    last = len(start) - 1
    shape = [_is_consonant(start, at) for at in (last - 2, last - 1, last)]
    return shape == [True, False, True]


_SHORT = 4
_SHORTEST_NEAR = 3
_FARTHEST = 2
_LONGEST_NEAR = 40


def nearest(word: str, known: Iterable[tuple[str, int]], limit: int) -> list[str]:
    """The nearest known words, nearest first, then by frequency. `known` has each word with its
    number of texts."""
    if not _SHORTEST_NEAR <= len(word) <= _LONGEST_NEAR:
        return []
    found: list[tuple[float, int, str]] = []
    most = 1 if len(word) <= _SHORT else _FARTHEST
    own_stem = stem(word)
    for candidate, texts in known:
        if candidate == word or not candidate.isalpha() or len(candidate) < _SHORTEST_NEAR:
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
    """At most one letter apart. Without their endings, words must agree more closely."""
    return min(len(one), len(other)) >= _SHORT and distance(one, other, 1) is not None


def beginnings(word: str) -> Iterator[str]:
    """First letters of words that may have been meant: the first letter, or the second in its
    place."""
    yield from dict.fromkeys(word[:2])


def distance(one: str, other: str, most: int) -> int | None:
    """The distance of two words; None if it is more than `most`."""
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
