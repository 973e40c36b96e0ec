"""The stem that the forms of an English word share: `refresh` of refreshing, refreshes, refreshed.

M. F. Porter's algorithm of 1980, as SQLite's full-text index has it: endings are taken off or
exchanged in five steps, as long as enough of the word remains. A stem is compared, never shown.

Guarantee: the same word gives the same stem. Words that are not plain English letters are their
own stem: an id or a hash has no forms.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

_SHORTEST, _LONGEST = 3, 30
_VOWELS = "aeiou"

# Of several endings that fit, the longest counts: they stand in that order.
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
    """Of a word in lower case."""
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
    """`-ed` and `-ing`."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        start = word.removesuffix(ending)
        if start != word:
            return _mended(start) if _has_vowel(start) else word
    return word


def _mended(start: str) -> str:
    """What stands before `-ed` and `-ing`: conflat(ed) is conflate, hopp(ing) is hop."""
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
    """Without a silent `e`, and with one `l` at the end."""
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
    """With consonant, vowel, consonant, the last not w, x or y: hop, and not snow."""
    if len(start) < 3 or start[-1] in "wxy":
        return False
    last = len(start) - 1
    shape = [_is_consonant(start, at) for at in (last - 2, last - 1, last)]
    return shape == [True, False, True]
