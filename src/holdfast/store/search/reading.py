"""Asking the search index: the newest matches, ranked among each other.

    expression → the newest 300 checkpoints and 300 messages that match, and of checkpoints those
    whose name or tag does → scores → messages get the checkpoint they were said at → best first

The cost does not grow with how often a word was said: only the newest matches are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search_hits import Field
from holdfast.domain.search_query import SearchQuery, State
from holdfast.domain.search_ranking import COUNTED_AT_MOST, rarity
from holdfast.ports.search import Found
from holdfast.store.search.expressions import (
    Expression,
    about_checkpoints,
    about_messages,
    alone,
)
from holdfast.store.search.schema import (
    BLOCK_BITS,
    CHECKPOINT_COLUMNS,
    MESSAGE_COLUMNS,
    SCOPE,
    WEIGHTS,
    WHOLE,
)
from holdfast.store.search.scoring import Scorer, columns_in, score_in

RANKED_AT_MOST = 300
_MOST_MESSAGES_EACH = 3
_LOOKED_AT = 3
_LAST = (1 << 62) - 1

_CHECKPOINTS = """
SELECT kept.sequence, kept.session, kept.at_ns, kept.id, NULL, worth(moments)
FROM moments CROSS JOIN kept ON kept.sequence = moments.rowid
WHERE moments MATCH ? AND moments.rowid BETWEEN ? AND ? AND kept.at_ns >= ? AND kept.at_ns < ?
ORDER BY moments.rowid DESC LIMIT ?
"""
_MESSAGES = """
SELECT said.sequence, said.session, said.at_ns, NULL, said.position, worth(sayings)
FROM sayings CROSS JOIN said ON said.sequence = sayings.rowid
WHERE sayings MATCH ? AND sayings.rowid BETWEEN ? AND ? AND said.at_ns >= ? AND said.at_ns < ?
ORDER BY sayings.rowid DESC LIMIT ?
"""
_SAID_AT = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index<=?
ORDER BY message_index DESC, sequence DESC LIMIT 1
"""
_SAID_BEFORE = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index>?
ORDER BY message_index, sequence LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class _Candidate:
    sequence: int
    session: int
    at_ns: int
    checkpoint_id: CheckpointId | None
    position: int | None
    score: float
    fields: frozenset[Field]


def find(
    db: apsw.Connection,
    scorer: Scorer,
    query: SearchQuery,
    session_id: SessionId | None,
    limit: int,
) -> list[Found]:
    """Best first, of at most `limit` moments."""
    sessions = _sessions(db, query, session_id)
    if query.is_empty or sessions == []:
        return []
    most = max(RANKED_AT_MOST, limit)
    question = _Question(db, scorer, query, _rarities(db, query), most)
    found: dict[tuple[bool, int], _Candidate] = {}
    for candidate in _candidates(question, sessions):
        found.setdefault((candidate.position is None, candidate.sequence), candidate)
    best = sorted(found.values(), key=lambda c: (-c.score, -c.at_ns, -c.sequence))
    names: dict[int, SessionId] = dict(_rows(db, "SELECT number, id FROM sessions"))
    return list(_moments(db, best, names, limit))


def _candidates(question: _Question, sessions: Sequence[int] | None) -> Iterator[_Candidate]:
    query = question.query
    if State.MESSAGE not in query.states:
        ask = (_CHECKPOINTS, "kept", CHECKPOINT_COLUMNS)
        newest = list(question.ask(about_checkpoints(query, sessions), *ask))
        yield from newest
        if query.terms and len(newest) == question.most:
            # A name is worth finding however old it is.
            titles = about_checkpoints(query, sessions, titles=True)
            yield from question.ask(titles, *ask, mark_weight=WEIGHTS["name"])
    if not query.about_checkpoints and (query.terms or State.MESSAGE in query.states):
        yield from question.ask(about_messages(query, sessions), _MESSAGES, "said", MESSAGE_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, of whichever table."""

    db: apsw.Connection
    scorer: Scorer
    query: SearchQuery
    rarities: Sequence[float]
    most: int

    def ask(
        self,
        expression: Expression,
        statement: str,
        place: str,
        fields: Mapping[str, Field],
        mark_weight: float = 0.0,
    ) -> Iterator[_Candidate]:
        after = -_LAST if self.query.after_ns is None else self.query.after_ns
        before = _LAST if self.query.before_ns is None else self.query.before_ns
        first, last = _rows_between(self.db, place, after, before)
        columns = [*fields, WHOLE, SCOPE]
        # A name that stands whole may be one of a path.
        told = [fields.get(column, Field.PATH) for column in columns]
        weights = [WEIGHTS.get(column, mark_weight) for column in columns]
        self.scorer.about(expression, weights, self.rarities)
        values = (expression.text, first, last, after, before, self.most)
        for sequence, session, at_ns, key, position, worth in _rows(self.db, statement, *values):
            where = frozenset(told[column] for column in columns_in(worth))
            yield _Candidate(sequence, session, at_ns, key, position, score_in(worth), where)


def _rows_between(db: apsw.Connection, place: str, after: int, before: int) -> tuple[int, int]:
    """The numbers between which everything of that time lies."""
    if (after, before) == (-_LAST, _LAST):
        return 0, _LAST
    query = "SELECT min(block), max(block) FROM eras WHERE place=? AND last_ns>=? AND first_ns<?"
    [(first, last)] = _rows(db, query, place, after, before)
    if first is None:
        return 1, 0
    return first << BLOCK_BITS, ((last + 1) << BLOCK_BITS) - 1


def _sessions(
    db: apsw.Connection, query: SearchQuery, session_id: SessionId | None
) -> list[int] | None:
    """Numbers of the sessions to look in; None for all. A filter never widens what was allowed."""
    if session_id is None and not query.sessions:
        return None
    allowed = set(query.sessions or (session_id,))
    if session_id is not None:
        allowed &= {session_id}
    marks = ",".join("?" * len(allowed))
    rows = _rows(db, f"SELECT number FROM sessions WHERE id IN ({marks})", *allowed)
    return [number for (number,) in rows]


def _rarities(db: apsw.Connection, query: SearchQuery) -> list[float]:
    """How rare each term is; a single one has nothing to be weighed against."""
    if len(query.terms) < 2:
        return [1.0] * len(query.terms)
    newest = "SELECT (SELECT max(sequence) FROM kept), (SELECT max(sequence) FROM said)"
    total = sum(number or 0 for number in _rows(db, newest)[0])
    found = []
    for term in query.terms:
        documents = 0
        for table in ("moments", "sayings"):
            counted = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
            documents += _rows(db, counted, alone(term), COUNTED_AT_MOST)[0][0]
        found.append(rarity(documents, total))
    return found


def _moments(
    db: apsw.Connection, best: Sequence[_Candidate], names: Mapping[int, SessionId], limit: int
) -> Iterator[Found]:
    """As many as lead to `limit` moments, and not more than a few messages of each."""
    seen: dict[tuple[int, object], int] = {}
    for number, candidate in enumerate(best):
        if number >= _LOOKED_AT * limit and len(seen) >= limit:
            return
        checkpoint_id = candidate.checkpoint_id
        if checkpoint_id is None and candidate.position is not None:
            checkpoint_id = _said_at(db, candidate.session, candidate.position)
        moment = (candidate.session, checkpoint_id or candidate.sequence)
        if moment not in seen and len(seen) >= limit:
            continue
        seen[moment] = seen.get(moment, 0) + (candidate.position is not None)
        if seen[moment] > _MOST_MESSAGES_EACH and candidate.position is not None:
            continue
        yield Found(
            names[candidate.session],
            checkpoint_id,
            candidate.position,
            candidate.at_ns,
            candidate.score,
            candidate.fields,
        )


def _said_at(db: apsw.Connection, session: int, position: int) -> CheckpointId | None:
    """The newest checkpoint from before or at a message, else the first one after it."""
    for statement in (_SAID_AT, _SAID_BEFORE):
        for (identifier,) in _rows(db, statement, session, position):
            return CheckpointId(identifier)
    return None


def _rows(db: apsw.Connection, statement: str, *values: Any) -> list[Any]:
    return db.execute(statement, values).fetchall()
