"""A line of a rollout of Codex (`~/.codex/sessions/…/rollout-….jsonl`) as a message.

A line holds `timestamp`, `type` and `payload`. The conversation is in the `response_item`s: what
was said, each tool call and each answer. `event_msg` repeats parts of it for display and
`session_meta` and `turn_context` describe the circumstances; both are left out. Rollouts of early
versions hold the items themselves, without the envelope.

A `compacted` line replaces what the model is given, not what was said: it becomes a message of the
role `system`, and the history that it may carry along is not read a second time.

Items have no id of their own that can be relied on: a message is keyed by everything in it, its
time to the millisecond included, so that the same line found again is the same message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.domain.messages import Role
from holdfast.engine.conversation.transcripts.messages import (
    TranscriptMessage,
    content_key,
    identifier,
    nanoseconds,
    text_of,
    tool_call,
)

# Tuples, not sets: what is looked up in them comes from the file and may be anything.
_ENVELOPES = ("session_meta", "response_item", "compacted", "turn_context", "event_msg")
_ROLES: Mapping[str, Role] = {"user": Role.USER, "assistant": Role.ASSISTANT}
_ANSWERS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# What the program says in the user's name begins with one of these.
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<recommended_plugins>",
    "<subagent_notification>",
    "<turn_aborted",
    "<skill>",
    "# AGENTS.md instructions",
)


def message_of(line: Mapping[str, Any]) -> TranscriptMessage | None:
    """The message of a line; None when it holds none."""
    kind = line.get("type")
    payload = line.get("payload")
    if kind == "compacted" and isinstance(payload, dict):
        summary = text_of(payload.get("message"))
        return _message(line, Role.SYSTEM, f"[context compacted]\n{summary}".rstrip())
    if kind == "response_item" and isinstance(payload, dict):
        return _item(line, payload)
    if kind not in _ENVELOPES and "payload" not in line:
        return _item(line, line)
    return None


def _item(line: Mapping[str, Any], item: Mapping[str, Any]) -> TranscriptMessage | None:
    kind = item.get("type")
    if kind == "message":
        content = _text(item.get("content"))
        return _message(line, _role(item.get("role"), content), content) if content else None
    call_id = identifier(item.get("call_id")) or identifier(item.get("id"))
    if kind in _ANSWERS:
        return _message(line, Role.TOOL, _answer(item), ids=(call_id,))
    call = _call(item, call_id)
    if call is None:
        return None
    return _message(line, Role.ASSISTANT, "", calls=(call,), ids=(call_id,))


def _message(
    line: Mapping[str, Any],
    role: Role,
    content: str,
    *,
    calls: tuple[dict[str, Any], ...] = (),
    ids: tuple[str | None, ...] = (),
) -> TranscriptMessage:
    return TranscriptMessage(
        source_key=f"codex:#{content_key(line.get('timestamp'), role, content, calls, ids)}",
        role=role,
        content=content,
        at_ns=nanoseconds(line.get("timestamp")),
        tool_calls=calls,
        tool_use_ids=tuple(call_id for call_id in ids if call_id),
    )


def _role(role: object, content: str) -> Role:
    known = _ROLES.get(role, Role.SYSTEM) if isinstance(role, str) else Role.SYSTEM
    return Role.SYSTEM if known is Role.USER and content.startswith(_INJECTED) else known


def _call(item: Mapping[str, Any], call_id: str | None) -> dict[str, Any] | None:
    match item.get("type"):
        case "function_call":
            return tool_call(call_id, item.get("name"), _arguments(item.get("arguments")))
        case "custom_tool_call":
            return tool_call(call_id, item.get("name"), item.get("input"))
        case "local_shell_call":
            return tool_call(call_id, "shell", item.get("action"))
        case "web_search_call":
            return tool_call(call_id, "web_search", item.get("action"))
        case "tool_search_call":
            return tool_call(call_id, "tool_search", item.get("arguments"))
        case _:
            return None


def _arguments(given: object) -> Any:
    """Written as a text of JSON; kept as text when it is none."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _answer(item: Mapping[str, Any]) -> str:
    output = item.get("output")
    if isinstance(output, dict):
        output = output.get("content")
    return _text(output)


def _text(content: object) -> str:
    if isinstance(content, str):
        return text_of(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(told for part in parts if (told := _part(part)))


def _part(part: object) -> str:
    if not isinstance(part, dict):
        return text_of(part)
    if isinstance(part.get("text"), str):
        return text_of(part["text"])
    return f"[{text_of(part.get('type'))[:40] or 'unknown'}]"
