"""A timeline as data, with exactly the fields that drawing it needs."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.api.views.checkpoints import ChangeCountsView
from holdfast.api.views.sessions import RoundView, round_view
from holdfast.domain.paths import to_text
from holdfast.domain.sessions import RoundStatus, round_name
from holdfast.domain.timeline.timeline import EventType
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.domain.timeline.timeline import Event, Outline, Timeline


class OutlineView(TypedDict):
    """A checkpoint on a timeline."""

    id: str
    name: str | None
    kind: str
    parent: str | None
    reasoning: str
    confidence: float
    changed: ChangeCountsView
    partial: bool
    restores_from: str | None
    message_index: int | None
    tool_use_id: str | None
    round: str
    is_head: bool
    is_approved: bool


class TimelineEventView(TypedDict):
    """Every event has the first seven keys; the others depend on its type."""

    type: str
    at: str
    lane: int | None
    passing: list[int]
    joins: list[int]
    begins: bool
    ends: bool
    session_id: NotRequired[str]
    checkpoint: NotRequired[OutlineView]
    paths: NotRequired[list[str]]
    safety: NotRequired[str | None]
    abandoned: NotRequired[str]
    round: NotRequired[str]
    approved: NotRequired[str | None]
    message: NotRequired[str | None]
    message_index: NotRequired[int | None]
    role: NotRequired[str]
    content: NotRequired[str]
    rolled_back: NotRequired[bool]
    checkpoint_id: NotRequired[str]
    number: NotRequired[int]
    text: NotRequired[str]
    author: NotRequired[str | None]
    reason: NotRequired[str]
    status: NotRequired[str]
    outcome: NotRequired[str | None]


class TimelineView(TypedDict):
    """A page, newest first; `next` is the cursor of the next page."""

    events: list[TimelineEventView]
    lanes: int
    rounds: list[RoundView]
    head: str | None
    approved: str | None
    next: str | None
    warnings: list[str]


def timeline_view(timeline: "Timeline", rounds: list[RoundView] | None = None) -> TimelineView:
    """`rounds` replaces the rounds of the page."""
    own = [round_view(one) for one in timeline.rounds]
    return {
        "events": [event_view(event) for event in timeline.events],
        "lanes": timeline.lanes,
        "rounds": own if rounds is None else rounds,
        "head": timeline.head,
        "approved": timeline.approved,
        "next": timeline.next,
        "warnings": list(timeline.warnings),
    }


def event_view(event: "Event") -> TimelineEventView:
    view: TimelineEventView = {
        "type": event.type.value,
        "at": iso_from_ns(event.at_ns),
        "lane": event.lane,
        "passing": list(event.passing),
        "joins": list(event.joins),
        "begins": event.begins,
        "ends": event.ends,
    }
    if event.session_id is not None:
        view["session_id"] = event.session_id
    if event.checkpoint is not None:
        view["checkpoint"] = _outline(event, event.checkpoint)
    if event.checkpoint is not None and event.checkpoint.selected is not None:
        view["paths"] = [to_text(path) for path in event.checkpoint.selected.paths]
    if event.operation is not None:
        view["safety"] = event.operation.safety
    if event.type is EventType.RESET and event.checkpoint is not None:
        view["abandoned"] = round_name(event.checkpoint.round - 1)
    if event.ended is not None and event.ended.status is RoundStatus.MERGED:
        view["round"] = event.ended.name
        view["approved"] = event.ended.approved
        view["message"] = event.ended.message
    if event.message is not None:
        view["message_index"] = event.message.index
        view["role"] = event.message.role.value
        view["content"] = event.message.content
        view["rolled_back"] = event.message.rolled_back_by is not None
        if event.message.checkpoint is not None:
            view["checkpoint_id"] = event.message.checkpoint
    if event.annotation is not None:
        note = event.annotation
        view["checkpoint_id"] = note.checkpoint_id
        view["number"] = note.number
        view["text"] = note.text
        view["author"] = note.author
    if event.activity is not None:
        done = event.activity
        view["number"] = done.number
        view["reason"] = done.reason
        view["status"] = done.status.value
        view["outcome"] = done.outcome
        view["paths"] = [to_text(path) for path in done.paths]
        view["message_index"] = done.message_index
    return view


def _outline(event: "Event", row: "Outline") -> OutlineView:
    return {
        "id": row.id,
        "name": row.name,
        "kind": row.kind.value,
        "parent": row.parent,
        "reasoning": row.reasoning,
        "confidence": row.confidence,
        "changed": {"added": row.added, "modified": row.modified, "removed": row.removed},
        "partial": row.partial,
        "restores_from": row.restores_from,
        "message_index": row.message_index,
        "tool_use_id": row.tool_use_id,
        "round": round_name(row.round),
        "is_head": event.is_head,
        "is_approved": event.is_approved,
    }
