"""The lifecycle of a session: start, end, archive, rename, and whether it accepts more work.

A session belongs to one agent at a time. It can be resumed when that agent has ended it or its
process is gone. Adding to an ended session by hand (a checkpoint, a message) makes it active again;
deciding about its work (approve, reset, restore) does not, nor do the last events of an agent. An
archived session refuses.

A setting can limit manual checkpoints. Automatic ones have no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import LimitReached, NotFound, Refused, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.wording import Remark, count_words
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.engine.engine import Engine

_OWNER = "agent process"
_LONGEST = 200


def require_open_session(vault: Vault, session_id: SessionId) -> Session | None:
    """The session, None if there is none yet; `Refused` if it is archived."""
    session = vault.catalog.session(session_id)
    if session is not None and session.status is SessionStatus.ARCHIVED:
        raise Refused(
            f"the session {session_id!r} is archived and cannot be changed",
            hint=(
                "start another one under another name; this one can still be listed, restored and "
                "annotated"
            ),
        )
    return session


def require_session(vault: Vault, session_id: SessionId) -> Session:
    session = vault.catalog.session(session_id)
    if session is None:
        raise NotFound(f"unknown session: {session_id!r}", hint="list sessions: holdfast sessions")
    return session


def resumed_remark(session_id: SessionId) -> str:
    return Remark(f"the session {session_id!r} had ended; it is active again")


def resume(vault: Vault, session_id: SessionId) -> None:
    """Reopen an ended session, unless another process has done it meanwhile."""
    with vault.lock.hold():
        session = require_open_session(vault, session_id)
        if session is not None and session.status is SessionStatus.ENDED:
            with vault.catalog.transaction() as transaction:
                transaction.set_session_status(session_id, SessionStatus.ACTIVE)


def require_checkpoint_allowed(vault: Vault, session_id: SessionId, kind: Kind) -> None:
    """`LimitReached` if a manual checkpoint would exceed the setting's limit."""
    most = vault.settings.max_manual_checkpoints
    if kind is not Kind.MANUAL or not most:
        return
    if vault.catalog.count(session_id, (kind,)) >= most:
        raise LimitReached(
            f"the session has {count_words(most, 'manual checkpoint')}, the limit of the "
            "setting max_manual_checkpoints",
            hint=(
                f"raise it: holdfast config set max_manual_checkpoints {2 * most} (0: no limit); "
                "or delete some: holdfast delete REF"
            ),
        )


def start(
    engine: Engine,
    session_id: SessionId,
    *,
    title: str | None = None,
    agent: str | None = None,
    inside: Collection[int] = (),
) -> Session:
    """The session, active, with a checkpoint of its start. `inside` as in `Engine.save`."""
    vault = engine.vault
    title, agent = require_label("title", title), require_label("agent", agent)
    engine = engine.after_waiting(inside)
    with engine.recovered():
        known = require_open_session(vault, session_id)
        _require_free(vault, known, session_id, agent)
        with vault.catalog.transaction() as transaction:
            if known is None:
                transaction.add_session(
                    Session(session_id, vault.clock.now_ns(), title=title, agent=agent)
                )
            elif known.status is not SessionStatus.ACTIVE:
                transaction.set_session_status(session_id, SessionStatus.ACTIVE)
            transaction.set_current_session(session_id)
        if vault.catalog.first_checkpoint(session_id) is None:
            engine.save(session_id, make_intent("The start of the session"), kind=Kind.INITIAL)
        _take(vault, session_id)
    begun = vault.catalog.session(session_id)
    assert begun is not None  # just added, under the lock
    return begun


def end(engine: Engine, session_id: SessionId) -> Session:
    """The session, ended. Its checkpoints are kept, and it can be resumed."""
    vault = engine.vault
    with engine.recovered():
        session = require_open_session(vault, session_id)
        if session is None:
            raise NotFound(f"unknown session: {session_id!r}", hint="nothing to end")
        if session.status is not SessionStatus.ENDED:
            with vault.catalog.transaction() as transaction:
                transaction.set_session_status(session_id, SessionStatus.ENDED)
    if vault.has_story():
        held = vault.story.fact(session_id, _OWNER)
        if held:
            vault.story.set_fact(session_id, _OWNER, "", expected=held)
    return replace(session, status=SessionStatus.ENDED)


def archive(engine: Engine, session_id: SessionId) -> bool:
    """Archive a session; False if it does not exist."""
    vault = engine.vault
    with engine.recovered():
        if vault.catalog.session(session_id) is None:
            return False
        with vault.catalog.transaction() as transaction:
            transaction.set_session_status(session_id, SessionStatus.ARCHIVED)
            transaction.add_operation(
                NewOperation(OperationKind.ARCHIVE, session_id, vault.clock.now_ns())
            )
        return True


def rename(engine: Engine, session_id: SessionId, title: str) -> None:
    """Change a session's title, even if it is archived."""
    vault, checked = engine.vault, require_label("title", title)
    with engine.recovered():
        require_session(vault, session_id)
        with vault.catalog.transaction() as transaction:
            transaction.set_session_title(session_id, checked)


def _require_free(
    vault: Vault, known: Session | None, session_id: SessionId, agent: str | None
) -> None:
    if known is None or known.status is SessionStatus.ENDED:
        return
    other_id = "use another id, or none to get a new one"
    if agent is not None and known.agent is not None and agent != known.agent:
        raise Refused(
            f"the session {session_id!r} belongs to the agent {known.agent!r}, not {agent!r}",
            hint=other_id,
        )
    owner = vault.story.fact(session_id, _OWNER) if vault.has_story() else None
    if owner and owner != vault.processes.own_identity() and vault.processes.is_alive(owner):
        raise Refused(
            f"the session {session_id!r} is in use by process {owner.split()[0]}",
            hint=f"{other_id}; or end it there: session.end()",
        )


def _take(vault: Vault, session_id: SessionId) -> None:
    held = vault.story.fact(session_id, _OWNER)
    own = vault.processes.own_identity()
    if held != own:
        vault.story.set_fact(session_id, _OWNER, own, expected=held)


def require_label(what: str, text: str | None) -> str | None:
    """Check a title, an agent or an author: one line of limited length, or None."""
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise UsageError(
            f"the {what} {text!r:.80} is empty or contains control characters",
            hint="leave it out, or write it on one line",
        )
    if len(text) > _LONGEST:
        raise UsageError(
            f"the {what} has {len(text)} characters; the limit is {_LONGEST}", hint="shorten it"
        )
    return text
