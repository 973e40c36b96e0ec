"""What a search found: moments of the work, each with what matched there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import SessionId
from holdfast.domain.search.highlights import Excerpt


class Field(StrEnum):
    """Where a word can stand."""

    NAME = "name"
    REASONING = "reasoning"
    TAG = "tag"
    ID = "id"
    """Of the goal, the task or the tool use."""
    TOOL = "tool call"
    ANNOTATION = "annotation"
    PATH = "path"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Match:
    """One text that matched; `message_index` tells which message it is."""

    field: Field
    excerpt: Excerpt
    message_index: int | None = None
    role: str | None = None
    rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A checkpoint, or a message that no checkpoint knows, with the best matches first."""

    session_id: SessionId
    checkpoint: Checkpoint | None
    at_ns: int
    score: float
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Best first. When it is not `complete`, the index has not taken everything in yet: the next
    search goes on with that. With `back_to_ns`, the query costs too much for everything, and what
    is older was not looked at. Without a hit, `suggestions` are queries near it that have one."""

    hits: tuple[Hit, ...]
    complete: bool = True
    warnings: tuple[str, ...] = ()
    back_to_ns: int | None = None
    suggestions: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)
