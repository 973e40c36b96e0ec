"""An index of everything that was said about the work, for finding it again.

    SearchReader ← SearchIndex

All of it is derived: a lost index is rebuilt from catalog and story, and nothing else depends on
it. `ingest` is all or nothing. Reading never waits.
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
    """How far the index has read, and in which version of each source. An `operation` whose
    `operation_mark` no longer matches belongs to another log."""

    checkpoint: int = 0
    operation: int = 0
    operation_mark: str = ""
    message: int = 0
    annotation: int = 0
    story: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointText:
    """What can be found about one checkpoint."""

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
    """What can be found about one message; `sequence` is its number in the whole story."""

    sequence: int
    session_id: SessionId
    index: int
    at_ns: int
    texts: Mapping[Field, Sequence[str]]


@dataclass(frozen=True, slots=True)
class IndexBatch:
    """What changes together. A checkpoint that is known already is replaced."""

    cursors: Cursors
    checkpoints: Sequence[CheckpointText] = ()
    messages: Sequence[MessageText] = ()
    gone: Sequence[CheckpointId] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """One text that matches: a checkpoint, or a message and the checkpoint it belongs to. `fields`
    are those in which something matched."""

    session_id: SessionId
    checkpoint_id: CheckpointId | None
    message_index: int | None
    at_ns: int
    score: float
    fields: frozenset[Field] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Findings:
    """What matches, best first. With `back_to_ns`, what is older was not looked at."""

    found: Sequence[Found]
    back_to_ns: int | None = None


class IndexLost(Exception):
    """The index could not be used and is empty now."""


class SearchReader(Protocol):
    """Every member may raise `IndexLost`."""

    def cursors(self) -> Cursors: ...

    def find(self, query: SearchQuery, *, session_id: SessionId | None, limit: int) -> Findings:
        """Best first, the newer of equals first; of one session, or of all. With very many matches
        only the newest of them are ranked; a query that costs too much is answered from the newest
        texts alone, and says so."""

    def has(self, query: SearchQuery, *, session_id: SessionId | None) -> bool:
        """Whether `find` would find something, at a fraction of its cost: without ranking, and with
        a shorter look back."""

    def near_words(self, word: str, limit: int) -> Sequence[str]:
        """Known words that it may have been meant for, the nearest first."""

    def close(self) -> None: ...


class SearchIndex(SearchReader, Protocol):
    """The index with its writing side; every member may raise `IndexLost`."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Be the only one who takes things in; `Busy` when another process does so for too long."""

    def ingest(self, batch: IndexBatch) -> None:
        """Within `exclusive`."""

    def recreate(self) -> None:
        """Forget everything; within `exclusive`."""

    def erase(self) -> None:
        """Forget everything, and leave nothing of it on the medium."""
