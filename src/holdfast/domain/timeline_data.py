"""A timeline as plain data, for `--json` and the web: what is drawn, and nothing that is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast.domain.paths import to_text
from holdfast.domain.rounds import Round, RoundStatus, round_name
from holdfast.domain.timeline import Event, EventType, Outline, Timeline


def timeline_as_data(timeline: Timeline) -> dict[str, Any]:
    return {
        "events": [event_as_data(event) for event in timeline.events],
        "lanes": timeline.lanes,
        "rounds": [round_as_data(one) for one in timeline.rounds],
        "head": timeline.head,
        "approved": timeline.approved,
        "next": timeline.next,
        "warnings": list(timeline.warnings),
    }


def round_as_data(one: Round) -> dict[str, Any]:
    return {
        "name": one.name,
        "status": one.status.value,
        "started_at": _moment(one.started_at_ns),
        "ended_at": None if one.ended_at_ns is None else _moment(one.ended_at_ns),
        "approved": one.approved,
        "message": one.message,
        "head": one.head,
    }


def event_as_data(event: Event) -> dict[str, Any]:
    """Every event has the first seven keys; the others depend on its type."""
    data: dict[str, Any] = {
        "type": event.type.value,
        "at": _moment(event.at_ns),
        "lane": event.lane,
        "passing": list(event.passing),
        "joins": list(event.joins),
        "begins": event.begins,
        "ends": event.ends,
    }
    if event.session_id is not None:
        data["session_id"] = event.session_id
    if event.checkpoint is not None:
        data["checkpoint"] = _checkpoint(event, event.checkpoint)
    if event.checkpoint is not None and event.checkpoint.selected is not None:
        data["paths"] = [to_text(path) for path in event.checkpoint.selected.paths]
    if event.operation is not None:
        data["safety"] = event.operation.safety
    if event.type is EventType.RESET and event.checkpoint is not None:
        data["abandoned"] = round_name(event.checkpoint.round - 1)
    if event.ended is not None and event.ended.status is RoundStatus.MERGED:
        data["round"] = event.ended.name
        data["approved"] = event.ended.approved
        data["message"] = event.ended.message
    if event.message is not None:
        data |= {
            "message_index": event.message.index,
            "role": event.message.role.value,
            "content": event.message.content,
            "rolled_back": event.message.rolled_back_by is not None,
        }
    if event.annotation is not None:
        note = event.annotation
        data |= {
            "checkpoint_id": note.checkpoint_id,
            "number": note.number,
            "text": note.text,
            "author": note.author,
        }
    if event.activity is not None:
        done = event.activity
        data |= {
            "number": done.number,
            "reason": done.reason,
            "status": done.status.value,
            "outcome": done.outcome,
            "paths": [to_text(path) for path in done.paths],
            "message_index": done.message_index,
        }
    return data


def _checkpoint(event: Event, row: Outline) -> dict[str, Any]:
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


def _moment(at_ns: int) -> str:
    moment = datetime.fromtimestamp(at_ns / 1e9, tz=UTC)
    return moment.isoformat(timespec="microseconds")
