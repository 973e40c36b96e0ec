"""One message of a conversation, as read from an agent's transcript."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from blake3 import blake3

from holdfast.domain.intent import storable, storable_json
from holdfast.domain.story import Role

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_NS = (1 << 63) - 1
_KEY_BYTES = 16
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message with its role and tool calls.

    `source_key` identifies the message when it is read again, even from a replaced, copied or
    continued file. The role `system` marks text added by the agent's program, such as instructions
    and summaries. `tool_calls` are mappings of id, name and input. `tool_use_ids` are the calls
    made here or, for the role `tool`, answered here.
    """

    source_key: str
    role: Role
    content: str
    at_ns: int | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_use_ids: tuple[str, ...] = ()


MessageOf = Callable[[Mapping[str, Any]], TranscriptMessage | None]
"""Parses a line of an agent's transcript; None if it has no message."""


def text_of(value: object) -> str:
    """Text that can be stored: lone surrogates become visible escapes."""
    return storable(value) if isinstance(value, str) else ""


def identifier(value: object) -> str | None:
    """The value if it is a usable id: a short printable text."""
    if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID and value.isprintable():
        return value
    return None


def content_key(*parts: object) -> str:
    """A key for something without an id, from all its known parts."""
    encoded = json.dumps(parts, sort_keys=True, default=str)
    return blake3(encoded.encode("utf-8", "backslashreplace")).digest(length=_KEY_BYTES).hex()


def message_of_line(
    agent: str,
    line: Mapping[str, Any],
    role: Role,
    content: str,
    calls: tuple[dict[str, Any], ...],
    answered: Iterable[object],
) -> TranscriptMessage:
    """The message on a line with a `uuid` and a `timestamp`. `answered` are the ids of calls whose
    results it has."""
    at = line.get("timestamp")
    key = identifier(line.get("uuid")) or f"#{content_key(role, at, content, calls)}"
    named = [*(call["id"] for call in calls), *map(identifier, answered)]
    return TranscriptMessage(
        source_key=f"{agent}:{key}",
        role=role,
        content=content,
        at_ns=nanoseconds(at),
        tool_calls=calls,
        tool_use_ids=tuple(call_id for call_id in named if call_id),
    )


def nanoseconds(timestamp: object) -> int | None:
    """Nanoseconds since 1970 from ISO 8601; None if it is not a time since then."""
    if not isinstance(timestamp, str):
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        at_ns = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    except (ValueError, OverflowError):
        return None
    return at_ns if 0 <= at_ns <= _LATEST_NS else None


def tool_call(call_id: object, name: object, given: object) -> dict[str, Any]:
    """A call in the form stored in intents and stories."""
    return {
        "id": identifier(call_id),
        "name": text_of(name) or "unknown",
        "input": storable_json(given),
    }
