"""An agent event in a common form for all agents, and its answer.

These are named tuples, because dataclasses take longer to import than the rest of a hook.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.domain.ids import SessionId
    from holdfast.domain.transcript_messages import MessageOf


class EventKind(StrEnum):
    SESSION_START = "session-start"
    MESSAGE = "message"
    BEFORE_TOOL = "before-tool"
    AFTER_TOOL = "after-tool"
    COMPACT = "compact"
    TURN_END = "turn-end"
    SESSION_END = "session-end"
    OTHER = "other"


class ToolKind(StrEnum):
    EDIT = "edit"
    WRITE = "write"
    SHELL = "shell"
    NOTEBOOK = "notebook"
    UNKNOWN = "unknown"
    OTHER = "other"

    @property
    def changes_files(self) -> bool:
        """Unknown tools count as changing files."""
        return self is not ToolKind.OTHER


EDIT_TOOLS = (ToolKind.EDIT, ToolKind.WRITE, ToolKind.NOTEBOOK)
"""Tools that name each file that they change."""


class AgentEvent(NamedTuple):
    """One event. `name` and `tool` are the agent's own words. `turn_id` names the user message that
    the event belongs to. `carries`: the answer may contain text for the agent. `transcript_message`
    parses a transcript line, if the agent has a parser. `failure` says why a tool call failed.
    `process` is the hook's process id, 0 for this process."""

    agent: str
    name: str
    kind: EventKind
    session: str = ""
    tool: str = ""
    tool_kind: ToolKind = ToolKind.OTHER
    command: str = ""
    paths: tuple[str, ...] = ()
    fingerprint: str = ""
    tool_use_id: str | None = None
    turn_id: str | None = None
    prompt: str = ""
    cwd: str | None = None
    project: str | None = None
    transcript_path: str | None = None
    transcript_message: MessageOf | None = None
    failure: str | None = None
    carries: bool = False
    received_ns: int = 0
    process: int = 0

    @property
    def is_known(self) -> bool:
        """Whether Holdfast acts on this event."""
        if self.kind in (EventKind.BEFORE_TOOL, EventKind.AFTER_TOOL):
            return self.tool_kind.changes_files
        return self.kind is not EventKind.OTHER

    @property
    def begins(self) -> bool:
        """Whether the agent may be about to change something. If so, the workspace gets a store if
        it has none, and the session becomes active."""
        return self.kind in (EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL)


class Notice(NamedTuple):
    """A message about protection, given once per session: `text` to the model, and `for_user` to
    the person if the agent can show it."""

    code: str
    text: str
    for_user: str


class NoticeClaim(NamedTuple):
    """Restore notices that a process is about to deliver to a session. `newest` is the number of
    the last restore they cover."""

    session_id: SessionId
    texts: tuple[str, ...]
    newest: int
    mark: str


class Reply(NamedTuple):
    """The result of an event. `context` is text for the agent. `claim` and `notices` must be
    recorded as delivered once the agent has the answer."""

    checkpoint: str | None = None
    deduplicated: bool = False
    context: tuple[str, ...] = ()
    claim: NoticeClaim | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join((*self.context, *(one.text for one in self.notices)))

    @property
    def for_user(self) -> str:
        return "\n".join(one.for_user for one in self.notices)
