"""Where a bundle's sessions and checkpoints go in this store, decided before anything is written.

A checkpoint keeps its id. An existing one with the same content and reason is skipped. A different
one with the same id is refused by name, and so is another session with the same name. With a new
session name (`as_session`), ids that are in use are replaced. The new ids depend only on the old id
and the new name, so that importing twice still changes nothing.

Conversations come with their checkpoints. An existing conversation is only continued. If the last
message that both have differs, they are different conversations, and no message is imported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.domain.bundles.story import with_new_ids
from holdfast.domain.checkpoints import Checkpoint, NewCheckpoint
from holdfast.domain.errors import InvalidIntent, Refused
from holdfast.domain.ids import CHECKPOINT_ID_LENGTH, CheckpointId, SessionId
from holdfast.domain.sessions import Round, Session
from holdfast.domain.story import Message, Rollback, Stretch, joined
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.bundles.verifier import VerifiedBundle
from holdfast.engine.vault import Vault


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Rows with the ids and sessions that they get in this store."""

    new_sessions: tuple[Session, ...]
    sessions: tuple[SessionId, ...]
    rows: tuple[NewCheckpoint, ...]
    already_there: int
    ids: dict[CheckpointId, CheckpointId]
    latest: CheckpointId
    latest_session: SessionId
    homes: dict[SessionId, SessionId]
    rounds: dict[SessionId, tuple[Round, ...]]


def homes_of(bundle: VerifiedBundle, as_session: SessionId | None) -> dict[SessionId, SessionId]:
    """The bundle's sessions, each with the one that it becomes here."""
    if as_session is not None and len(bundle.sessions) != 1:
        raise Refused(
            f"the file contains {len(bundle.sessions)} sessions, which cannot be imported as one",
            hint="import it without --as-session",
        )
    return {s.id: as_session or s.id for s in bundle.sessions}


def plan_import(vault: Vault, bundle: VerifiedBundle, as_session: SessionId | None) -> ImportPlan:
    homes = homes_of(bundle, as_session)
    ids = _new_ids(vault, bundle, homes, renamed=as_session is not None)
    rows: list[NewCheckpoint] = []
    shared: set[SessionId] = set()
    latest_session = as_session or bundle.sessions[-1].id
    for row in bundle.checkpoints():
        there = _placed(row, homes[row.session_id], ids)
        if row.id == bundle.origin.latest:
            latest_session = there.session_id
        here = vault.catalog.checkpoint(None, there.id)
        if here is None:
            rows.append(there)
        elif _is_same(here, there):
            shared.add(there.session_id)
        else:
            raise Refused(
                f"a different checkpoint {there.id} already exists in session {here.session_id!r}",
                hint="import the file under another name: --as-session NAME",
            )
    present = {s.id: s for s in vault.catalog.sessions()}
    for session_id in homes.values():
        if session_id in present and session_id not in shared:
            raise Refused(
                f"a different session {session_id!r} already exists in this workspace",
                hint="import the file under another name: --as-session NAME",
            )
    _require_free_names(vault, rows)
    new = tuple(
        _placed_session(s, homes[s.id], ids) for s in bundle.sessions if homes[s.id] not in present
    )
    count = sum(1 for _ in bundle.checkpoints())
    latest = ids[bundle.origin.latest]
    return ImportPlan(
        new,
        tuple(homes.values()),
        tuple(rows),
        count - len(rows),
        ids,
        latest,
        latest_session,
        homes,
        {homes[s.id]: with_new_ids(bundle.rounds[s.id], ids) for s in bundle.sessions},
    )


def _new_ids(
    vault: Vault,
    bundle: VerifiedBundle,
    homes: dict[SessionId, SessionId],
    *,
    renamed: bool,
) -> dict[CheckpointId, CheckpointId]:
    """Ids are kept, unless another session of this store uses one. A session that is imported a
    second time gets ids derived from its new name, the same each time."""
    sessions = {row.id: row.session_id for row in bundle.checkpoints()}

    def is_taken(identifier: CheckpointId) -> bool:
        here = vault.catalog.checkpoint(None, identifier)
        return here is not None and here.session_id != homes[sessions[identifier]]

    if not (renamed and any(map(is_taken, sessions))):
        return {identifier: identifier for identifier in sessions}
    return {
        identifier: CheckpointId(
            digest_of(f"{identifier} {homes[s]}".encode()).hex()[:CHECKPOINT_ID_LENGTH]
        )
        for identifier, s in sessions.items()
    }


def _placed(
    row: NewCheckpoint, home: SessionId, ids: dict[CheckpointId, CheckpointId]
) -> NewCheckpoint:
    return replace(
        row,
        id=ids[row.id],
        session_id=home,
        parent=None if row.parent is None else ids[row.parent],
        restores_from=None if row.restores_from is None else ids[row.restores_from],
    )


def _placed_session(
    session: Session, home: SessionId, ids: dict[CheckpointId, CheckpointId]
) -> Session:
    return replace(
        session,
        id=home,
        head=None if session.head is None else ids[session.head],
        approved=None if session.approved is None else ids[session.approved],
    )


def _is_same(here: Checkpoint, row: NewCheckpoint) -> bool:
    """The same state for the same reason. The parent may differ, because deleted ones are
    replaced."""
    return (here.session_id, here.tree, here.kind, here.intent, here.created_at_ns) == (
        row.session_id,
        row.tree,
        row.kind,
        row.intent,
        row.created_at_ns,
    )


def _require_free_names(vault: Vault, rows: list[NewCheckpoint]) -> None:
    for row in rows:
        name = row.intent.checkpoint_name
        if name is not None and vault.catalog.checkpoint_named(row.session_id, name) is not None:
            raise InvalidIntent(
                f"the session {row.session_id!r} already has a checkpoint named {name!r}",
                hint="import the file under another name: --as-session NAME",
            )


_ELSEWHERE = 0
"""Replaces the operation id of a message, which refers to its original store."""


def import_story(vault: Vault, bundle: VerifiedBundle, plan: ImportPlan) -> int:
    """Called with the store's lock held, after the checkpoints; returns the number of rows."""
    added = 0
    last: dict[SessionId, Message | None] = {}
    others: set[SessionId] = set()
    rolled_back: dict[SessionId, list[int]] = {}
    for part in bundle.story():
        messages: list[Message] = []
        for message in part.messages:
            home = plan.homes[message.session_id]
            if home not in last:
                last[home] = _last(vault, home)
            known = last[home]
            if (
                known is not None
                and known.index == message.index
                and not _is_same_message(known, message)
            ):
                others.add(home)
            if home in others or (known is not None and message.index <= known.index):
                continue
            messages.append(replace(message, session_id=home))
            if message.rolled_back_by is not None and known is None:
                rolled_back.setdefault(home, []).append(message.index)
        annotations = [
            replace(
                annotation,
                session_id=plan.homes[annotation.session_id],
                checkpoint_id=plan.ids[annotation.checkpoint_id],
            )
            for annotation in part.annotations
        ]
        added += vault.story.import_rows(messages, annotations)
    for session_id, indexes in rolled_back.items():
        _mark(vault, session_id, indexes)
    return added


def _last(vault: Vault, session_id: SessionId) -> Message | None:
    count = vault.story.message_count(session_id)
    found = vault.story.messages(session_id, first=count - 1, limit=1) if count else ()
    return found[0] if found else None


def _is_same_message(known: Message, message: Message) -> bool:
    return (known.role, known.content) == (message.role, message.content)


def _mark(vault: Vault, session_id: SessionId, indexes: list[int]) -> None:
    """Mark messages as rolled back if they were in their original store."""
    marks = joined([Stretch(index, index, _ELSEWHERE) for index in indexes])
    rollback = Rollback(_ELSEWHERE, 0, indexes[-1], (), marks)
    vault.story.add_rollback(session_id, rollback)
