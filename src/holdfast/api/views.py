"""Values as data: the only place where a checkpoint, a plan or a session becomes a dictionary.

Command-line JSON, MCP output schemas and HTTP answers come from these typed dictionaries. Paths
that are not UTF-8 become text with surrogate escapes. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from holdfast.engine.session_overview import SessionSummary


class SessionView(TypedDict):
    """One session in a list."""

    id: str
    title: str | None
    agent: str | None
    status: str
    checkpoints: int
    unapproved: int
    created_at: str
    last_activity: str
    is_current: bool
    has_head: bool


def session_view(one: SessionSummary) -> SessionView:
    return {
        "id": one.session.id,
        "title": one.session.title,
        "agent": one.session.agent,
        "status": one.status.value,
        "checkpoints": one.checkpoints,
        "unapproved": one.unapproved,
        "created_at": moment(one.session.created_at_ns),
        "last_activity": moment(one.last_activity_ns),
        "is_current": one.is_current,
        "has_head": one.has_head,
    }


def moment(at_ns: int) -> str:
    """A time in nanoseconds since the epoch as ISO 8601 in UTC."""
    return iso(datetime.fromtimestamp(at_ns / 1e9, tz=UTC))


def iso(moment: datetime) -> str:
    """UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
