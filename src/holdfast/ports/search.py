"""A search index of reasons, messages, notes and paths.

    SearchReader ← SearchIndex

The index is derived: if it is lost, it is rebuilt from catalog and story, and nothing else depends
on it. `ingest` is all or nothing. Reading never waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import SearchQuery, State


@dataclass(frozen=True, slots=True)
class Cursors:
    """How far the index has read, and the version of each source.

    An `operation` whose `operation_mark` no longer matches belongs to another log."""

    checkpoint: int = 0
    operation: int = 0
    operation_mark: str = ""
    message: int = 0
    annotation: int = 0
    story: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointText:
    """The searchable texts of one checkpoint."""

    sequence: int
    id: CheckpointId
    session_id: SessionId
    kind: Kind
    at_ns: int
    message_index: int | None
    tags: tuple[str, ...]
    states: Collection[State]
    texts: Mapping[Field, Sequence[str]]


@dataclass(frozen=True, slots=True)
class MessageText:
    """The searchable text of one message; `sequence` is its number in the whole story."""

    sequence: int
    session_id: SessionId
    index: int
    at_ns: int
    texts: Mapping[Field, Sequence[str]]


@dataclass(frozen=True, slots=True)
class IndexBatch:
    """Changes that are applied together. A known checkpoint is replaced."""

    cursors: Cursors
    checkpoints: Sequence[CheckpointText] = ()
    messages: Sequence[MessageText] = ()
    gone: Sequence[CheckpointId] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """One match: a checkpoint, or a message and its checkpoint. `fields` are the matching
    fields."""

    session_id: SessionId
    checkpoint_id: CheckpointId | None
    message_index: int | None
    at_ns: int
    score: float
    fields: frozenset[Field] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Findings:
    """Matches, best first. With `back_to_ns`, anything older was not searched."""

    found: Sequence[Found]
    back_to_ns: int | None = None


class IndexLost(Exception):
    """The index was unusable and is now empty."""


class SearchReader(Protocol):
    """Every method may raise `IndexLost`."""

    def cursors(self) -> Cursors: ...

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        """Matches in one session or all, best first, then newest first. If there are very many,
        only the newest are ranked. A query that is too expensive searches only the newest texts,
        and says so."""

    def has(self, query: SearchQuery, *, session_id: SessionId | None) -> bool:
        """Whether `find` would find something, at a fraction of its cost: without ranking, and
        looking back less far."""

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        """Similar known words, nearest first."""

    def close(self) -> None: ...


class SearchIndex(SearchReader, Protocol):
    """The index with its write methods; every method may raise `IndexLost`."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Become the only writer of the index; `Busy` if another process is writing for too
        long."""

    def ingest(self, batch: IndexBatch) -> None:
        """Call within `exclusive`."""

    def recreate(self) -> None:
        """Delete everything. Call within `exclusive`."""

    def erase(self) -> None:
        """Delete everything, including its traces on the disk."""
