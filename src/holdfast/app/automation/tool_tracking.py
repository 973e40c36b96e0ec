"""Which tools of agents run, from the event before a call to the event after it.

Neither note waits for a lock, so that a save that waits for the tool learns of its end at once. An
agent that gives no ids to tool calls has one running at a time.
"""

from __future__ import annotations

import contextlib
import os

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent, EventKind, ToolKind
from holdfast.domain.checkpoints import Checkpoint
from holdfast.ports.agent_tools import RunningTools, session_digest

_EDITS = (ToolKind.EDIT, ToolKind.WRITE, ToolKind.NOTEBOOK)
_ENDS_ALL = (EventKind.MESSAGE, EventKind.TURN_END, EventKind.SESSION_END)


def note_begin(opened: OpenWorkspace, event: AgentEvent, saved: Checkpoint) -> None:
    """The tool runs once this event is answered; `saved` holds what there was before it."""
    if event.kind is EventKind.BEFORE_TOOL:
        edits = event.tool_kind in _EDITS and event.paths
        opened.engine.vault.tool_log.begin(
            _key(event),
            _session(event),
            now_ns=opened.engine.vault.clock.now_ns(),
            session_id=saved.session_id,
            tool=event.tool,
            at=saved.id,
            names=_names(event) if edits else None,
        )
    owner = opened.engine.vault.processes.agent_above(event.process or os.getpid())
    if event.kind is not EventKind.BEFORE_TOOL or owner is None:
        return
    _tools(opened).begin(
        _key(event),
        owner=owner,
        session=_session(event),
        tool=event.tool,
        now_ns=opened.engine.vault.clock.now_ns(),
    )


def _names(event: AgentEvent) -> list[bytes]:
    """Of the files that can be there, half a character is in no name; and of what links lead to,
    because that is what an edit writes."""
    names = []
    for path in event.paths:
        with contextlib.suppress(UnicodeEncodeError):
            names.append(os.fsencode(path))
        with contextlib.suppress(OSError, ValueError):
            names.append(os.fsencode(os.path.realpath(os.path.join(event.cwd or "", path))))
    return names


def note_end(opened: OpenWorkspace, event: AgentEvent) -> None:
    """That of the tool which the event comes after; a turn that begins or ends has none left."""
    now_ns = opened.engine.vault.clock.now_ns()
    if event.kind is EventKind.AFTER_TOOL:
        _tools(opened).end(_key(event))
        opened.engine.vault.tool_log.end(_key(event), now_ns)
    elif event.kind in _ENDS_ALL:
        _tools(opened).end_all_of(_session(event))
        opened.engine.vault.tool_log.end_all_of(_session(event), now_ns)


def note_unchanged(opened: OpenWorkspace, saved: Checkpoint) -> None:
    """A call has changed nothing since `saved`: what changes from now on is not its doing."""
    now_ns = opened.engine.vault.clock.now_ns()
    opened.engine.vault.tool_log.unchanged(saved.id, now_ns)


def _tools(opened: OpenWorkspace) -> RunningTools:
    return opened.engine.vault.running_tools


def _key(event: AgentEvent) -> str:
    return session_digest(event.agent, event.session, event.tool_use_id or "")


def _session(event: AgentEvent) -> str:
    return session_digest(event.agent, event.session)
