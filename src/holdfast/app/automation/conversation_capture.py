"""The conversation around an agent's events: read from its transcript, or from its messages.

A few new lines are read before a save, so that the checkpoint knows its place. A longer part is
read after an event that the agent does not wait for. Guarantee: no failure here reaches the save or
the agent. It is logged, and `holdfast status` reports it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.automation.agent_sessions import find_session
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent
from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.app.automation.event_dedupe import EventDedupe
    from holdfast.app.automation.problem_log import ProblemLog
    from holdfast.domain.sessions import Session

_QUICKLY_READ_BYTES = 256 << 10
_TITLE = 60
_WITHOUT_TEXT = "(the agent did not say what was typed)"


class ConversationCapture:
    """Records the conversations of agents' sessions."""

    def __init__(self, problems: ProblemLog) -> None:
        self._problems = problems

    def read_transcript(self, opened: OpenWorkspace, event: AgentEvent) -> None:
        """What is new in it; called before the event is handled, without the store's lock."""
        try:
            _read(opened, event, most_bytes=None if not event.must_wait else _QUICKLY_READ_BYTES)
        except (HoldfastError, OSError, ValueError) as error:
            self._note(event, error)

    def note_message(self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> None:
        """A message of the user: its text, unless a transcript has it, once however often it is
        delivered; the title of a session without one; and the agent's process, with which the
        session ends. Called with the store's lock held."""
        session = find_session(opened, event)
        if session is None:
            return
        try:
            if not _has_transcript(event) and not dedupe.said_before(event):
                from holdfast.engine.conversation.conversation import add_message

                add_message(opened.engine.vault, session.id, "user", event.prompt or _WITHOUT_TEXT)
                dedupe.note_said(event)
        except (HoldfastError, ValueError) as error:
            self._note(event, error)
        try:
            _note_title_and_process(opened, event, session)
        except (HoldfastError, ValueError) as error:
            self._note(event, error)

    def _note(self, event: AgentEvent, error: Exception) -> None:
        self._problems.note_trouble(event, "the conversation was not recorded", error)


def _note_title_and_process(opened: OpenWorkspace, event: AgentEvent, session: Session) -> None:
    from holdfast.domain.tool_calls import masked, one_line
    from holdfast.engine.sessions.overview import AGENT_PROCESS

    vault = opened.engine.vault
    if session.title is None and (title := one_line(masked(event.prompt), _TITLE)):
        with vault.catalog.transaction() as transaction:
            transaction.set_session_title(session.id, title)
    process = vault.processes.agent_above(event.process or os.getpid())
    known = vault.story.fact(session.id, AGENT_PROCESS)
    if process is not None and process != known:
        vault.story.set_fact(session.id, AGENT_PROCESS, process, expected=known)


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
