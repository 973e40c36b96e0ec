"""Imports an agent's transcript into a session's conversation, from where the last import ended.

    cursor → messages → in batches, each in one transaction with the new cursor

Reading a transcript again adds nothing, and neither does a message that a hook recorded earlier.
Long tool answers are cut; the transcript has them in full. The store is not locked meanwhile, so
saves do not wait for a large file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import NotFound
from holdfast.domain.ids import SessionId
from holdfast.domain.story import Message, Role
from holdfast.domain.wording import count_words
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.conversation.transcripts import (
    PassedOver,
    TranscriptPosition,
    TranscriptReading,
)
from holdfast.engine.sessions.lifecycle import require_open_session
from holdfast.engine.vault import Vault
from holdfast.ports.story import NewMessage, Story

if TYPE_CHECKING:
    from holdfast.domain.transcript_messages import MessageOf, TranscriptMessage

_LONGEST_ANSWER = 4_000
_LONGEST_TEXT = 100_000
_LONGEST_ARGUMENT = 4_000
_LONGEST_CALL = 40_000
_LONGEST_CALLS = 400_000
_BATCH = 500
_BATCH_CHARACTERS = 2_000_000
_RECORDED_SINCE_NS = 600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class TranscriptImport:
    """`added` messages; `restarted`: the file is not the one read before, so it was read whole."""

    added: int
    restarted: bool
    passed_over: PassedOver


def import_transcript(
    vault: Vault, session_id: SessionId, path: Path, agent: str, message_of: MessageOf
) -> TranscriptImport:
    """`message_of` parses a line in the agent's format."""
    require_open_session(vault, session_id)
    story = vault.story
    name = _cursor_name(path, agent)
    added = size = 0
    batch: list[NewMessage] = []
    begun = _position(story.fact(session_id, name))
    recorded: list[Message] | None = None
    with TranscriptReading(
        path,
        message_of,
        begun,
        known=lambda key: story.has_source(session_id, key),
    ) as reading:
        for message in reading:
            if recorded is None:
                whole = begun is None or reading.restarted
                recorded = _without_source(story, session_id) if whole else []
            if _was_recorded(recorded, message):
                continue
            batch.append(_shortened(message, vault.clock.now_ns()))
            size += _size(batch[-1])
            if len(batch) >= _BATCH or size >= _BATCH_CHARACTERS:
                require_room(vault)
                fact = (name, json.dumps(reading.position.to_dict()))
                added += len(story.add_messages(session_id, batch, fact=fact))
                batch, size = [], 0
        end = json.dumps(reading.position.to_dict())
        if batch or end != story.fact(session_id, name):
            require_room(vault)
            added += len(story.add_messages(session_id, batch, fact=(name, end)))
        return TranscriptImport(added, reading.restarted, reading.passed_over)


def unread_bytes(vault: Vault, session_id: SessionId, path: Path, agent: str) -> int:
    """How much there is to read, judging by the file's size."""
    position = _position(vault.story.fact(session_id, _cursor_name(path, agent)))
    return os.stat(path).st_size - (0 if position is None else position.offset)


def _without_source(story: Story, session_id: SessionId) -> list[Message]:
    """The user's messages that were recorded before the transcript existed."""
    said = story.messages(session_id)
    return [each for each in said if each.role is Role.USER and each.source_key is None]


def _was_recorded(recorded: list[Message], message: TranscriptMessage) -> bool:
    """Whether a transcript message was already recorded; if so, removes it from `recorded`. A hook
    records it after the save before it, so somewhat later than the agent."""
    for number, known in enumerate(recorded):
        later_ns = known.at_ns - (known.at_ns if message.at_ns is None else message.at_ns)
        same = message.role == "user" and message.content == known.content
        if same and 0 <= later_ns < _RECORDED_SINCE_NS:
            del recorded[number]
            return True
    return False


def _cursor_name(path: Path, agent: str) -> str:
    if "\0" in str(path):
        raise NotFound(
            f"no such transcript: {str(path)!r}",
            hint="use the transcript file that the agent writes",
        )
    name = f"transcript {agent} {os.path.realpath(path)}"
    return name.encode("utf-8", "backslashreplace").decode()


def _position(noted: str | None) -> TranscriptPosition | None:
    return None if noted is None else TranscriptPosition.from_dict(json.loads(noted))


def _shortened(message: TranscriptMessage, now_ns: int) -> NewMessage:
    most = _LONGEST_ANSWER if message.role == "tool" else _LONGEST_TEXT
    return NewMessage(
        Role(message.role),
        _cut(message.content, most),
        message.at_ns if message.at_ns is not None else now_ns,
        tuple(_shortened_calls(message.tool_calls)),
        message.source_key,
    )


def _shortened_calls(calls: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    left = _LONGEST_CALLS
    for number, call in enumerate(calls):
        shortened: dict[str, Any] = _cut_call(call)
        encoded = json.dumps(shortened)
        if len(encoded) > _LONGEST_CALL:  # many short values can be long, too
            shortened |= {"input": _cut(json.dumps(shortened["input"]), _LONGEST_ARGUMENT)}
            encoded = json.dumps(shortened)
        left -= len(encoded)
        if left < 0:
            yield {"id": None, "name": count_words(len(calls) - number, "more call"), "input": {}}
            return
        yield shortened


def _size(message: NewMessage) -> int:
    return len(message.content) + sum(len(str(call)) for call in message.tool_calls)


def _cut_call(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value, _LONGEST_ARGUMENT)
    if isinstance(value, (list, tuple)):
        return [_cut_call(item) for item in value]
    if hasattr(value, "items"):
        return {key: _cut_call(item) for key, item in value.items()}
    return value


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most} more characters are in the transcript)"
