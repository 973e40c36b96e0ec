"""Checkpoints that retention keeps: recent sessions, protected checkpoints, and states before
users' messages.

An unreadable story may refer to any checkpoint, so every checkpoint that it could name is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.story import Role
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints, all_operations

RECENT_NS = 24 * 3600 * 1_000_000_000
"""Sessions that were active within this time are not thinned out."""

NOT_ACTIVITY = (OperationKind.PRUNE, OperationKind.REPAIR, OperationKind.LOST)
_MESSAGES_AT_ONCE = 500


def protected(
    vault: Vault, checkpoints: Iterable[Checkpoint], now_ns: int
) -> dict[CheckpointId, str]:
    """Every checkpoint that no retention rule may delete at this time, with the reason."""
    if vault.journal.read() is not None:
        raise StoreDamaged("a restore is unfinished; nothing is deleted before it is repaired")
    recent = recent_sessions(vault, now_ns)
    why = "its session was active in the last 24 hours"
    active = {one.id: why for one in checkpoints if one.session_id in recent}
    return active | annotated(vault) | protection_reasons(vault)


def annotated(vault: Vault) -> dict[CheckpointId, str]:
    """Annotated checkpoints are never deleted. If annotations cannot be read, any checkpoint may be
    annotated."""
    if not vault.has_story():
        return {}
    try:
        return {
            note.checkpoint_id: "it is annotated"
            for session in vault.catalog.sessions()
            for note in vault.story.annotations(session.id)
        }
    except StoreDamaged:
        why = "it may have notes, but they cannot be read (run: holdfast repair)"
        return {one.id: why for one in all_checkpoints(vault.catalog)}


def protection_reasons(vault: Vault) -> dict[CheckpointId, str]:
    """HEAD, the first and the approved checkpoint of each session, and those needed by undo, redo
    and open edits."""
    from holdfast.domain.retention import protections  # late: `status` only asks for activity

    reasons: dict[CheckpointId, str] = {}
    for session in vault.catalog.sessions():
        first = vault.catalog.first_checkpoint(session.id)
        operations = all_operations(vault.catalog, session.id)
        reasons |= protections(session, first.id if first else None, operations)
    return open_edits(vault) | reasons


def open_edits(vault: Vault) -> dict[CheckpointId, str]:
    """The checkpoints that unfinished edits and attempts would be rolled back to."""
    if not vault.has_story():
        return {}
    try:
        begun = vault.story.open_activities()
    except StoreDamaged:
        why = "an edit may need it: the store's conversation data cannot be read"
        return {
            c.id: why for c in all_checkpoints(vault.catalog) if c.kind in (Kind.SAFETY, Kind.TOOL)
        }
    return {a.checkpoint: f"an {a.kind.value} has not ended ({a.reason:.60})" for a in begun}


def recent_sessions(vault: Vault, now_ns: int) -> set[SessionId]:
    """Sessions with a checkpoint, a restore, a message or any other activity in the last 24 hours.
    A time after `now_ns` counts as recent."""
    since_ns = now_ns - RECENT_NS
    return {
        session.id
        for session in vault.catalog.sessions()
        if max(session.created_at_ns, last_activity_ns(vault, session.id)) >= since_ns
    }


def last_activity_ns(vault: Vault, session_id: SessionId) -> int:
    """The time of a session's last activity; retention's own work does not count."""
    done = (
        operation.at_ns
        for operation in all_operations(vault.catalog, session_id)
        if operation.kind not in NOT_ACTIVITY
    )
    return max(max(done, default=0), last_message_ns(vault, session_id))


def last_message_ns(vault: Vault, session_id: SessionId) -> int:
    if not vault.has_story():
        return 0
    try:
        count = vault.story.message_count(session_id)
        newest = vault.story.messages(session_id, first=max(count - 1, 0), limit=1)
    except StoreDamaged:
        return 0
    return newest[-1].at_ns if newest else 0


def states_before_messages(vault: Vault, checkpoints: Iterable[Checkpoint]) -> set[CheckpointId]:
    """For each user message, the session's newest checkpoint before it. Checkpoints of kind
    `message` always qualify; this finds the others, where none was made.

    An unreadable story may refer to any of them, so all of them count.
    """
    by_session: defaultdict[SessionId, list[Checkpoint]] = defaultdict(list)
    for checkpoint in checkpoints:
        if not checkpoint.kind.is_record:
            by_session[checkpoint.session_id].append(checkpoint)
    if not vault.has_story():
        return set()
    found: set[CheckpointId] = set()
    for session_id, members in by_session.items():
        try:
            found |= _before(members, _user_messages(vault, session_id))
        except StoreDamaged:
            found |= {member.id for member in members}
    return found


def _user_messages(vault: Vault, session_id: SessionId) -> Iterator[int]:
    first = 0
    while page := vault.story.messages(session_id, first=first, limit=_MESSAGES_AT_ONCE):
        yield from (message.index for message in page if message.role is Role.USER)
        first = page[-1].index + 1


def _before(checkpoints: list[Checkpoint], messages: Iterable[int]) -> set[CheckpointId]:
    """By position in the conversation: a checkpoint comes after the message with its index."""
    placed = sorted(checkpoints, key=_position)
    newest: list[Checkpoint] = []  # for each prefix of `placed`, the newest by sequence
    for one in placed:
        last = newest[-1] if newest else one
        newest.append(one if one.sequence >= last.sequence else last)
    found: set[CheckpointId] = set()
    at = 0
    for message in messages:  # in ascending order
        while at < len(placed) and _position(placed[at]) < message:
            at += 1
        if at:
            found.add(newest[at - 1].id)
    return found


def _position(checkpoint: Checkpoint) -> int:
    return -1 if checkpoint.message_index is None else checkpoint.message_index
