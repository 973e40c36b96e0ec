"""A session: one conversation with one agent, isolated from the workspace's other sessions; and its
rounds.

A round is a stretch of work between approvals:

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
    """A row of the catalog; `head` is the newest state of its line, `round` the number of the
    stretch of work that is not approved yet."""

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
        """As people read it."""
        return "approved" if self is RoundStatus.MERGED else self.value


ENDINGS: dict[OperationKind, RoundStatus] = {
    OperationKind.APPROVE: RoundStatus.MERGED,
    OperationKind.RESET: RoundStatus.ABANDONED,
}
"""The whole state machine: what ends an active round, and as what."""

ENDED_BY: dict[OperationKind, RoundStatus] = {
    **ENDINGS,
    OperationKind.ABANDON: RoundStatus.ABANDONED,
}
"""What the log may say that a round ended by: also one that ended in another store."""


@dataclass(frozen=True, slots=True)
class Round:
    """One stretch of work. `approved` is what an approval locked in, `message` what was said;
    `head` is the last state of an abandoned one, which is the way back to it. `checkpoints` counts
    those that the round has, records of restores apart; None where they were not counted."""

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
    """As data and the calls of dialog clients have it."""
    return f"session_{number}"


def round_title(name: str) -> str:
    """The same as people read it."""
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
                # What was not saved before a reset is in its safety checkpoint.
                operation.checkpoint if merged else operation.safety or operation.head_before,
            )
        )
        since_ns = operation.at_ns
    rounds.append(Round(first + len(ended), RoundStatus.ACTIVE, since_ns))
    return rounds
