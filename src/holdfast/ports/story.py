"""What was said and done around the checkpoints: messages, annotations, edits, notices.

Kept apart from the catalog, with its own lock: recording a message never waits for a save, and a
damaged story costs no checkpoint. Every write is durable when it returns. Reads need no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.messages import Annotation, Message, Role


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message before the story has given it its index."""

    role: Role
    content: str
    at_ns: int
    tool_calls: tuple[ToolCall, ...] = ()
    source_key: str | None = None


class Story(Protocol):
    def add_messages(self, session_id: SessionId, new: Sequence[NewMessage]) -> Sequence[Message]:
        """All or none, in this order, after the last one; one whose `source_key` the session has
        already is left out of the result."""
        ...

    def message_count(self, session_id: SessionId) -> int:
        """How many there are: the index of the next one."""
        ...

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """By index, from `first` on."""
        ...

    def messages_after(self, sequence: int, limit: int) -> Sequence[tuple[int, Message]]:
        """Of all sessions, in the order in which they were added, each with its number in that
        order: how an index catches up."""
        ...

    def annotate(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId,
        text: str,
        *,
        author: str | None,
        at_ns: int,
        number: int | None = None,
    ) -> Annotation:
        """A new annotation, or with `number` a new revision of that one (`NotFound` if none)."""
        ...

    def annotations(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId | None = None,
        *,
        revisions: bool = False,
    ) -> Sequence[Annotation]:
        """The newest revision of each, in the order in which they were begun; or all revisions."""
        ...

    def annotations_after(self, sequence: int, limit: int) -> Sequence[Annotation]:
        """Of all sessions, every revision that came after, in order."""
        ...

    def generation(self) -> str:
        """Another value whenever what was once told may no longer hold: rows were removed for good,
        or the story was rebuilt. An index of it then begins anew."""
        ...
