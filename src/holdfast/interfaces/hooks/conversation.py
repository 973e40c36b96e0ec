"""The conversation around an agent's events: read from its transcript, or from its messages.

A few new lines are read before a save, so that the checkpoint knows its place; whatever is longer
is read after events that nobody waits for. Guarantee: neither the save nor the agent notices
anything that goes wrong here; the log does, and `holdfast status`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.automation.agent_sessions import find_session
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent, EventKind
from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.app.automation.event_dedupe import EventDedupe

_QUICKLY_READ_BYTES = 256 << 10
_TITLE = 60
_WITHOUT_TEXT = "(the agent did not say what was typed)"


def read_what_is_new(opened: OpenWorkspace, event: AgentEvent) -> None:
    """Before the event is dealt with; outside of the store's lock."""
    try:
        _read(opened, event, most_bytes=None if not event.must_wait else _QUICKLY_READ_BYTES)
    except (HoldfastError, OSError, ValueError) as error:
        _note(event, error)


def note_message(opened: OpenWorkspace, event: AgentEvent, deliveries: EventDedupe) -> None:
    """After it, and under the store's lock: the message of an agent whose transcript nobody reads,
    once however often it is delivered."""
    if event.kind is not EventKind.MESSAGE or _has_transcript(event):
        return
    session = find_session(opened, event)
    if session is None or deliveries.said_before(event):
        return
    from holdfast.engine.conversation.conversation import add_message

    try:
        add_message(opened.engine.vault, session.id, "user", event.prompt or _WITHOUT_TEXT)
        deliveries.note_said(event)
    except (HoldfastError, ValueError) as error:
        _note(event, error)


def note_who_speaks(opened: OpenWorkspace, event: AgentEvent) -> None:
    """With a user's message: the title of a session that has none yet, and the agent's process,
    with which the session ends."""
    session = find_session(opened, event)
    if session is None:
        return
    from holdfast.adapters.local.processes import agent_above
    from holdfast.domain.masking import masked
    from holdfast.domain.tool_calls import one_line
    from holdfast.engine.sessions.overview import AGENT_PROCESS

    vault = opened.engine.vault
    try:
        if session.title is None and (title := one_line(masked(event.prompt), _TITLE)):
            with vault.catalog.transaction() as transaction:
                transaction.set_session_title(session.id, title)
        process = agent_above(event.process or os.getpid())
        known = vault.story.fact(session.id, AGENT_PROCESS)
        if process is not None and process != known:
            vault.story.set_fact(session.id, AGENT_PROCESS, process, expected=known)
    except (HoldfastError, ValueError) as error:
        _note(event, error)


def _note(event: AgentEvent, error: Exception) -> None:
    from holdfast.interfaces.hooks.problems import note_trouble  # hardly ever needed

    note_trouble(event, "the conversation was not recorded", error)


def _has_transcript(event: AgentEvent) -> bool:
    path = event.transcript_path
    return event.transcript_message is not None and path is not None and os.path.isfile(path)


def _read(opened: OpenWorkspace, event: AgentEvent, *, most_bytes: int | None) -> None:
    if event.transcript_path is None or event.transcript_message is None:
        return
    if not _has_transcript(event):
        return
    session = find_session(opened, event)
    if session is None:
        return
    from holdfast.engine.conversation.transcript_import import import_transcript, unread_bytes

    path, vault = Path(event.transcript_path), opened.engine.vault
    if most_bytes is None or unread_bytes(vault, session.id, path, event.agent) <= most_bytes:
        import_transcript(vault, session.id, path, event.agent, event.transcript_message)
