"""Reading an event's JSON: bounded, whole or broken, of any agent and any version.

A payload that is too large, or no JSON at all, still tells which event it is: the fields that
matter are searched for in its beginning and its end, so that the state is saved nevertheless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

MOST_BYTES = 16 << 20
_END_BYTES = 64 << 10
_MOST_TEXT = 1 << 20
_FIELD = re.compile(
    rb'"(session_id|sessionId|conversation_id|taskId|sessionID|hook_event_name|hookName|event|cwd'
    rb"|working_dir|transcript_path|tool_name|toolName|tool|tool_use_id|tool_call_id|callID|turn_id"
    rb'|prompt_id|file_path|filePath|path|[a-z]+_version|[a-z]+Version|command)"\s*:\s*'
    rb'"((?:[^"\\]|\\.){0,4000})"'
)


class Unreadable(Exception):
    """Nothing in the payload says what it is about."""


class Input(Protocol):
    def read(self, size: int, /) -> bytes: ...


def read_payload(stream: Input) -> dict[str, Any]:
    """Everything is taken from the stream: an agent must not fail because nobody read on."""
    data = stream.read(MOST_BYTES + 1)
    if len(data) <= MOST_BYTES:
        return parse_payload(data)
    tail = b""
    while chunk := stream.read(1 << 20):
        tail = (tail + chunk)[-_END_BYTES:]
    return _salvage(data[:_END_BYTES] + b"\n" + tail)


def parse_payload(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return _salvage(data[:_END_BYTES] + b"\n" + data[-_END_BYTES:])
    if not isinstance(parsed, dict):
        raise Unreadable(f"the event is {type(parsed).__name__}, not an object")
    return parsed


def _salvage(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in _FIELD.findall(data):
        try:
            text = json.loads(b'"' + value + b'"')
        except ValueError:
            continue
        found.setdefault(name.decode(), text)
    if not found:
        raise Unreadable("the event is not JSON")
    # Where they really stood is lost; every reader looks here as well.
    found.setdefault("tool_input", {k: found[k] for k in ("command", "file_path") if k in found})
    return found


def text_of(payload: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text or a number; empty when there is none."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value[:_MOST_TEXT]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def object_of(payload: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The first of these fields that is an object, or a text that is the JSON of one."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                continue
        if isinstance(value, dict):
            return value
    return {}


def texts_of(payload: Mapping[str, Any], *names: str) -> list[str]:
    """The texts of the first of these fields that is a list with any."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, list):
            found = [item for item in value[:1000] if isinstance(item, str) and item]
            if found:
                return found
    return []
