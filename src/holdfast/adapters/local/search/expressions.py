"""The tables of the search index, and a query as the full-text index understands it.

`moments` have a row for each checkpoint and `sayings` one for each message, numbered like their
sources. Neither keeps the texts, only the positions of words. Each is split into parts by number,
so that searching the newest costs the same however much there is. The cost of a query grows with
the part, mostly for prefixes, which are collected from a whole table. The words of a column are
followed by the marked stems of those that have one. `scope` holds marks instead of words: session,
kind, tags and states, so that filters are as fast as words. `eras` has the time range of each block
of numbers.

User input is never syntax: words are letters and digits, in quotes, and marks are generated here.
The phrases of an expression are numbered in order; `terms` maps them to the terms of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checkpoints import RECORD_KINDS, Kind
from holdfast.domain.search.hits import FIELD_WEIGHTS, Field
from holdfast.domain.search.query import SearchQuery, State, TagFilter, Term

FORMAT = "4"
OUR_MARK = b"CREATE TABLE eras ("
BLOCK_BITS = 12
INDEXED_BEGINNING = 5
"""The longest prefix that the index stores like a word; longer ones are assembled."""

CHECKPOINT_COLUMNS = {
    "name": Field.NAME,
    "reasoning": Field.REASONING,
    "tags": Field.TAG,
    "ids": Field.ID,
    "tools": Field.TOOL,
    "notes": Field.ANNOTATION,
    "paths": Field.PATH,
}
MESSAGE_COLUMNS = {"content": Field.MESSAGE, "tools": Field.TOOL}
WHOLE = "whole"
"""Names of several words, from all other columns."""

SCOPE = "scope"

COLUMN_WEIGHTS = {WHOLE: 5.0} | {
    column: FIELD_WEIGHTS[field] for column, field in (CHECKPOINT_COLUMNS | MESSAGE_COLUMNS).items()
}

_BEGINNINGS = " ".join(map(str, range(1, INDEXED_BEGINNING + 1)))
_OPTIONS = (
    f"content='', contentless_delete=1, prefix='{_BEGINNINGS}',"
    " tokenize='unicode61 remove_diacritics 2'"
)


class Place(StrEnum):
    """The table of the rows that an index covers."""

    KEPT = "kept"
    SAID = "said"


_NAMES = {Place.KEPT: "moments", Place.SAID: "sayings"}
_PART_BITS = {Place.KEPT: 15, Place.SAID: 16}
COLUMNS_OF = {Place.KEPT: CHECKPOINT_COLUMNS, Place.SAID: MESSAGE_COLUMNS}


def part_of(place: Place, sequence: int) -> int:
    return sequence >> _PART_BITS[place]


def first_of_part(place: Place, part: int) -> int:
    """The lowest number that a row in it can have."""
    return part << _PART_BITS[place]


def index_of(place: Place, part: int) -> str:
    """The name of the table."""
    return f"{_NAMES[place]}_{part}"


def make_index(place: Place, part: int) -> str:
    """The statement that creates it if it is missing."""
    named = ", ".join((*COLUMNS_OF[place], WHOLE, SCOPE))
    table = index_of(place, part)
    return f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5({named}, {_OPTIONS})"


SCHEMA = f"""
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE kept (
  sequence INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session INTEGER NOT NULL,
  at_ns INTEGER NOT NULL,
  message_index INTEGER
);
CREATE INDEX kept_by_message ON kept(session, message_index) WHERE message_index IS NOT NULL;
CREATE TABLE said (
  sequence INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_ns INTEGER NOT NULL
);
CREATE TABLE eras (
  place TEXT NOT NULL,
  block INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL,
  PRIMARY KEY (place, block)
) WITHOUT ROWID;
INSERT INTO facts VALUES ('format', '{FORMAT}');
"""


PLAIN = "fplain"
"""The mark of checkpoints that are not records."""

ASIDE = -1

SPOKEN = "fspoken"
"""The mark of every message."""

STEM = "\ue001"
"""The prefix of a stem, so that no word is mistaken for one."""

BOUNDARY = "\ue000"
"""A word that no query can contain, between texts that no phrase should join."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What to match. `terms[n]` is the number of the term that phrase `n` belongs to. It is `ASIDE`
    if the phrase does not score but its position is reported, and None for a mark. `forms` are the
    phrases for other forms of the query words."""

    text: str
    terms: tuple[int | None, ...]
    forms: frozenset[int] = frozenset()


def session_mark(number: int) -> str:
    return f"s{number}"


def kind_mark(kind: Kind) -> str:
    return "k" + kind.value.replace("-", "")


def tag_mark(tag: str) -> str:
    """In hexadecimal, so that a prefix of a tag is a prefix of its mark."""
    return "t" + tag.casefold().encode("utf-8", "surrogatepass").hex()


def title_mark(word: str) -> str:
    """For a word in the name or a tag, to find it separately from the many texts that contain
    it."""
    return "n" + word


def stem_mark(stem: str) -> str:
    return STEM + stem


def state_mark(state: State) -> str:
    return "f" + state.value


def joined(texts: Iterable[Sequence[str]]) -> str:
    """Texts, each given as its words, as one text for the index."""
    return f" {BOUNDARY} ".join(" ".join(words) for words in texts)


class ExpressionWriter:
    """Builds an expression and numbers its phrases."""

    def __init__(self) -> None:
        self._clauses: list[str] = []
        self._terms: list[int | None] = []
        self._forms: set[int] = set()

    def written(self) -> Expression:
        return Expression(" AND ".join(self._clauses), tuple(self._terms), frozenset(self._forms))

    def want(self, term: Term, number: int) -> None:
        """Anywhere except among the marks."""
        words = self._phrase(" ".join(term.words), number, prefix=term.prefix)
        ways = [f"- {SCOPE} : {words}"]
        if term.whole is not None:
            ways.append(f"{WHOLE} : " + self._phrase(term.whole, number, prefix=term.prefix))
        for form in _forms(term):
            ways.append(f"- {SCOPE} : " + self._form(form, number))
        self._clauses.append(f"({' OR '.join(ways)})")

    def want_in_title(self, term: Term, number: int) -> None:
        """Only in the name or a tag, by their marks."""
        ways = [self._phrase(" ".join(map(title_mark, term.words)), number, prefix=term.prefix)]
        if term.whole is not None:
            ways.append(self._phrase(title_mark(term.whole), number, prefix=term.prefix))
        ways += [self._form(title_mark(form), number) for form in _forms(term)]
        self._clauses.append(f"{SCOPE} : ({' OR '.join(ways)})")

    def among(self, column: str, terms: Sequence[Term]) -> None:
        if terms:
            ways = [self._phrase(" ".join(t.words), ASIDE, prefix=t.prefix) for t in terms]
            self._clauses.append(f"{column} : ({' OR '.join(ways)})")

    def marked(self, marks: Iterable[tuple[str, bool]]) -> None:
        """One of these marks; the flag says whether it is only a prefix."""
        ways = [self._phrase(mark, None, prefix=prefix) for mark, prefix in marks]
        if ways:
            self._clauses.append(f"{SCOPE} : ({' OR '.join(ways)})")

    def _form(self, word: str, number: int) -> str:
        self._forms.add(len(self._terms))
        return self._phrase(word, number, prefix=False)

    def _phrase(self, words: str, term: int | None, *, prefix: bool) -> str:
        self._terms.append(term)
        return f'"{words}"' + (" *" if prefix else "")


def _forms(term: Term) -> Iterator[str]:
    """The index words for its other forms."""
    if (stem := term.stem) is not None:
        yield stem_mark(stem)
        if stem != (term.whole or term.words[0]):
            yield stem


def about_checkpoints(
    query: SearchQuery, sessions: Sequence[int] | None, *, titles: bool = False
) -> Expression:
    """For the index of checkpoints; `titles`: terms must be in the name or a tag."""
    writer = ExpressionWriter()
    for number, term in enumerate(query.terms):
        if titles:
            writer.want_in_title(term, number)
        else:
            writer.want(term, number)
    writer.among("paths", query.paths)
    writer.among("name", query.names)
    writer.marked((kind_mark(kind), False) for kind in query.kinds)
    writer.marked(_tag(tag) for tag in query.tags)
    for state in query.states:
        if state is not State.MESSAGE:
            writer.marked([(state_mark(state), False)])
    wants_records = State.RECORD in query.states or any(k in RECORD_KINDS for k in query.kinds)
    if not wants_records:
        # Content that only a restore saved, because it was in the way, is in no other checkpoint.
        unsaved = [(kind_mark(Kind.SAFETY), False)] if query.paths else []
        writer.marked([(PLAIN, False), *unsaved, *_worth_finding(query)])
    _within(writer, sessions)
    return writer.written()


def _worth_finding(query: SearchQuery) -> Iterator[tuple[str, bool]]:
    """Records with notes or approvals: after a restore, HEAD is one, and its notes are on no other
    checkpoint."""
    for state in (State.ANNOTATED, State.APPROVED):
        if state in query.states or (query.terms and state is State.ANNOTATED):
            yield state_mark(state), False


def about_messages(query: SearchQuery, sessions: Sequence[int] | None) -> Expression:
    writer = ExpressionWriter()
    for number, term in enumerate(query.terms):
        writer.want(term, number)
    if not query.terms:
        writer.marked([(SPOKEN, False)])
    _within(writer, sessions)
    return writer.written()


def alone(word: str, *, prefix: bool, forms: bool = False) -> str:
    """One word without anything else, to find out how common it is. For a prefix, only the indexed
    part counts, so that this costs no more than a word."""
    writer = ExpressionWriter()
    beginning = word[:INDEXED_BEGINNING] if prefix else word
    writer.want(Term((beginning,), prefix=prefix, forms=forms), 0)
    return writer.written().text


def _within(writer: ExpressionWriter, sessions: Sequence[int] | None) -> None:
    if sessions is not None:
        writer.marked((session_mark(number), False) for number in sessions)


def _tag(tag: TagFilter) -> tuple[str, bool]:
    return tag_mark(tag.text), tag.prefix
