"""The words of a text about code: names are taken apart, and are found whole as well.

    getUserName → get user name     HTTPServer → http server     src/auth_test.py → src auth test py
    whole: getusername              httpserver                   authtest

A word is a run of letters and digits; a name is a run of words that only case, `_` or `-` separate.
Letters lose case and accents. Where a script writes without spaces, every character is a word, so
that any piece of such a text is a phrase.

Guarantee: the same text gives the same words, and `spans` tells where each of them stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.domain.search.stemming import stem

LONGEST_WORD = 64
"""Longer runs are data, not words: their beginning stands for them."""

# Han, kana and the like: no spaces, so each character counts.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENTS = "\u0300-\u036f"
_NAME = re.compile(
    rf"[{_UNSPACED}]|[^\W_{_UNSPACED}](?:[^\W{_UNSPACED}]|[{_ACCENTS}]|-(?=[^\W_]))*"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])|[_-]+")


class Word(NamedTuple):
    """One word as it is compared, and where the text has it."""

    text: str
    start: int
    end: int


class Name(NamedTuple):
    """A run of words; `whole` is all of them in one, if there are several."""

    words: tuple[Word, ...]
    whole: str | None

    @property
    def stem(self) -> str:
        """What it shares with its other forms: `refreshtoken` of refreshTokens."""
        return "".join(stem(word.text) for word in self.words)[:LONGEST_WORD]


def names(text: str) -> Iterator[Name]:
    """Every name of a text, in order."""
    for match in _NAME.finditer(text):
        words = tuple(_words(match[0], match.start()))
        if words:
            yield Name(words, "".join(w.text for w in words) if len(words) > 1 else None)


def words(text: str) -> list[str]:
    """All words in order; phrases are looked for in these."""
    return [word.text for name in names(text) for word in name.words]


def wholes(text: str) -> list[str]:
    """The names that consist of several words, each in one."""
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
    """Without case and accents, and not longer than a word is."""
    if not word.isascii():
        apart = unicodedata.normalize("NFKD", word)
        word = "".join(c for c in apart if not unicodedata.combining(c)) or word
    return word.casefold()[:LONGEST_WORD]
