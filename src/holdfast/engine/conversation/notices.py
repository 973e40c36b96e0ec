"""What an agent is told once after the workspace was taken back, by its own session or another.

    restores in the log that the session was not told of → their words → noted as told → given out
    `claim_notices`: the same, noted as told only when whoever tells it says that it was told

A session is told of every restore since it began, because all sessions share the workspace.

Guarantee: of several processes that ask for a session, one gets a notice. `take_notices` gives none
out twice, and one that dies between noting and telling takes it along. What was claimed is told at
least once: a claim ends with its process, or after a minute, and somebody else may tell it then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.domain.agent_events import NoticeClaim
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation
from holdfast.engine.conversation.conversation import follow
from holdfast.engine.conversation.notice_text import foreign_notice, own_notice, rest_of_answer
from holdfast.engine.vault import Vault

LAST_NOTICE = "told"
NOTICE_CLAIM = "telling"
_CLAIM_NS = 60 * 1_000_000_000
_MOST_NOTICES = 5


def take_notices(
    vault: Vault, session_id: SessionId, *, answered: Collection[CheckpointId] = ()
) -> list[str]:
    """Everything the session has not been told yet, oldest first; empty when there is nothing. Of a
    restore whose record is among `answered`, only what its own answer does not tell."""
    while True:
        told = vault.story.fact(session_id, LAST_NOTICE)
        done = _untold(vault, session_id, told)
        if not done:
            return []
        notices = _notices(vault, session_id, done, answered)
        newest = str(done[-1].sequence)
        if vault.story.set_fact(session_id, LAST_NOTICE, newest, expected=told):
            return notices


def claim_notices(
    vault: Vault, session_id: SessionId, *, answered: Collection[CheckpointId] = ()
) -> NoticeClaim | None:
    """What the session has not been told yet, unless somebody is just telling it; `answered` as
    above."""
    while True:
        done = _untold(vault, session_id, vault.story.fact(session_id, LAST_NOTICE))
        if not done:
            return None
        newest, now_ns = done[-1].sequence, vault.clock.now_ns()
        held = vault.story.fact(session_id, NOTICE_CLAIM)
        if _is_being_told(vault, held, newest, now_ns):
            return None
        texts = tuple(_notices(vault, session_id, done, answered))
        mark = f"{newest} {now_ns} {vault.processes.own_identity()}"
        if vault.story.set_fact(session_id, NOTICE_CLAIM, mark, expected=held):
            return NoticeClaim(session_id, texts, newest, mark)


def _untold(vault: Vault, session_id: SessionId, told: str | None) -> Sequence[Operation]:
    return vault.catalog.restores_since(session_id, after=int(told) if told is not None else 0)


def _is_being_told(vault: Vault, held: str | None, newest: int, now_ns: int) -> bool:
    sequence, _, rest = (held or "").partition(" ")
    at_ns, _, identity = rest.partition(" ")
    if not (sequence.isdecimal() and at_ns.isdecimal()) or int(sequence) < newest:
        return False
    return abs(now_ns - int(at_ns)) < _CLAIM_NS and vault.processes.is_alive(identity)


def settle_claim(vault: Vault, claim: NoticeClaim, *, told: bool) -> None:
    """It was told; or it was not, and somebody else is to tell it."""
    if not told:
        vault.story.set_fact(claim.session_id, NOTICE_CLAIM, "", expected=claim.mark)
        return
    while True:
        noted = vault.story.fact(claim.session_id, LAST_NOTICE)
        if noted is not None and int(noted) >= claim.newest:
            return
        if vault.story.set_fact(claim.session_id, LAST_NOTICE, str(claim.newest), expected=noted):
            return


def _notices(
    vault: Vault,
    session_id: SessionId,
    done: Sequence[Operation],
    answered: Collection[CheckpointId] = (),
) -> list[str]:
    follow(vault, session_id)
    history = vault.story.rollbacks(session_id)
    marks = history[-1].after if history else ()
    notices: list[str] = []
    for operation in done[-_MOST_NOTICES:]:
        if operation.session_id != session_id:
            notices.append(foreign_notice(vault, operation))
        elif operation.checkpoint in answered:
            notices.append(rest_of_answer(vault, operation, marks))
        else:
            notices.append(own_notice(vault, operation, marks))
    earlier = len(done) - len(notices)
    if earlier:
        came = "restore" if earlier == 1 else "restores"
        notices.insert(0, f"{earlier} more {came} came before: see holdfast log --records.")
    return notices
