"""Queries the parts of the index one after the other, newest first, within a limited effort.

    newest part → enough matches, or nothing older in that time: done
                → effort spent: stop, and report how far back it searched
                → else the part before it

The newest part is always searched, so that a small store is always searched completely. Similar
words for a mistyped one come from the newest part too.

Rows are scored while the full-text index finds them, as one number each, for speed: score in
thousandths · 2^16 + one bit for each matching column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw

from holdfast.adapters.local.search.expressions import (
    ASIDE,
    BLOCK_BITS,
    COLUMN_WEIGHTS,
    COLUMNS_OF,
    SCOPE,
    WHOLE,
    Expression,
    Place,
    alone,
    first_of_part,
    index_of,
    part_of,
)
from holdfast.domain.ids import CheckpointId
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import (
    COUNTED_AT_MOST,
    FORM_SHARE,
    SearchQuery,
    Term,
    rarity,
    score,
)
from holdfast.domain.search.words import beginnings, nearest

_COLUMN_BITS = 16
_PARTS = 1000


class Scorer:
    """Called by the database for every row it finds; call `about` first to set the query."""

    def __init__(self) -> None:
        self._phrases: Sequence[tuple[int, int, float]] = ()
        self._weights: Sequence[float] = ()
        self._rarities: Sequence[float] = ()
        self._average = 0.0

    def about(
        self, expression: Expression, weights: Sequence[float], rarities: Sequence[float]
    ) -> None:
        self._phrases = [
            (n, term, FORM_SHARE if n in expression.forms else 1.0)
            for n, term in enumerate(expression.terms)
            if term is not None
        ]
        self._weights = weights
        self._rarities = rarities
        self._average = 0.0

    def __call__(self, api: apsw.FTS5ExtensionApi, /, *_: object) -> int:
        if not self._average:
            self._average = max(api.column_total_size() / max(api.row_count, 1), 1.0)
        frequencies = [0.0] * len(self._rarities)
        columns = 0
        for phrase, term, share in self._phrases:
            for column in api.phrase_columns(phrase):
                columns |= 1 << column
                if term != ASIDE:
                    times = len(api.phrase_column_offsets(phrase, column))
                    frequencies[term] += times * share * self._weights[column]
        worth = score(frequencies, self._rarities, api.column_size() / self._average)
        return (int(worth * _PARTS) << _COLUMN_BITS) | columns


def score_in(number: int) -> float:
    return (number >> _COLUMN_BITS) / _PARTS


def columns_in(number: int) -> Iterator[int]:
    """The numbers of the matching columns."""
    return (column for column in range(_COLUMN_BITS) if number >> column & 1)


_LAST = (1 << 62) - 1
_COUNTED_TOGETHER = 4 * COUNTED_AT_MOST
_COUNTED_WORDS = 3
_COUNTED_PARTS = 2
_WORD_PARTS = 1
"""How many of the newest parts of each table provide words."""
_WORDS_AT_ONCE = 200
_WORDS = """
SELECT term, doc FROM temp.vocabulary_of_{table} WHERE term >= ? AND term < ?
"""
_KEYS = {Place.KEPT: "row.id, NULL", Place.SAID: "NULL, row.position"}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A matching row."""

    sequence: int
    session: int
    at_ns: int
    checkpoint_id: CheckpointId | None
    position: int | None
    score: float
    fields: frozenset[Field]


class Effort:
    """The maximum cost of one search. `back_to_ns` is where it stopped, None if it finished."""

    def __init__(self, clock_ns: Callable[[], int], most_ns: int) -> None:
        self._clock_ns = clock_ns
        self._until_ns = clock_ns() + most_ns
        self.back_to_ns: int | None = None

    def is_spent(self) -> bool:
        return self._clock_ns() >= self._until_ns

    def stopped_at(self, at_ns: int) -> None:
        known = self.back_to_ns
        self.back_to_ns = at_ns if known is None else max(known, at_ns)


@dataclass(frozen=True, slots=True)
class Question:
    """The query, for any table."""

    db: apsw.Connection
    scorer: Scorer
    effort: Effort
    query: SearchQuery
    rarities: Sequence[float]
    most: int

    def ask(
        self, place: Place, expression: Expression, mark_weight: float = 0.0
    ) -> list[Candidate]:
        """The newest matches, newest first."""
        after = -_LAST if self.query.after_ns is None else self.query.after_ns
        before = _LAST if self.query.before_ns is None else self.query.before_ns
        fields = COLUMNS_OF[place]
        columns = [*fields, WHOLE, SCOPE]
        # A whole name may belong to a path; the position of a mark is not reported.
        field_of = {number: fields.get(column, Field.PATH) for number, column in enumerate(columns)}
        del field_of[columns.index(SCOPE)]
        weights = [COLUMN_WEIGHTS.get(column, mark_weight) for column in columns]
        found: list[Candidate] = []
        looked_from: int | None = None
        first, last = _rows_between(self.db, place, after, before)
        for part in parts(self.db, place, first, last):
            if looked_from is not None and self.effort.is_spent():
                self.effort.stopped_at(_moment_of(self.db, place, looked_from))
                break
            self.scorer.about(expression, weights, self.rarities)
            wanted = (expression.text, first, last, after, before, self.most - len(found))
            for sequence, session, at_ns, key, position, worth in rows(
                self.db, _statement(place, part), *wanted
            ):
                where = frozenset(field_of[n] for n in columns_in(worth) if n in field_of)
                found.append(
                    Candidate(sequence, session, at_ns, key, position, score_in(worth), where)
                )
            if len(found) >= self.most:
                break
            looked_from = first_of_part(place, part)
        return found


def parts(db: apsw.Connection, place: Place, first: int = 0, last: int = _LAST) -> Iterator[int]:
    """The parts with a row between these numbers, newest first."""
    query = f"SELECT max(sequence) FROM {place.value} WHERE sequence BETWEEN ? AND ?"
    while True:
        [(newest,)] = rows(db, query, first, last)
        if newest is None:
            return
        part = part_of(place, newest)
        yield part
        last = first_of_part(place, part) - 1


def rows(db: apsw.Connection, statement: str, *values: Any) -> list[Any]:
    return db.execute(statement, values).fetchall()


def _statement(place: Place, part: int) -> str:
    table = index_of(place, part)
    return f"""
SELECT row.sequence, row.session, row.at_ns, {_KEYS[place]}, worth({table})
FROM {table} CROSS JOIN {place.value} row ON row.sequence = {table}.rowid
WHERE {table} MATCH ? AND {table}.rowid BETWEEN ? AND ? AND row.at_ns >= ? AND row.at_ns < ?
ORDER BY {table}.rowid DESC LIMIT ?
"""


def _rows_between(db: apsw.Connection, place: Place, after: int, before: int) -> tuple[int, int]:
    """The range of numbers that contains everything of that time."""
    if (after, before) == (-_LAST, _LAST):
        return 0, _LAST
    query = "SELECT min(block), max(block) FROM eras WHERE place=? AND last_ns>=? AND first_ns<?"
    [(first, last)] = rows(db, query, place.value, after, before)
    if first is None:
        return 1, 0
    return first << BLOCK_BITS, ((last + 1) << BLOCK_BITS) - 1


def _moment_of(db: apsw.Connection, place: Place, sequence: int) -> int:
    """The time of the first row from this number on, which exists."""
    query = f"SELECT at_ns FROM {place.value} WHERE sequence>=? ORDER BY sequence LIMIT 1"
    [(at_ns,)] = rows(db, query, sequence)
    return int(at_ns)


def near_words(db: apsw.Connection, effort: Effort, word: str, limit: int) -> list[str]:
    return nearest(word, _known(db, effort, word), limit)


def _known(db: apsw.Connection, effort: Effort, word: str) -> Iterator[tuple[str, int]]:
    """Words with the same beginning, as many as the effort allows."""
    for place in Place:
        for part in islice(parts(db, place), _WORD_PARTS):
            table = index_of(place, part)
            db.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary_of_{table} "
                f"USING fts5vocab('main', '{table}', 'row')"
            )
            for beginning in beginnings(word):
                found = db.execute(_WORDS.format(table=table), (beginning, f"{beginning}\uffff"))
                while more := list(islice(found, _WORDS_AT_ONCE)):
                    yield from more
                    if effort.is_spent():
                        return


def rarities(db: apsw.Connection, query: SearchQuery) -> list[float]:
    """How rare each term is among the newest rows; a single term needs no weight."""
    if len(query.terms) < 2:
        return [1.0] * len(query.terms)
    newest = [(place, part) for place in Place for part in islice(parts(db, place), _COUNTED_PARTS)]
    total = sum(_size(db, place, part) for place, part in newest)
    tables = [index_of(place, part) for place, part in newest]
    most = min(COUNTED_AT_MOST, _COUNTED_TOGETHER // len(query.terms))
    return [rarity(_documents(db, tables, term, most), total) for term in query.terms]


def _documents(db: apsw.Connection, tables: Sequence[str], term: Term, most: int) -> int:
    """Roughly how many rows have a term: a phrase is as rare as the rarest of its first words."""
    last = len(term.words) - 1
    counts = [
        _count(
            db,
            tables,
            alone(word, prefix=term.prefix and number == last, forms=term.forms and not last),
            most,
        )
        for number, word in enumerate(term.words[:_COUNTED_WORDS])
    ]
    whole = 0
    if term.whole is not None:
        whole = _count(db, tables, alone(term.whole, prefix=term.prefix), most)
    return min(counts) + whole


def _count(db: apsw.Connection, tables: Sequence[str], expression: str, most: int) -> int:
    """Up to a limit for each table."""
    found = 0
    for table in tables:
        counted = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
        found += rows(db, counted, expression, most)[0][0]
    return found


def _size(db: apsw.Connection, place: Place, part: int) -> int:
    """Roughly how many rows a part has; few numbers are unused."""
    query = f"SELECT max(sequence) FROM {place.value} WHERE sequence < ?"
    return (
        int(rows(db, query, first_of_part(place, part + 1))[0][0]) + 1 - first_of_part(place, part)
    )
