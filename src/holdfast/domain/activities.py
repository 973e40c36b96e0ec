"""Work that was begun and may be cut off: edits of some files, attempts, tool calls.

An activity is open until it is settled. One whose process is gone is still open: it is then offered
back to whoever comes next.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.values.classes import dataclass


class ActivityKind(StrEnum):
    EDIT = "edit"
    ATTEMPT = "attempt"
    TOOL = "tool"


class ActivityStatus(StrEnum):
    OPEN = "open"
    KEPT = "kept"
    PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class NewActivity:
    """An activity before the story has given it its number. `checkpoint` is the way back;
    `paths` are what an edit is about; `owner` tells the process that does it."""

    session_id: SessionId
    kind: ActivityKind
    reason: str
    checkpoint: CheckpointId
    started_at_ns: int
    owner: str
    paths: tuple[bytes, ...] = ()
    message_index: int | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """One activity. `outcome` says how it ended, in words; `has_diff` that what it changed is
    kept and can be asked for."""

    number: int
    session_id: SessionId
    kind: ActivityKind
    reason: str
    checkpoint: CheckpointId
    started_at_ns: int
    owner: str
    paths: tuple[bytes, ...] = ()
    message_index: int | None = None
    status: ActivityStatus = ActivityStatus.OPEN
    ended_at_ns: int | None = None
    outcome: str | None = None
    has_diff: bool = False
