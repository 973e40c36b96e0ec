"""Agent sessions: finding or creating them, with first checkpoint, conversation and process.

The conversation comes from the agent's transcript, or from its messages. A few new lines are read
before a save, so that the checkpoint is linked to the last message. A longer part is read after an
event that the agent does not wait for. Guarantee: no failure to record it reaches the save or the
agent. It is logged, and `holdfast status` reports it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SESSION_ID_MAX_LENGTH, SessionId
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.intent import make_intent
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.app.automation.event_dedupe import EventDedupe
    from holdfast.app.automation.problem_log import ProblemLog
    from holdfast.ports.system import Processes

_KEPT = 150
_QUICKLY_READ_BYTES = 256 << 10
_TITLE = 60
_WITHOUT_TEXT = "(the agent did not say what was typed)"


def session_name(agent: str, given: str) -> SessionId:
    """The agent's own id if it is a valid session id, or one derived from it."""
    text = "".join(c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "-" for c in given)
    text = text.strip()
    if not text:
        return valid_session_id(f"{agent}-session")
    if text != given or len(text) > SESSION_ID_MAX_LENGTH:
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        text = f"{agent}-{text[:_KEPT].strip()}-{digest}"
    return valid_session_id(text)


def find_session(opened: OpenWorkspace, event: AgentEvent) -> Session | None:
    """The event's session, if it exists; never another agent's, never an archived one."""
    catalog = opened.engine.vault.catalog
    for name in _candidates(event):
        session = catalog.session(name)
        if session is None:
            return None
        if session.agent == event.agent and session.status is not SessionStatus.ARCHIVED:
            return session
    return None


class Ensured(NamedTuple):
    """An active session; `created`: it is new; `resumed`: it had ended before."""

    session: Session
    created: bool
    resumed: bool


def ensure_session(opened: OpenWorkspace, event: AgentEvent) -> Ensured:
    """Find or create the event's session; the caller holds the lock. Commands without `--session`
    use the newest agent conversation."""
    vault = opened.engine.vault
    session = find_session(opened, event)
    created = session is None
    resumed = session is not None and session.status is SessionStatus.ENDED
    if session is None:
        name = next(n for n in _candidates(event) if vault.catalog.session(n) is None)
        session = Session(name, vault.clock.now_ns(), agent=event.agent)
        with vault.catalog.transaction() as transaction:
            transaction.add_session(session)
            transaction.set_current_session(session.id)
    elif resumed:
        with vault.catalog.transaction() as transaction:
            transaction.set_session_status(session.id, SessionStatus.ACTIVE)
            transaction.set_current_session(session.id)
    if session.head is None and vault.catalog.first_checkpoint(session.id) is None:
        intent = make_intent(f"Start of the session with {event.agent}", confidence=1.0)
        opened.engine.save(session.id, intent, kind=Kind.INITIAL)
    return Ensured(session, created, resumed)


def end_session(opened: OpenWorkspace, event: AgentEvent) -> None:
    vault = opened.engine.vault
    session = find_session(opened, event)
    if session is not None and session.status is SessionStatus.ACTIVE:
        with vault.catalog.transaction() as transaction:
            transaction.set_session_status(session.id, SessionStatus.ENDED)


def _candidates(event: AgentEvent) -> Iterator[SessionId]:
    name = session_name(event.agent, event.session)
    yield name
    prefixed = session_name(event.agent, f"{event.agent}-{name}"[:SESSION_ID_MAX_LENGTH])
    yield prefixed
    for number in range(2, 1000):
        yield SessionId(f"{prefixed[: SESSION_ID_MAX_LENGTH - 6]}-{number}")


class AgentProcesses:
    """The agent process of each session, during this daemon's life. A killed agent does not report
    its end. The process above a hook counts as the agent after a second event from it, because some
    agents start a helper process for each event."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        self._known: dict[tuple[Path, SessionId], tuple[str, bool]] = {}

    def note_process(self, workspace: Path, session: SessionId, hook: int) -> None:
        """An event came from the process `hook`."""
        agent = self._processes.agent_above(hook) if hook else None
        if agent is None:
            return
        with self._lock:
            before = self._known.get((workspace, session))
            self._known[workspace, session] = (agent, before is not None and before[0] == agent)

    def ended_sessions(self, workspace: Path) -> list[SessionId]:
        """The sessions whose agent process is gone."""
        with self._lock:
            known = [(key, *entry) for key, entry in self._known.items() if key[0] == workspace]
        return [
            key[1]
            for key, agent, is_sure in known
            if is_sure and not self._processes.is_alive(agent)
        ]

    def forget(self, workspace: Path, sessions: Sequence[SessionId]) -> None:
        with self._lock:
            for session in sessions:
                self._known.pop((workspace, session), None)


class ConversationCapture:
    """Records the conversations of agents' sessions."""

    def __init__(self, problems: ProblemLog) -> None:
        self._problems = problems

    def read_transcript(self, opened: OpenWorkspace, event: AgentEvent) -> None:
        """Import new lines; called before the event is handled, without the store's lock."""
        try:
            _read(opened, event, most_bytes=_QUICKLY_READ_BYTES if event.begins else None)
        except (HoldfastError, OSError, ValueError) as error:
            self._note(event, error)

    def note_message(self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> None:
        """Record a user message: its text, unless a transcript has it, once even if it is delivered
        twice; the title of a session without one; and the agent's process, with which the session
        ends. Called with the store's lock held."""
        session = find_session(opened, event)
        if session is None:
            return
        try:
            if not _has_transcript(event) and not dedupe.is_repeated_message(event):
                from holdfast.engine.conversation.conversation import add_message

                add_message(opened.engine.vault, session.id, "user", event.prompt or _WITHOUT_TEXT)
                dedupe.note_message(event)
        except (HoldfastError, ValueError) as error:
            self._note(event, error)
        try:
            _note_title(opened, event, session)
        except (HoldfastError, ValueError) as error:
            self._note(event, error)
        from holdfast.engine.sessions.active_agents import AGENT_PROCESS

        self._note_process(opened, event, session, AGENT_PROCESS)

    def note_beginning(self, opened: OpenWorkspace, event: AgentEvent, session: Session) -> None:
        """Record the process of the event that began a session. Called with the store's lock
        held."""
        from holdfast.engine.sessions.active_agents import STARTING_PROCESS

        self._note_process(opened, event, session, STARTING_PROCESS)

    def _note_process(
        self, opened: OpenWorkspace, event: AgentEvent, session: Session, key: str
    ) -> None:
        vault = opened.engine.vault
        try:
            process = vault.processes.agent_above(event.process or os.getpid())
            known = vault.story.fact(session.id, key)
            if process is not None and process != known:
                vault.story.set_fact(session.id, key, process, expected=known)
        except (HoldfastError, ValueError) as error:
            self._note(event, error)

    def _note(self, event: AgentEvent, error: Exception) -> None:
        self._problems.note_trouble(event, "the conversation was not recorded", error)


def _note_title(opened: OpenWorkspace, event: AgentEvent, session: Session) -> None:
    from holdfast.domain.tool_calls import masked
    from holdfast.domain.wording import one_line

    if session.title is None and (title := one_line(masked(event.prompt), _TITLE)):
        with opened.engine.vault.catalog.transaction() as transaction:
            transaction.set_session_title(session.id, title)


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
