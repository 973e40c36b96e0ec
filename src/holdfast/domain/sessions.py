"""A session: one conversation with one agent, isolated from the workspace's other sessions; and its
rounds.

A round is the work between two approvals:

    active ── approve ──► merged        active ── reset ──► abandoned

For people, merged is shown as `approved`, and `session_2` as `round 2`.

Ending a round starts the next one, so the last round of a session is always the active one. Rounds
are derived from the operation log, so they are not stored twice and cannot be lost while the log is
intact. The session stores the active round's number, so that the others keep theirs if the
beginning of the log is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.values.classes import dataclass


class SessionStatus(StrEnum):
    ACTIVE = "active"
    ENDED = "ended"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Session:
    """A catalog row. `head` is its newest state, and `round` the number of the round that is not
    approved yet."""

    id: SessionId
    created_at_ns: int
    status: SessionStatus = SessionStatus.ACTIVE
    title: str | None = None
    agent: str | None = None
    head: CheckpointId | None = None
    approved: CheckpointId | None = None
    round: int = 1


class RoundStatus(StrEnum):
    ACTIVE = "active"
    MERGED = "merged"
    ABANDONED = "abandoned"

    @property
    def word(self) -> str:
        """The word shown to people."""
        return "approved" if self is RoundStatus.MERGED else self.value


ENDINGS: dict[OperationKind, RoundStatus] = {
    OperationKind.APPROVE: RoundStatus.MERGED,
    OperationKind.RESET: RoundStatus.ABANDONED,
}
"""The whole state machine: which operation ends an active round, and the resulting status."""

ENDED_BY: dict[OperationKind, RoundStatus] = {
    **ENDINGS,
    OperationKind.ABANDON: RoundStatus.ABANDONED,
}
"""Operations in the log that end a round, including one that ended in another store."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round. `approved` is the approved checkpoint, and `message` its message. `head` is the
    last state, which also leads back to an abandoned round. `checkpoints` counts them without
    restore records; None if not counted."""

    number: int
    status: RoundStatus
    started_at_ns: int
    ended_at_ns: int | None = None
    approved: CheckpointId | None = None
    message: str | None = None
    head: CheckpointId | None = None
    checkpoints: int | None = None

    @property
    def name(self) -> str:
        return round_name(self.number)


def round_name(number: int) -> str:
    """The name used in data and by dialog clients."""
    return f"session_{number}"


def round_title(name: str) -> str:
    """The name shown to people."""
    return f"round {name.removeprefix('session_')}"


def rounds_of(started_at_ns: int, active: int, operations: Iterable[Operation]) -> list[Round]:
    """Oldest first; the last one is active, and has the number `active`."""
    ended = [operation for operation in operations if operation.kind in ENDED_BY]
    first = max(active - len(ended), 1)
    rounds: list[Round] = []
    since_ns = started_at_ns
    for number, operation in enumerate(ended, first):
        status = ENDED_BY[operation.kind]
        merged = status is RoundStatus.MERGED
        rounds.append(
            Round(
                number,
                status,
                since_ns,
                operation.at_ns,
                operation.checkpoint if merged else None,
                operation.note,
                # A reset's safety checkpoint has the changes that were unsaved.
                operation.checkpoint if merged else operation.safety or operation.head_before,
            )
        )
        since_ns = operation.at_ns
    rounds.append(Round(first + len(ended), RoundStatus.ACTIVE, since_ns))
    return rounds
