"""A session: one conversation with one agent, isolated from the others of its workspace."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.values.classes import dataclass


class SessionStatus(StrEnum):
    ACTIVE = "active"
    ENDED = "ended"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Session:
    """A row of the catalog; `head` is the newest state of its line, `round` the number of the
    stretch of work that nobody has approved yet."""

    id: SessionId
    created_at_ns: int
    status: SessionStatus = SessionStatus.ACTIVE
    title: str | None = None
    agent: str | None = None
    head: CheckpointId | None = None
    approved: CheckpointId | None = None
    round: int = 1
