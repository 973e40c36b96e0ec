"""What goes into a bundle: sessions and checkpoints that can stand without the rest of the store.

A parent that is not chosen is replaced by the nearest ancestor that is, as if it were deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.domain.bundles.rows import BundledCheckpoint
from holdfast.domain.bundles.story import exportable_rounds
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NotFound
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.sessions import Round, Session
from holdfast.engine.sessions.approval import rounds_in
from holdfast.engine.vault import Vault


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows in the order in which they were made; `latest` is where the work stood. With `whole`
    sessions goes what was said in them; of some checkpoints, only what was written about them."""

    sessions: tuple[Session, ...]
    checkpoints: tuple[BundledCheckpoint, ...]
    latest: CheckpointId
    rounds: Mapping[SessionId, tuple[Round, ...]]
    whole: bool = False


def select_sessions(vault: Vault, sessions: Sequence[SessionId]) -> Selection:
    """Whole sessions, records of restores included; the last one says what is latest."""
    chosen: list[Checkpoint] = []
    for session_id in sessions:
        chosen += vault.catalog.history(session_id, records=True)
    return replace(_selection(vault, chosen, sessions[-1] if sessions else None), whole=True)


def select_all(vault: Vault) -> Selection:
    current = vault.catalog.current_session()
    known = [session.id for session in vault.catalog.sessions()]
    return select_sessions(vault, sorted(known, key=lambda session_id: session_id == current))


def select_checkpoints(vault: Vault, chosen: Sequence[Checkpoint]) -> Selection:
    """Some checkpoints of one session."""
    once = {checkpoint.id: checkpoint for checkpoint in chosen}
    return _selection(vault, list(once.values()), chosen[0].session_id if chosen else None)


def _selection(vault: Vault, chosen: list[Checkpoint], main: SessionId | None) -> Selection:
    if not chosen:
        raise NotFound(
            "there is no checkpoint to export", hint='make one: holdfast checkpoint "why"'
        )
    chosen.sort(key=lambda checkpoint: checkpoint.sequence)
    ids = {checkpoint.id: checkpoint for checkpoint in chosen}
    rows = tuple(_row(vault, checkpoint, ids) for checkpoint in chosen)
    wanted = {checkpoint.session_id for checkpoint in chosen}
    sessions = tuple(_session(vault, s, ids) for s in vault.catalog.sessions() if s.id in wanted)
    latest = next((s.head for s in sessions if s.id == main), None)
    rounds = {
        session.id: exportable_rounds(rounds_in(vault, session.id), ids) for session in sessions
    }
    return Selection(sessions, rows, latest or chosen[-1].id, rounds)


def _session(vault: Vault, session: Session, chosen: Mapping[CheckpointId, Checkpoint]) -> Session:
    newest = [c.id for c in chosen.values() if c.session_id == session.id][-1]
    head = _nearest(vault, session.id, session.head, chosen) or newest
    approved = session.approved if session.approved in chosen else None
    return replace(session, head=head, approved=approved)


def _row(
    vault: Vault, checkpoint: Checkpoint, chosen: Mapping[CheckpointId, Checkpoint]
) -> BundledCheckpoint:
    fields = {name: getattr(checkpoint, name) for name in BundledCheckpoint.__dataclass_fields__}
    fields["parent"] = _nearest(vault, checkpoint.session_id, checkpoint.parent, chosen)
    if checkpoint.restores_from not in chosen:
        fields["restores_from"] = None
    return BundledCheckpoint(**fields)


def _nearest(
    vault: Vault,
    session_id: SessionId,
    start: CheckpointId | None,
    chosen: Mapping[CheckpointId, Checkpoint],
) -> CheckpointId | None:
    at = start
    while at is not None and at not in chosen:
        found = vault.catalog.checkpoint(session_id, at)
        at = found.parent if found is not None else None
    return at
