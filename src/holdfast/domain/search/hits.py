"""Search results: checkpoints and messages, each with excerpts that show the matches."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import SessionId
from holdfast.domain.search.query import Term
from holdfast.domain.search.words import LONGEST_WORD, Name, Word, names, stem, without_accents

LONGEST_TEXT = 100_000
"""How many characters of a text are searched."""

_BEFORE = 50
_WIDTH = 160
_PIECE = 250
_LONGEST_PIECE = 2_000
_SPACE = re.compile(r"\s")
_SEPARATORS = {ord(c): None for c in "_-"}
_GAPS = {ord(c): " " for c in "\t\n\r\v\f\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of a text in one line; `spans` are the start and end of each match."""

    text: str
    spans: tuple[tuple[int, int], ...]


def spans(text: str, terms: Iterable[Term]) -> list[tuple[int, int]]:
    """Every occurrence of the terms, in order, without overlaps."""
    found_names = list(names(text[:LONGEST_TEXT]))
    words = [word for name in found_names for word in name.words]
    found: set[tuple[int, int]] = set()
    for term in terms:
        found |= _as_words(words, term)
        found |= _as_names(found_names, term)
        found |= _as_forms(found_names, term)
    return _joined(sorted(found))


def excerpt(text: str, terms: Sequence[Term]) -> Excerpt | None:
    """The text around its first match; None if there is none."""
    found = _first_spans(text, terms)
    if not found:
        return None
    begin = max(found[0][0] - _BEFORE, 0) if len(text) > _WIDTH else 0
    begin = _word_boundary(text, begin, found[0][0])
    end = max(min(begin + _WIDTH, len(text)), found[0][1])
    lead, tail = "…" if begin else "", "…" if end < len(text) else ""
    shift = len(lead) - begin
    inside = tuple((a + shift, min(b, end) + shift) for a, b in found if a < end)
    return Excerpt(lead + text[begin:end].translate(_GAPS) + tail, inside)


def lead_excerpt(text: str) -> Excerpt:
    """The beginning of a text, for a query without words."""
    tail = "…" if len(text) > _WIDTH else ""
    return Excerpt(text[:_WIDTH].translate(_GAPS) + tail, ())


def _first_spans(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """At least the spans that start within `_WIDTH` of the first one."""
    searched = text[:LONGEST_TEXT]
    if len(searched) <= _LONGEST_PIECE:
        return spans(searched, terms)
    wanted = {term.words[0] for term in terms}
    wanted |= {term.whole[:LONGEST_WORD] for term in terms if term.whole is not None}
    # A stem may end in other letters than its word: `happi` for happy.
    wanted |= {term.stem[: max(len(term.stem) - 2, 1)] for term in terms if term.stem is not None}
    for begin, end in _pieces(searched):
        letters = _letters(searched[begin:end])
        if any(word in letters for word in wanted):
            found = _within(searched, begin, end, terms)
            if found:
                behind = max(end, _next_space(searched, found[0][0] + _WIDTH))
                return found + _within(searched, end, behind, terms)
    # The match is between two pieces, or there is none.
    return spans(searched, terms) if any(len(term.words) > 1 for term in terms) else []


def _within(text: str, begin: int, end: int, terms: Sequence[Term]) -> list[tuple[int, int]]:
    return [(first + begin, last + begin) for first, last in spans(text[begin:end], terms)]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where to split the text, between words if possible."""
    begin = 0
    while begin < len(text):
        end = _next_space(text, begin + _PIECE)
        yield begin, end
        begin = end


def _next_space(text: str, start: int) -> int:
    found = _SPACE.search(text, start, start + _LONGEST_PIECE)
    return found.start() if found else min(start + _LONGEST_PIECE, len(text))


def _letters(text: str) -> str:
    """Normalised text that contains every word and name."""
    return without_accents(text).translate(_SEPARATORS).casefold()


def _as_words(words: Sequence[Word], term: Term) -> set[tuple[int, int]]:
    wanted, count = term.words, len(term.words)
    found = set()
    for first in range(len(words) - count + 1):
        run = words[first : first + count]
        if all(
            _same(word.text, want, term.prefix and number == count - 1)
            for number, (word, want) in enumerate(zip(run, wanted, strict=True))
        ):
            found.add((run[0].start, run[-1].end))
    return found


def _as_names(found: Iterable[Name], term: Term) -> set[tuple[int, int]]:
    one_word = term.words[0] if len(term.words) == 1 else term.whole
    if one_word is None:
        return set()
    wanted = one_word[:LONGEST_WORD]
    return {
        (name.words[0].start, name.words[-1].end)
        for name in found
        if name.whole is not None and _same(name.whole[:LONGEST_WORD], wanted, term.prefix)
    }


def _as_forms(found: Iterable[Name], term: Term) -> set[tuple[int, int]]:
    """Words and names with the same stem as the term."""
    wanted = term.stem
    if wanted is None:
        return set()
    spans: set[tuple[int, int]] = set()
    for name in found:
        if name.whole is not None and name.stem == wanted:
            spans.add((name.words[0].start, name.words[-1].end))
        spans |= {(word.start, word.end) for word in name.words if stem(word.text) == wanted}
    return spans


def _same(word: str, wanted: str, prefix: bool) -> bool:
    return word.startswith(wanted) if prefix else word == wanted


def _joined(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and begin < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _word_boundary(text: str, begin: int, match: int) -> int:
    """The start of the next word, so that the excerpt does not start inside one."""
    if begin == 0 or text[begin - 1].isspace():
        return begin
    gaps = [at for at in range(begin, match) if text[at].isspace()]
    place = bisect_left(gaps, begin)
    return gaps[place] + 1 if place < len(gaps) else begin


class Field(StrEnum):
    """The fields that a word can be in."""

    NAME = "name"
    REASONING = "reasoning"
    TAG = "tag"
    ID = "id"
    """The goal, the task or the tool use."""
    TOOL = "tool call"
    ANNOTATION = "annotation"
    PATH = "path"
    MESSAGE = "message"


FIELD_WEIGHTS = {
    Field.NAME: 10.0,
    Field.TAG: 6.0,
    Field.ANNOTATION: 5.0,
    Field.ID: 4.0,
    Field.REASONING: 4.0,
    Field.MESSAGE: 2.0,
    Field.TOOL: 2.0,
    Field.PATH: 2.0,
}
"""The weight of a word, by its field."""


@dataclass(frozen=True, slots=True)
class Match:
    """One text that matched; `message_index` says which message it is."""

    field: Field
    excerpt: Excerpt
    message_index: int | None = None
    role: str | None = None
    rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A checkpoint, or a message without a checkpoint, with its best matches first."""

    session_id: SessionId
    checkpoint: Checkpoint | None
    at_ns: int
    score: float
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first. Not `complete`: the index is not up to date yet; the next search continues
    indexing. `back_to_ns`: the query was too expensive, and older entries were not searched.
    `suggestions` are similar queries with hits, if there is no hit."""

    hits: tuple[Hit, ...]
    complete: bool = True
    warnings: tuple[str, ...] = ()
    back_to_ns: int | None = None
    suggestions: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
