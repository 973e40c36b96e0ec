"""Where the lines of a file come from: which checkpoint has each first, and what was done then."""

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
    """In the first checkpoint already: it was written before the history begins."""
    UNSAVED = "unsaved"
    """In the workspace, and in no checkpoint yet."""
    ELSEWHERE = "elsewhere"
    """In a checkpoint of another session, such as one that was restored, and not in this one's."""
    OLDER = "older"
    """In the oldest version that was looked at; the search ended there."""


@dataclass(frozen=True, slots=True)
class OtherAgent:
    """A session whose tool was running when a line was written. What it was for is that session's
    own."""

    session_id: SessionId
    agent: str | None
    tool: str

    @property
    def shown(self) -> str:
        agent = f" ({self.agent})" if self.agent else ""
        return f"{self.tool} of session {self.session_id}{agent}"


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """`checkpoint` is the first that has the line, in the file that was called `path` then, and
    `before` the one that it follows, which has it not. `reasoning`, `tool_calls` and `tool_use_id`
    describe the step between the two, in the session `session_id`; `message` is the last one of the
    conversation by then, and `prompt` the last thing that the person had asked for. `others` were
    in the middle of a call that may have written the line; without `own`, the session itself was
    not. `by_hand`: the file was written when no call of an agent was running, so that nothing tells
    whether the line was."""

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
    """One line, counted from 1, without its line end."""

    number: int
    text: bytes
    origin: LineOrigin


@dataclass(frozen=True, slots=True)
class Explanation:
    """The lines of a file that were asked for. `of` is the checkpoint whose file it is; None for
    the file in the workspace. `warnings` say what could not be looked at."""

    path: bytes
    of: CheckpointId | None
    total_lines: int
    lines: tuple[ExplainedLine, ...]
    warnings: tuple[str, ...] = ()

    def spans(self) -> Iterator[tuple[ExplainedLine, ...]]:
        """Neighbouring lines of the same origin together."""
        span: list[ExplainedLine] = []
        for line in self.lines:
            if span and line.origin is not span[-1].origin:
                yield tuple(span)
                span = []
            span.append(line)
        if span:
            yield tuple(span)
