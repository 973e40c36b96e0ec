"""Asking the search index: the newest matches, ranked among each other.

    expression → the newest 300 checkpoints and 300 messages that match, and of checkpoints those
    whose name or tag does → scores → messages get the checkpoint they were said at → best first

The cost does not grow with how often a word was said: only the newest matches are looked at. Where
there are fewer, what is older is looked at as long as the effort for one search lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import apsw

from holdfast.adapters.local.search.expressions import about_checkpoints, about_messages, alone
from holdfast.adapters.local.search.parts import Candidate, Effort, Question, parts, rows
from holdfast.adapters.local.search.schema import WEIGHTS, Place, first_of_part, index_of
from holdfast.adapters.local.search.scoring import Scorer
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.query import SearchQuery, State, Term
from holdfast.domain.search.ranking import COUNTED_AT_MOST, rarity
from holdfast.ports.search import Findings, Found

RANKED_AT_MOST = 300
_COUNTED_TOGETHER = 4 * COUNTED_AT_MOST
_COUNTED_WORDS = 3
_COUNTED_PARTS = 2
_MOST_MESSAGES_EACH = 3
_LOOKED_AT = 3

_SAID_AT = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index<=?
ORDER BY message_index DESC, sequence DESC LIMIT 1
"""
_SAID_BEFORE = """
SELECT id FROM kept WHERE session=? AND message_index IS NOT NULL AND message_index>?
ORDER BY message_index, sequence LIMIT 1
"""


def find(
    db: apsw.Connection,
    scorer: Scorer,
    effort: Effort,
    query: SearchQuery,
    session_id: SessionId | None,
    limit: int,
) -> Findings:
    """Best first, of at most `limit` moments."""
    sessions = _sessions(db, query, session_id)
    if query.is_wordless or sessions == []:
        return Findings(())
    most = max(RANKED_AT_MOST, limit)
    question = Question(db, scorer, effort, query, _rarities(db, query), most)
    found: dict[tuple[bool, int], Candidate] = {}
    for candidate in _candidates(question, sessions):
        found.setdefault((candidate.position is None, candidate.sequence), candidate)
    best = sorted(found.values(), key=lambda c: (-c.score, -c.at_ns, -c.sequence))
    names: dict[int, SessionId] = dict(rows(db, "SELECT number, id FROM sessions"))
    return Findings(list(_moments(db, best, names, limit)), effort.back_to_ns)


def _candidates(question: Question, sessions: Sequence[int] | None) -> Iterator[Candidate]:
    query = question.query
    if State.MESSAGE not in query.states:
        newest = question.ask(Place.KEPT, about_checkpoints(query, sessions))
        yield from newest
        if query.terms and len(newest) == question.most:
            # A name is worth finding however old it is.
            titles = about_checkpoints(query, sessions, titles=True)
            yield from question.ask(Place.KEPT, titles, mark_weight=WEIGHTS["name"])
    if not query.about_checkpoints and (query.terms or State.MESSAGE in query.states):
        yield from question.ask(Place.SAID, about_messages(query, sessions))


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
    found = rows(db, f"SELECT number FROM sessions WHERE id IN ({marks})", *allowed)
    return [number for (number,) in found]


def _rarities(db: apsw.Connection, query: SearchQuery) -> list[float]:
    """How rare each term is among the newest; a single one has nothing to be weighed against."""
    if len(query.terms) < 2:
        return [1.0] * len(query.terms)
    newest = [(place, part) for place in Place for part in islice(parts(db, place), _COUNTED_PARTS)]
    total = sum(_size(db, place, part) for place, part in newest)
    tables = [index_of(place, part) for place, part in newest]
    most = min(COUNTED_AT_MOST, _COUNTED_TOGETHER // len(query.terms))
    return [rarity(_documents(db, tables, term, most), total) for term in query.terms]


def _documents(db: apsw.Connection, tables: Sequence[str], term: Term, most: int) -> int:
    """How many have a term, about: a phrase is as rare as the rarest of its first words."""
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
    """Up to a bound for each table."""
    found = 0
    for table in tables:
        counted = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
        found += rows(db, counted, expression, most)[0][0]
    return found


def _size(db: apsw.Connection, place: Place, part: int) -> int:
    """How many rows a part has, about: few numbers are left out."""
    query = f"SELECT max(sequence) FROM {place.value} WHERE sequence < ?"
    return (
        int(rows(db, query, first_of_part(place, part + 1))[0][0]) + 1 - first_of_part(place, part)
    )


def _moments(
    db: apsw.Connection, best: Sequence[Candidate], names: Mapping[int, SessionId], limit: int
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
        for (identifier,) in rows(db, statement, session, position):
            return CheckpointId(identifier)
    return None
