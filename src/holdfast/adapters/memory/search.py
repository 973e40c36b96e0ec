"""The search index in memory: every text is searched, so nothing is skipped because of its cost.

See `holdfast.ports.search`. Texts match and rank by the same words, stems, weights and formula as
in the local index. The difference is that all matches are ranked, not only the newest.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.hits import FIELD_WEIGHTS, Field
from holdfast.domain.search.query import (
    FORM_SHARE,
    SearchQuery,
    State,
    TagFilter,
    Term,
    rarity,
    score,
)
from holdfast.domain.search.words import names, nearest, stem, wholes, words
from holdfast.ports.search import (
    CheckpointText,
    Cursors,
    Findings,
    Found,
    IndexBatch,
    MessageText,
)

_MOST_MESSAGES_EACH = 3


@dataclass(slots=True)
class MemorySearchIndex:
    _checkpoints: dict[CheckpointId, CheckpointText] = field(default_factory=dict)
    _messages: dict[int, MessageText] = field(default_factory=dict)
    _cursors: Cursors = field(default_factory=Cursors)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield

    def cursors(self) -> Cursors:
        return self._cursors

    def ingest(self, batch: IndexBatch) -> None:
        for gone in batch.gone:
            self._checkpoints.pop(gone, None)
        self._checkpoints |= {text.id: text for text in batch.checkpoints}
        self._messages |= {text.sequence: text for text in batch.messages}
        self._cursors = batch.cursors

    def recreate(self) -> None:
        self._checkpoints, self._messages, self._cursors = {}, {}, Cursors()

    def erase(self) -> None:
        self.recreate()

    def close(self) -> None:
        return None

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        if query.is_wordless:
            return Findings(())
        texts = self._texts()
        rarities = [1.0] * len(query.terms)
        if len(query.terms) > 1:
            rarities = [rarity(_holding(texts, term), len(texts)) for term in query.terms]
        ranked: list[tuple[float, CheckpointText | MessageText, frozenset[Field]]] = []
        for text in texts:
            if session_id in (None, text.session_id) and _passes(query, text):
                matches = [_frequencies(text.texts, term) for term in query.terms]
                if all(matches):
                    worth = score([sum(m.values()) for m in matches], rarities, 1.0)
                    fields = {where for match in matches for where in match}
                    ranked.append((worth, text, frozenset(fields | _filtered(query))))
        ranked.sort(key=lambda one: (-one[0], -one[1].at_ns, -one[1].sequence))
        return Findings(list(self._moments(ranked, limit)))

    def has(self, query: SearchQuery, *, session_id: SessionId | None) -> bool:
        return bool(self.find(query, session_id=session_id, limit=1).found)

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        known: Counter[str] = Counter()
        for text in self._texts():
            known.update({w for said in text.texts.values() for one in said for w in words(one)})
        return nearest(word, known.items(), limit)

    def _texts(self) -> list[CheckpointText | MessageText]:
        return [*self._checkpoints.values(), *self._messages.values()]

    def _moments(
        self,
        ranked: Sequence[tuple[float, CheckpointText | MessageText, frozenset[Field]]],
        limit: int,
    ) -> Iterator[Found]:
        """A checkpoint and a few of the messages that belong to it are one moment."""
        seen: Counter[tuple[SessionId, object]] = Counter()
        for worth, text, fields in ranked:
            index = text.index if isinstance(text, MessageText) else None
            checkpoint_id = self._said_at(text) if isinstance(text, MessageText) else text.id
            moment = (text.session_id, checkpoint_id or text.sequence)
            if moment not in seen and len(seen) >= limit:
                continue
            seen[moment] += index is not None
            if index is None or seen[moment] <= _MOST_MESSAGES_EACH:
                yield Found(text.session_id, checkpoint_id, index, text.at_ns, worth, fields)

    def _said_at(self, message: MessageText) -> CheckpointId | None:
        """The newest checkpoint before or at a message, else the first one after it."""
        known = [
            (one.message_index, one.sequence, one.id)
            for one in self._checkpoints.values()
            if one.session_id == message.session_id
            and one.message_index is not None
            and not one.kind.is_record
        ]
        before = [one for one in known if one[0] <= message.index]
        after = [one for one in known if one[0] > message.index]
        return max(before)[2] if before else min(after)[2] if after else None


def _passes(query: SearchQuery, text: CheckpointText | MessageText) -> bool:
    """Whether a text passes the filters."""
    if query.after_ns is not None and text.at_ns < query.after_ns:
        return False
    if query.before_ns is not None and text.at_ns >= query.before_ns:
        return False
    if query.sessions and text.session_id not in query.sessions:
        return False
    if isinstance(text, MessageText):
        return not query.about_checkpoints and bool(query.terms or State.MESSAGE in query.states)
    return (
        State.MESSAGE not in query.states
        and (not query.kinds or text.kind in query.kinds)
        and (not query.tags or any(_has_tag(text, tag) for tag in query.tags))
        and _is_in(text.texts.get(Field.PATH, ()), query.paths)
        and _is_in(text.texts.get(Field.NAME, ()), query.names)
        and all(state in text.states for state in query.states)
        and (not text.kind.is_record or _wants_record(query, text))
    )


def _filtered(query: SearchQuery) -> set[Field]:
    """Fields in which a filter matched."""
    filters = {Field.PATH: query.paths, Field.NAME: query.names}
    return {where for where, terms in filters.items() if terms}


def _wants_record(query: SearchQuery, text: CheckpointText) -> bool:
    """A record is found if it was requested, annotated or approved, or if only it has a path."""
    if State.RECORD in query.states or any(kind.is_record for kind in query.kinds):
        return True
    if query.paths and text.kind is Kind.SAFETY:
        return True
    if State.ANNOTATED in text.states and (query.terms or State.ANNOTATED in query.states):
        return True
    return State.APPROVED in text.states and State.APPROVED in query.states


def _has_tag(text: CheckpointText, wanted: TagFilter) -> bool:
    sought = wanted.text.casefold()
    return any(
        tag.casefold().startswith(sought) if wanted.prefix else tag.casefold() == sought
        for tag in text.tags
    )


def _is_in(texts: Sequence[str], terms: Sequence[Term]) -> bool:
    return not terms or any(_times(words(text), term) for text in texts for term in terms)


def _holding(texts: Sequence[CheckpointText | MessageText], term: Term) -> int:
    return sum(bool(_frequencies(text.texts, term)) for text in texts)


def _frequencies(texts: Mapping[Field, Sequence[str]], term: Term) -> dict[Field, float]:
    """How often a term is in each field, weighted; other forms of it count less."""
    found: dict[Field, float] = {}
    for where, said in texts.items():
        times = sum(_times_in(text, term) for text in said)
        if times:
            found[where] = times * FIELD_WEIGHTS[where]
    return found


def _times_in(text: str, term: Term) -> float:
    times: float = _times(words(text), term)
    sought = term.whole or (term.words[0] if len(term.words) == 1 else None)
    if sought is not None:
        times += sum(_is_word(whole, sought, term.prefix) for whole in wholes(text))
    if not times and term.stem is not None:
        stems = {stem(word) for word in words(text)} | {name.stem for name in names(text)}
        times = FORM_SHARE * (term.stem in stems)
    return times


def _times(said: Sequence[str], term: Term) -> int:
    """How often the words of a term occur in sequence."""
    wanted = term.words
    return sum(
        said[at : at + len(wanted) - 1] == list(wanted[:-1])
        and _is_word(said[at + len(wanted) - 1], wanted[-1], term.prefix)
        for at in range(len(said) - len(wanted) + 1)
    )


def _is_word(word: str, wanted: str, prefix: bool) -> bool:
    return word.startswith(wanted) if prefix else word == wanted
