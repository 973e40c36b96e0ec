"""Resolves checkpoint references, within one session or in the whole workspace.

Programs search within their session (CP-8). A person's command searches every session of the
workspace, which is a session of None here. `S:REF` names session and checkpoint for both.

    the whole text: HEAD, initial, approved, a time, an id, a name, the start of an id
    → else `S:REF`: S is a session's id, its title or the start of its id
    → else `REF~2` or `REF^`: a checkpoint before REF

In the workspace, HEAD is the newest state that any session saved or restored, and `initial` is the
first checkpoint of all. `approved` refers to the session that HEAD belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import AmbiguousReference, NotFound, UnknownReference
from holdfast.domain.ids import SessionId, short
from holdfast.domain.references import (
    ApprovedReference,
    HeadReference,
    InitialReference,
    TextReference,
    TimeReference,
    likely_meaning,
    parse_reference,
    split_earlier,
)
from holdfast.domain.sessions import Session
from holdfast.engine.history.history import has_lost_target, head_checkpoint
from holdfast.engine.vault import Vault

_MOST_CANDIDATES = 10
_MOST_NAMES = 1000
_SHORT_ID = re.compile(r"[0-9a-f]{10,}\Z")
"""The length of displayed ids. Shorter names match the start of some id too often."""
_ID_CHARACTERS = re.compile(r"[0-9a-fA-F]+\Z")
_LEAST_OF_ID = 4
"""A typo of one to three letters must not find a checkpoint."""
_LIST_HINT = "list checkpoints: holdfast log"
_REASON = 40


def resolve(vault: Vault, session_id: SessionId | None, text: str) -> Checkpoint:
    """`UnknownReference`, or `AmbiguousReference` with the candidates, if not exactly one fits."""
    reference = parse_reference(text, now_ns=vault.clock.now_ns())
    if isinstance(reference, HeadReference):
        return _head(vault, session_id, reference.steps_back, text)
    if isinstance(reference, InitialReference):
        found = vault.catalog.first_checkpoint(session_id)
        return _required(found, f"{_where(session_id)} has no checkpoint yet")
    if isinstance(reference, ApprovedReference):
        return _approved(vault, session_id)
    if isinstance(reference, TimeReference):
        found = vault.catalog.checkpoint_at(session_id, reference.at_ns)
        return _required(found, f"no checkpoint is as old as {text}")
    return _by_text(vault, session_id, reference)


def before_head(vault: Vault, session_id: SessionId | None) -> Checkpoint:
    """The target of `restore` without a reference."""
    at = _below_head(vault, session_id, head_checkpoint(vault, session_id))
    before = _parent(vault, at)
    if before is None:
        raise UnknownReference(
            f"no checkpoint before {at.name or short(at.id)}",
            hint="to go back to that one: holdfast restore HEAD",
        )
    return before


def find_session(vault: Vault, text: str) -> Session:
    """The session with that id or title, or whose id starts with the text. `NotFound` if there is
    none, `AmbiguousReference` if there are several."""
    exact = vault.catalog.session(SessionId(text))
    if exact is not None:
        return exact
    from holdfast.engine.sessions.overview import remaining_sessions

    sessions = remaining_sessions(vault)
    folded = text.casefold()
    for found in (
        [one for one in sessions if one.title is not None and one.title.casefold() == folded],
        [one for one in sessions if len(text) >= _LEAST_OF_ID and one.id.startswith(text)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            listed = [f"{one.id} ({one.title})" if one.title else one.id for one in found]
            raise AmbiguousReference(
                f"{text!r} matches several sessions: {'; '.join(listed[:_MOST_CANDIDATES])}",
                [one.id for one in found],
                hint="use the whole id; list sessions: holdfast sessions",
            )
    from difflib import get_close_matches

    near = get_close_matches(text, [one.id for one in sessions], 3)
    hint = f"did you mean: {', '.join(near)}" if near else "list sessions: holdfast sessions"
    raise NotFound(f"unknown session: {text!r}", hint=hint)


def _where(session_id: SessionId | None) -> str:
    return "the workspace" if session_id is None else "this session"


def _session_of_head(vault: Vault) -> SessionId | None:
    head = head_checkpoint(vault, None)
    return vault.catalog.current_session() if head is None else head.session_id


def _approved(vault: Vault, session_id: SessionId | None) -> Checkpoint:
    within = session_id or _session_of_head(vault)
    session = vault.catalog.session(within) if within else None
    approved = session.approved if session else None
    found = vault.catalog.checkpoint(within, approved)
    return _required(found, "nothing has been approved in this session yet")


def _head(vault: Vault, session_id: SessionId | None, steps_back: int, text: str) -> Checkpoint:
    at = _below_head(vault, session_id, head_checkpoint(vault, session_id))
    return _before(vault, at, steps_back, text)


def _before(vault: Vault, at: Checkpoint, steps_back: int, text: str) -> Checkpoint:
    for _ in range(steps_back):
        at = _required(_parent(vault, at), f"{text} goes back further than the first checkpoint")
    return at


def _below_head(vault: Vault, session_id: SessionId | None, found: Checkpoint | None) -> Checkpoint:
    """The checkpoint, or an error that says why there is none below HEAD."""
    if found is None and vault.catalog.history(session_id, limit=1):
        raise UnknownReference(
            "the checkpoints that HEAD pointed to were deleted",
            hint="use another one, listed by: holdfast log; or create one: holdfast checkpoint",
        )
    return _required(found, f"{_where(session_id)} has no checkpoint yet")


def _parent(vault: Vault, checkpoint: Checkpoint) -> Checkpoint | None:
    """The checkpoint before, following records to their targets."""
    at: Checkpoint | None = checkpoint
    while at is not None and at.parent is not None:
        at = vault.catalog.checkpoint(at.session_id, at.parent)
        if at is not None and (not at.kind.is_record or has_lost_target(at)):
            return at
    return None


def _by_text(vault: Vault, session_id: SessionId | None, reference: TextReference) -> Checkpoint:
    text = reference.text
    exact = vault.catalog.checkpoint(session_id, text)
    if exact is not None:
        return exact
    named = _named(vault, session_id, text)
    begins: Sequence[Checkpoint] = ()
    if _SHORT_ID.match(text) or not (named or _is_name_elsewhere(vault, session_id, text)):
        begins = _beginning_with(vault, session_id, text)
    # An id copied from the log must not match a checkpoint by its name.
    taken = {one.id for one in named}
    candidates = [*named, *(one for one in begins if one.id not in taken)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise _ambiguous(vault, session_id, text, candidates, named=bool(named))
    elsewhere = _in_named_session(vault, text)
    if elsewhere is not None:
        return elsewhere
    if (earlier := split_earlier(text)) is not None:
        base, steps_back = earlier
        return _before(vault, resolve(vault, session_id, base), steps_back, text)
    raise UnknownReference(
        f"{_where(session_id)} has no checkpoint {text!r}",
        hint=_nearest(vault, session_id, text),
    )


def _beginning_with(vault: Vault, session_id: SessionId | None, text: str) -> Sequence[Checkpoint]:
    if len(text) < _LEAST_OF_ID:
        return ()
    return vault.catalog.checkpoints_with_prefix(session_id, text, _MOST_CANDIDATES)


def _is_name_elsewhere(vault: Vault, session_id: SessionId | None, text: str) -> bool:
    """A name that only another session uses is not read as the start of an id."""
    return session_id is not None and bool(vault.catalog.checkpoints_named(text))


def _named(vault: Vault, session_id: SessionId | None, text: str) -> list[Checkpoint]:
    if session_id is None:
        return list(vault.catalog.checkpoints_named(text))
    found = vault.catalog.checkpoint_named(session_id, text)
    return [] if found is None else [found]


def _in_named_session(vault: Vault, text: str) -> Checkpoint | None:
    """The checkpoint for `S:REF`; None if no part before a colon is a session."""
    places = [place for place, letter in enumerate(text) if letter == ":"]
    for place in reversed(places):  # an id may contain colons itself
        left, right = text[:place], text[place + 1 :]
        if not left or not right:
            continue
        try:
            session = find_session(vault, left)
        except AmbiguousReference:
            raise
        except NotFound:
            continue
        return resolve(vault, session.id, right)
    return None


def _ambiguous(
    vault: Vault,
    session_id: SessionId | None,
    text: str,
    candidates: Sequence[Checkpoint],
    *,
    named: bool,
) -> AmbiguousReference:
    """Lists each candidate with its session, time and reason, ready to copy."""
    several = session_id is None and len({one.session_id for one in candidates}) > 1
    shown = [_meaning(one, named=several and one.name == text) for one in candidates]
    what = "the name or the beginning" if named and not several else "the beginning"
    if named and all(one.name == text for one in candidates):
        what = "the name"
    hint = "use more of the id"
    if several:
        hint = f"add the session, such as {candidates[0].session_id}:{text}, or use the id"
    return AmbiguousReference(
        f"{text!r} is {what} of several checkpoints: {'; '.join(shown)}",
        [one.id for one in candidates],
        hint=hint,
    )


def _meaning(one: Checkpoint, *, named: bool) -> str:
    why = " ".join(one.intent.reasoning.split())[:_REASON]
    if not named:
        return f"{short(one.id)} {one.name or why}"
    at = datetime.fromtimestamp(one.created_at_ns / 1e9, tz=UTC)
    return f"{short(one.id)} in {one.session_id} ({at:%Y-%m-%d %H:%M} UTC, {why})"


def _nearest(vault: Vault, session_id: SessionId | None, text: str) -> str:
    """A suggestion: another spelling, the same name in another session, or a similar name."""
    if meant := likely_meaning(text):
        return meant
    if _ID_CHARACTERS.match(text):
        if len(text) < _LEAST_OF_ID:
            return f"an id needs at least {_LEAST_OF_ID} characters; {_LIST_HINT}"
        if text != text.lower() and _beginning_with(vault, session_id, text.lower()):
            return f"ids are lower case: {text.lower()}"
    if named := vault.catalog.checkpoints_named(text):
        places = [f"{one.session_id}:{text}" for one in named[:_MOST_CANDIDATES]]
        return f"another session has a checkpoint of that name: {', '.join(places)}"
    from difflib import get_close_matches

    recent = vault.catalog.history(session_id, limit=_MOST_NAMES, records=False)
    near = get_close_matches(text, [one.name for one in recent if one.name], 1)
    return f"did you mean {near[0]!r}? {_LIST_HINT}" if near else _LIST_HINT


def _required(checkpoint: Checkpoint | None, message: str) -> Checkpoint:
    if checkpoint is None:
        raise UnknownReference(message, hint=_LIST_HINT)
    return checkpoint
