"""Messages, annotations and ended rounds in a bundle.

One JSON object holds some messages and annotations, in order. Rounds are part of a session's JSON
object; bundles of earlier versions have none. As with the other rows of a bundle, a missing key, a
value of the wrong type or one that no store would accept raises `ValueError`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.domain.bundles.rows import (
    bundled_checkpoint_id,
    bundled_number,
    bundled_object,
    bundled_session_id,
    decoded_object,
    optional,
)
from holdfast.domain.ids import CheckpointId
from holdfast.domain.intent import REASONING_MAX_LENGTH
from holdfast.domain.sessions import Round, RoundStatus
from holdfast.domain.story import MOST_CHARACTERS, Annotation, Message, Role

BATCH_CHARACTERS = 1_000_000
"""The most text in one object, unless a single message has more."""


@dataclass(frozen=True, slots=True)
class BundledStory:
    """A part of a story. Annotation `sequence` and the operations that rolled messages back mean
    nothing in another store. Only the fact of a rollback is kept, as 0."""

    messages: tuple[Message, ...] = ()
    annotations: tuple[Annotation, ...] = ()


def encode_story(messages: Iterable[Message], annotations: Iterable[Annotation]) -> Iterator[bytes]:
    """The whole story, in parts of bounded size."""
    batch: dict[str, list[Any]] = {"messages": [], "annotations": []}
    size = 0
    for key, row in _rows(messages, annotations):
        batch[key].append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str))
        size += len(json.dumps(row.get("tool_calls")))
        if size >= BATCH_CHARACTERS:
            yield _encode(batch)
            batch, size = {"messages": [], "annotations": []}, 0
    if batch["messages"] or batch["annotations"]:
        yield _encode(batch)


def _rows(
    messages: Iterable[Message], annotations: Iterable[Annotation]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for message in messages:
        calls = [call if isinstance(call, str) else dict(call) for call in message.tool_calls]
        yield (
            "messages",
            {
                "session_id": message.session_id,
                "index": message.index,
                "role": message.role.value,
                "content": message.content,
                "at_ns": message.at_ns,
                "tool_calls": calls,
                "source_key": message.source_key,
                "rolled_back": message.rolled_back_by is not None,
            },
        )
    for annotation in annotations:
        yield (
            "annotations",
            {
                "session_id": annotation.session_id,
                "checkpoint_id": annotation.checkpoint_id,
                "number": annotation.number,
                "revision": annotation.revision,
                "text": annotation.text,
                "author": annotation.author,
                "at_ns": annotation.at_ns,
            },
        )


def _encode(batch: dict[str, list[Any]]) -> bytes:
    return json.dumps(batch, separators=(",", ":"), ensure_ascii=False).encode()


def decode_story(data: bytes) -> BundledStory:
    fields = decoded_object(data)
    return BundledStory(
        tuple(_message(bundled_object(row)) for row in _list(fields["messages"])),
        tuple(_annotation(bundled_object(row)) for row in _list(fields["annotations"])),
    )


def _message(row: dict[str, Any]) -> Message:
    return Message(
        bundled_session_id(row["session_id"]),
        bundled_number(row["index"]),
        Role(row["role"]),
        _text(row["content"]),
        bundled_number(row["at_ns"], signed=True),
        tuple(_call(call) for call in _list(row["tool_calls"])),
        optional(row["source_key"], _text),
        0 if row["rolled_back"] is True else None,
    )


def _annotation(row: dict[str, Any]) -> Annotation:
    return Annotation(
        0,
        bundled_session_id(row["session_id"]),
        bundled_checkpoint_id(row["checkpoint_id"]),
        bundled_number(row["number"]),
        bundled_number(row["revision"]),
        _text(row["text"]),
        optional(row["author"], _text),
        bundled_number(row["at_ns"], signed=True),
    )


def _call(value: Any) -> str | dict[str, Any]:
    json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    return value if isinstance(value, str) else bundled_object(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
        raise ValueError("expected text")
    value.encode()
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")
    return value


_MOST_ROUNDS = 5_000
_MOST_CHARACTERS = 500_000
"""The total of a session's round messages. With both limits, its object fits into a bundle. The
newest are kept."""


def exportable_rounds(
    rounds: Sequence[Round], chosen: Container[CheckpointId]
) -> tuple[Round, ...]:
    """Ended rounds, oldest first, without references to checkpoints that are not exported."""
    left = _MOST_CHARACTERS
    found: list[Round] = []
    for one in reversed([one for one in rounds if one.status is not RoundStatus.ACTIVE]):
        if len(found) == _MOST_ROUNDS:
            break
        comes = one.head in chosen
        left -= len(one.message or "")
        found.append(
            replace(
                one,
                approved=one.approved if comes else None,
                head=one.head if comes else None,
                message=one.message if comes and left >= 0 else None,
            )
        )
    return tuple(reversed(found))


def with_new_ids(
    rounds: Sequence[Round], ids: Mapping[CheckpointId, CheckpointId]
) -> tuple[Round, ...]:
    """The same rounds with the ids that checkpoints get in another store."""
    return tuple(
        replace(
            one,
            approved=None if one.approved is None else ids[one.approved],
            head=None if one.head is None else ids[one.head],
        )
        for one in rounds
    )


def encode_rounds(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    return [
        {
            "number": one.number,
            "status": one.status.value,
            "started_at_ns": one.started_at_ns,
            "ended_at_ns": one.ended_at_ns,
            "head": one.head,
            "message": one.message,
        }
        for one in rounds
    ]


def decode_rounds(fields: Mapping[str, Any]) -> tuple[Round, ...]:
    """The rounds in a session's JSON object."""
    rows = fields.get("rounds", [])
    if not isinstance(rows, list):
        raise ValueError("expected rounds")
    return tuple(_round(bundled_object(row)) for row in rows)


def _round(row: dict[str, Any]) -> Round:
    status = RoundStatus(row["status"])
    if status is RoundStatus.ACTIVE:
        raise ValueError("a round is both active and ended")
    head = optional(row["head"], bundled_checkpoint_id)
    return Round(
        bundled_number(row["number"]),
        status,
        bundled_number(row["started_at_ns"], signed=True),
        bundled_number(row["ended_at_ns"], signed=True),
        head if status is RoundStatus.MERGED else None,
        optional(row["message"], _round_message),
        head,
    )


def _round_message(value: Any) -> str:
    if not isinstance(value, str) or len(value) > REASONING_MAX_LENGTH:
        raise ValueError("expected a message")
    value.encode()
    return value
