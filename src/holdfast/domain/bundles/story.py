"""What was said around the checkpoints of a bundle, as it travels: messages and annotations.

One JSON object holds some of both, in order. As with the other rows of a bundle, a missing key, a
value of another type or one that no store would hold is refused (`ValueError`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.domain.bundles.rows import (
    bundled_checkpoint_id,
    bundled_number,
    bundled_object,
    bundled_session_id,
    decoded_object,
)
from holdfast.domain.messages import MOST_CHARACTERS, Annotation, Message, Role

BATCH_CHARACTERS = 1_000_000
"""Of texts in one object, unless a single message has more."""


@dataclass(frozen=True, slots=True)
class BundledStory:
    """A part of it. `sequence` of annotations and the operations that rolled messages back mean
    nothing in another store: of the latter, only that there was one (0) is kept."""

    messages: tuple[Message, ...] = ()
    annotations: tuple[Annotation, ...] = ()


def encode_story(messages: Iterable[Message], annotations: Iterable[Annotation]) -> Iterator[bytes]:
    """All of it, in parts of a bounded size."""
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
    source_key = row["source_key"]
    return Message(
        bundled_session_id(row["session_id"]),
        bundled_number(row["index"]),
        Role(row["role"]),
        _text(row["content"]),
        bundled_number(row["at_ns"], signed=True),
        tuple(_call(call) for call in _list(row["tool_calls"])),
        None if source_key is None else _text(source_key),
        0 if row["rolled_back"] is True else None,
    )


def _annotation(row: dict[str, Any]) -> Annotation:
    author = row["author"]
    return Annotation(
        0,
        bundled_session_id(row["session_id"]),
        bundled_checkpoint_id(row["checkpoint_id"]),
        bundled_number(row["number"]),
        bundled_number(row["revision"]),
        _text(row["text"]),
        None if author is None else _text(author),
        bundled_number(row["at_ns"], signed=True),
    )


def _call(value: Any) -> str | dict[str, Any]:
    json.dumps(value, ensure_ascii=False).encode()  # lone surrogates cannot be stored
    return value if isinstance(value, str) else bundled_object(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
        raise ValueError("something else stands where a text should")
    value.encode()
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError("something else stands where a list should")
    return value
