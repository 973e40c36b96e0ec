"""A search query, parsed from one line of text. Every line is valid.

    login timeout          both words, in    "connection reset"    a phrase, or one word
                           any form                                exactly as written
    getUser*               a prefix          kind: session: tag: path: name: after: before: is:
                                             filters; repeated filters mean OR

An unknown filter, or a filter with an invalid value, is searched as text. An unclosed quote ends
with the line. An empty query matches everything; punctuation alone matches nothing.

The score is BM25 with weighted fields; common words count less:

    frequency = sum of the weights of the fields with the word, once per occurrence
    score     = sum over words of rarity · frequency · (k + 1) / (frequency + k · norm)
    norm      = 1 - b + b · length, relative to the average length

Word frequency is counted only up to a limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from holdfast.domain.checkpoints import Kind, kinds_named
from holdfast.domain.errors import UnknownReference
from holdfast.domain.references import TimeReference, parse_reference
from holdfast.domain.search.words import LONGEST_WORD, names, stem

FILTERS = ("kind", "session", "tag", "path", "name", "is", "after", "before")
LONGEST_QUERY = 2_000
MOST_TERMS = 32
MOST_WORDS = 16
"""The most words in a phrase; further words are ignored."""

_LISTS = ("terms", "kinds", "sessions", "tags", "paths", "names", "states")
_FARTHEST_NS = (1 << 63) - 1
_PIECE = re.compile(r'(?:([A-Za-z]+):)?(?:"([^"]*)"?(\*?)|([^\s"]+))')


class State(StrEnum):
    """A property of a checkpoint or hit that a query can require."""

    NAMED = "named"
    APPROVED = "approved"
    PARTIAL = "partial"
    RECORD = "record"
    ANNOTATED = "annotated"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent words. `whole` is the one word they form, if written as one name. `prefix`: the last
    word only has to start like this. `forms`: words and names with the same stem match too."""

    words: tuple[str, ...]
    whole: str | None = None
    prefix: bool = False
    forms: bool = False

    @property
    def stem(self) -> str | None:
        """The stem of the word or name; None if only the exact text matches."""
        return "".join(map(stem, self.words))[:LONGEST_WORD] if self.forms else None


@dataclass(frozen=True, slots=True)
class TagFilter:
    """A tag as written, or a prefix of one."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """All terms must match, and one of each kind of filter."""

    terms: tuple[Term, ...] = ()
    kinds: tuple[Kind, ...] = ()
    sessions: tuple[str, ...] = ()
    tags: tuple[TagFilter, ...] = ()
    paths: tuple[Term, ...] = ()
    names: tuple[Term, ...] = ()
    states: tuple[State, ...] = ()
    after_ns: int | None = None
    before_ns: int | None = None
    is_wordless: bool = False
    """The query was only punctuation, so nothing is found."""

    @property
    def about_checkpoints(self) -> bool:
        """Whether it requires properties that only checkpoints have."""
        only = [state for state in self.states if state is not State.MESSAGE]
        return bool(self.kinds or self.tags or self.paths or self.names or only)


def parse_query(text: str, *, now_ns: int) -> SearchQuery:
    query = SearchQuery()
    text = text.strip()[:LONGEST_QUERY].encode("utf-8", "replace").decode()
    lost = False
    for key, value, quoted, prefix in _pieces(text):
        understood = _filtered(query, key.lower(), value, prefix, now_ns) if key else None
        if understood is not None:
            query = understood
            continue
        said = f"{key}:{value}" if key else value
        if not quoted and said.endswith(":") and said[:-1].lower() in FILTERS:
            continue  # a filter that is still being typed
        terms = tuple(_terms(said, quoted, prefix))
        query, lost = replace(query, terms=query.terms + terms), lost or not terms
    if lost and query == SearchQuery():
        return SearchQuery(is_wordless=True)
    bounded: dict[str, Any] = {name: _bounded(getattr(query, name)) for name in _LISTS}
    return replace(query, **bounded)


def free_words(text: str) -> list[tuple[int, int]]:
    """The positions of the query words that are neither quoted nor a filter."""
    return [
        match.span()
        for match in _PIECE.finditer(text[:LONGEST_QUERY])
        if match[4] is not None and match[1] is None and any(names(match[4]))
    ]


def _bounded(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without duplicates, up to a limit."""
    return tuple(dict.fromkeys(found))[:MOST_TERMS]


def _pieces(text: str) -> Iterator[tuple[str, str, bool, bool]]:
    """Key (may be empty), value, whether it was quoted, whether it is a prefix."""
    for key, quoted, star, plain in _PIECE.findall(text):
        if plain:
            yield key, plain.rstrip("*"), False, plain.endswith("*")
        else:
            yield key, quoted, True, bool(star)


def _terms(text: str, quoted: bool, prefix: bool) -> Iterator[Term]:
    """One term for a phrase; for plain text, one for each run that punctuation joins."""
    for part in [text] if quoted else text.split():
        found = list(names(part))
        words = tuple(word.text for name in found for word in name.words)
        if words:
            whole = found[0].whole if len(found) == 1 else None
            if len(words) > MOST_WORDS:
                words, prefix = words[:MOST_WORDS], False
            is_one = whole is not None or len(words) == 1
            yield Term(words, whole, prefix, forms=is_one and not (quoted or prefix))


def _filtered(
    query: SearchQuery, key: str, value: str, prefix: bool, now_ns: int
) -> SearchQuery | None:
    """The query with one more filter; None if it is not a filter."""
    if not value.strip():
        return query if key in FILTERS else None
    if key in ("path", "name"):
        found = tuple(_terms(value, True, prefix))
        if not found:
            return None
        more = query.paths + found if key == "path" else query.names + found
        return replace(query, paths=more) if key == "path" else replace(query, names=more)
    if key == "session":
        return replace(query, sessions=(*query.sessions, value))
    if key == "tag":
        return replace(query, tags=(*query.tags, TagFilter(value, prefix)))
    if key == "kind":
        kinds = kinds_named(value)
        return replace(query, kinds=query.kinds + kinds) if kinds else None
    if key == "is":
        state = next((state for state in State if state.value == value.lower()), None)
        return replace(query, states=(*query.states, state)) if state else None
    moment = moment_ns(value, now_ns) if key in ("after", "before") else None
    if moment is None:
        return None
    return replace(query, after_ns=moment) if key == "after" else replace(query, before_ns=moment)


def moment_ns(text: str, now_ns: int) -> int | None:
    """`2h` is two hours ago; otherwise any time that a reference accepts."""
    for written in (f"@{{{text} ago}}", f"@{{{text}}}"):
        try:
            found = parse_reference(written, now_ns=now_ns)
        except UnknownReference:
            continue
        if isinstance(found, TimeReference):
            return max(-_FARTHEST_NS, min(found.at_ns, _FARTHEST_NS))
    return None


COUNTED_AT_MOST = 2_000
FORM_SHARE = 0.6
"""The weight of another form of a word, relative to the word itself."""

_K = 1.2
_B = 0.75


def rarity(documents: int, total: int) -> float:
    """The rarity of a word that this many documents have; always positive."""
    documents = min(documents, total)
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))


def score(frequencies: Sequence[float], rarities: Sequence[float], length: float) -> float:
    """Both sequences are in term order."""
    norm = _K * (1 - _B + _B * length)
    total = 0.0
    for rare, frequency in zip(rarities, frequencies, strict=True):
        total += rare * frequency * (_K + 1) / (frequency + norm)
    return total
