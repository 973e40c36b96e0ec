"""The origin of each line of a file: the first checkpoint that has it, and the step that wrote
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.story import Message


class LineState(StrEnum):
    """What is known about a line."""

    WRITTEN = "written"
    INITIAL = "initial"
    """Already in the first checkpoint, so it is older than the history."""
    UNSAVED = "unsaved"
    """In the workspace, but not in a checkpoint yet."""
    ELSEWHERE = "elsewhere"
    """In a checkpoint of another session, such as a restored one, and not in this session's."""
    OLDER = "older"
    """In the oldest version that was searched."""


@dataclass(frozen=True, slots=True)
class OtherAgent:
    """Another session whose tool was running when a line was written. Its intent is not shown
    here."""

    session_id: SessionId
    agent: str | None
    tool: str

    @property
    def shown(self) -> str:
        agent = f" ({self.agent})" if self.agent else ""
        return f"{self.tool} of session {self.session_id}{agent}"


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """`checkpoint` is the first one that has the line, in the file then called `path`. `before` is
    its predecessor, without the line.

    `reasoning`, `tool_calls` and `tool_use_id` describe the step between the two, in session
    `session_id`. `message` is the last message of the conversation by then, and `prompt` the last
    one from the user.

    `others` were running a call that may have written the line. `own` says whether this session was
    too. `by_hand`: the file was written while no agent call was running, so its author is unknown.
    """

    state: LineState
    path: bytes
    checkpoint: Checkpoint | None = None
    before: CheckpointId | None = None
    session_id: SessionId | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_use_id: str | None = None
    message: Message | None = None
    prompt: Message | None = None
    others: tuple[OtherAgent, ...] = ()
    own: bool = True
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """One line, numbered from 1, without its line end."""

    number: int
    text: bytes
    origin: LineOrigin


@dataclass(frozen=True, slots=True)
class Explanation:
    """The requested lines of a file. `of` is the checkpoint that holds the file, or None for the
    file in the workspace. `warnings` list what could not be searched."""

    path: bytes
    of: CheckpointId | None
    total_lines: int
    lines: tuple[ExplainedLine, ...]
    warnings: tuple[str, ...] = ()

    def spans(self) -> Iterator[tuple[ExplainedLine, ...]]:
        """Groups of adjacent lines with the same origin."""
        span: list[ExplainedLine] = []
        for line in self.lines:
            if span and line.origin is not span[-1].origin:
                yield tuple(span)
                span = []
            span.append(line)
        if span:
            yield tuple(span)
