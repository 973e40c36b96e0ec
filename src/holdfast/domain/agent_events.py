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
        """Or may: who knows what an unknown tool does."""
        return self is not ToolKind.OTHER


EDIT_TOOLS = (ToolKind.EDIT, ToolKind.WRITE, ToolKind.NOTEBOOK)
"""Tools that name each file that they change."""


class AgentEvent(NamedTuple):
    """`name` is the agent's own word for the event, `tool` its own word for the tool; `carries`
    tells that the answer to it may hold a text that the agent reads. `turn_id` names the message
    that everything belongs to. `transcript_message` reads a line of its transcript, if
    there is a reader. `failure` is why a tool call failed. `process` is the hook's, 0 if
    it is this one."""

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
        """Whether there is anything to do about it."""
        if self.kind in (EventKind.BEFORE_TOOL, EventKind.AFTER_TOOL):
            return self.tool_kind.changes_files
        return self.kind is not EventKind.OTHER

    @property
    def begins(self) -> bool:
        """Whether the agent may be about to change something: a workspace without a store gets
        one, and a session is active from here on."""
        return self.kind in (EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL)


class Notice(NamedTuple):
    """Something about the protection that is reported once a session: `text` to the model,
    `for_user` to the person, where the agent has a way to."""

    code: str
    text: str
    for_user: str


class NoticeClaim(NamedTuple):
    """Notices of restores that a process is about to give to a session. `newest` is the number of
    the last restore that they are about."""

    session_id: SessionId
    texts: tuple[str, ...]
    newest: int
    mark: str


class Reply(NamedTuple):
    """What came of an event. `context` is for the agent to read. `claim` and `notices` have to be
    noted as delivered once the agent has the answer."""

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
