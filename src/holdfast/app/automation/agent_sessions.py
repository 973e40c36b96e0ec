"""The session that an agent's conversation is: found or made, with its first checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SESSION_ID_MAX_LENGTH, SessionId
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.intent import make_intent
from holdfast.domain.sessions import Session, SessionStatus

_KEPT = 150


def session_name(agent: str, given: str) -> SessionId:
    """The agent's own id where it can be one of ours; made into one where it cannot."""
    text = "".join(c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "-" for c in given)
    text = text.strip()
    if not text:
        return valid_session_id(f"{agent}-session")
    if text != given or len(text) > SESSION_ID_MAX_LENGTH:
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        text = f"{agent}-{text[:_KEPT].strip()}-{digest}"
    return valid_session_id(text)


def find_session(opened: OpenWorkspace, event: AgentEvent) -> Session | None:
    """The session of the event, if there is one; never another agent's, never an archived one."""
    catalog = opened.engine.vault.catalog
    for name in _candidates(event):
        session = catalog.session(name)
        if session is None:
            return None
        if session.agent == event.agent and session.status is not SessionStatus.ARCHIVED:
            return session
    return None


class Ensured(NamedTuple):
    """A session that is active; `resumed`: it had ended before."""

    session: Session
    resumed: bool


def ensure_session(opened: OpenWorkspace, event: AgentEvent) -> Ensured:
    """The same, made if need be; the caller holds the lock. The newest conversation with an agent
    is what commands without `--session` work on."""
    vault = opened.engine.vault
    session = find_session(opened, event)
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
        intent = make_intent(f"Session with {event.agent} begins", confidence=1.0)
        opened.engine.save(session.id, intent, kind=Kind.INITIAL)
    return Ensured(session, resumed)


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
