"""A conversation as plain values: messages by index, and what somebody wrote about a checkpoint."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.values.classes import dataclass

MOST_CHARACTERS = 1_000_000
"""Of one message. What is longer belongs into a file, or is cut where it is read from one."""
MOST_ANNOTATION_BYTES = 100_000


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message; the first of a session has index 0. `source_key` is what the agent's transcript
    calls it, so that reading a transcript again adds nothing. `rolled_back_by` is the operation
    that took the work back to before it."""

    session_id: SessionId
    index: int
    role: Role
    content: str
    at_ns: int
    tool_calls: tuple[ToolCall, ...] = ()
    source_key: str | None = None
    rolled_back_by: int | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What somebody wrote about a checkpoint. An edit is a new revision; the newest counts, and all
    are kept. `sequence` rises with every revision in the store."""

    sequence: int
    session_id: SessionId
    checkpoint_id: CheckpointId
    number: int
    revision: int
    text: str
    author: str | None
    at_ns: int
