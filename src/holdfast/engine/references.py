"""Finding the checkpoint that a reference means, within one session."""

from __future__ import annotations

import re

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import AmbiguousReference, UnknownReference
from holdfast.domain.ids import SessionId, short
from holdfast.domain.references import (
    ApprovedReference,
    HeadReference,
    InitialReference,
    TextReference,
    TimeReference,
    likely_meaning,
    parse_reference,
)
from holdfast.engine.vault import Vault

_MOST_CANDIDATES = 10
_MOST_NAMES = 1000
_SHORT_ID = re.compile(r"[0-9a-fA-F]{10,}\Z")
"""As ids are shown. Shorter names begin some id too often for that to mean anything."""
_LIST_HINT = "see what there is: holdfast log"


def resolve(vault: Vault, session_id: SessionId, text: str) -> Checkpoint:
    """`UnknownReference`, or `AmbiguousReference` with the candidates, when it is not one."""
    reference = parse_reference(text, now_ns=vault.clock.now_ns())
    if isinstance(reference, HeadReference):
        return _head(vault, session_id, reference.steps_back, text)
    if isinstance(reference, InitialReference):
        found = vault.catalog.first_checkpoint(session_id)
        return _required(found, "this session has no checkpoint yet")
    if isinstance(reference, ApprovedReference):
        session = vault.catalog.session(session_id)
        approved = session.approved if session else None
        found = vault.catalog.checkpoint(session_id, approved) if approved else None
        return _required(found, "nothing has been approved in this session yet")
    if isinstance(reference, TimeReference):
        found = vault.catalog.checkpoint_at(session_id, reference.at_ns)
        return _required(found, f"there is no checkpoint as old as {text}")
    return _by_text(vault, session_id, reference)


def standing_on(vault: Vault, session_id: SessionId) -> Checkpoint | None:
    """The checkpoint that the work stands on: HEAD, with records looked through."""
    session = vault.catalog.session(session_id)
    if session is None or session.head is None:
        return None
    at = vault.catalog.checkpoint(session_id, session.head)
    while at is not None and at.kind.is_record and not _stands_alone(at):
        at = vault.catalog.checkpoint(session_id, at.parent) if at.parent else None
    return at


def before_head(vault: Vault, session_id: SessionId) -> Checkpoint:
    """What `restore` without a reference goes back to."""
    at = _below_head(vault, session_id, standing_on(vault, session_id))
    before = _parent(vault, at)
    if before is None:
        raise UnknownReference(
            f"there is no checkpoint before {at.name or short(at.id)}",
            hint="to go back to that one: holdfast restore HEAD",
        )
    return before


def _stands_alone(record: Checkpoint) -> bool:
    """A restore record whose target was deleted is the only one left with that state."""
    return record.kind is Kind.RESTORE and record.restores_from is None


def _head(vault: Vault, session_id: SessionId, steps_back: int, text: str) -> Checkpoint:
    if steps_back == 0:
        session = vault.catalog.session(session_id)
        head = session.head if session else None
        at = vault.catalog.checkpoint(session_id, head) if head else None
        return _below_head(vault, session_id, at)
    at = _below_head(vault, session_id, standing_on(vault, session_id))
    for _ in range(steps_back):
        at = _required(_parent(vault, at), f"{text} goes back further than the first checkpoint")
    return at


def _below_head(vault: Vault, session_id: SessionId, found: Checkpoint | None) -> Checkpoint:
    """What was found, or why HEAD has nothing below it."""
    if found is None and vault.catalog.first_checkpoint(session_id) is not None:
        raise UnknownReference(
            "the checkpoints that HEAD stood on were deleted",
            hint="name another one, listed by: holdfast log; or make one: holdfast checkpoint",
        )
    return _required(found, "this session has no checkpoint yet")


def _parent(vault: Vault, checkpoint: Checkpoint) -> Checkpoint | None:
    """The checkpoint before, again with records looked through."""
    at: Checkpoint | None = checkpoint
    while at is not None and at.parent is not None:
        at = vault.catalog.checkpoint(at.session_id, at.parent)
        if at is not None and (not at.kind.is_record or _stands_alone(at)):
            return at
    return None


def _by_text(vault: Vault, session_id: SessionId, reference: TextReference) -> Checkpoint:
    text = reference.text
    exact = vault.catalog.checkpoint(session_id, text)
    if exact is not None:
        return exact
    named = vault.catalog.checkpoint_named(session_id, text)
    if named is not None and not _SHORT_ID.match(text):
        return named
    candidates = vault.catalog.checkpoints_with_prefix(session_id, text.lower(), _MOST_CANDIDATES)
    if named is not None:
        # Somebody who copies an id from the log must not get what was given that name.
        candidates = [named, *(one for one in candidates if one.id != named.id)]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise UnknownReference(
            f"this session has no checkpoint {text!r}", hint=_nearest(vault, session_id, text)
        )
    shown = [f"{short(c.id)} {c.name or c.intent.reasoning[:40]}" for c in candidates]
    raise AmbiguousReference(
        f"{text!r} is the {'name or the ' if named else ''}beginning of several checkpoints: "
        f"{'; '.join(shown)}",
        [c.id for c in candidates],
        hint="write more of the id",
    )


def _nearest(vault: Vault, session_id: SessionId, text: str) -> str:
    """What may have been meant: another way to write it, or a name that is nearly the same."""
    if meant := likely_meaning(text):
        return meant
    from difflib import get_close_matches

    recent = vault.catalog.history(session_id, limit=_MOST_NAMES, records=False)
    near = get_close_matches(text, [one.name for one in recent if one.name], 1)
    return f"did you mean {near[0]!r}? {_LIST_HINT}" if near else _LIST_HINT


def _required(checkpoint: Checkpoint | None, message: str) -> Checkpoint:
    if checkpoint is None:
        raise UnknownReference(message, hint=_LIST_HINT)
    return checkpoint
