"""Tool calls as people read them: `Bash: rm -rf src`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.domain.intent import ToolCall

_SUBJECTS = ("command", "cmd", "file_path", "path", "paths", "pattern", "query", "url")
"""What a call is about, the most telling first."""

_ABOUT_THE_CALL = ("tool", "name", "id", "kind", "input", "arguments", "risk", "reasons")


def call_words(call: ToolCall) -> str:
    """The tool, what it was given, and why that was held to be risky."""
    if isinstance(call, str):
        return call
    tool = _plain(call.get("tool") or call.get("name") or "tool")
    subject = _subject(next((call[key] for key in ("input", "arguments") if key in call), call))
    words = f"{tool}: {subject}" if subject else tool
    if not (risk := _plain(call.get("risk") or "")):
        return words
    reasons = _plain(call.get("reasons") or "")
    return f"{words} ({risk}: {reasons})" if reasons else f"{words} ({risk})"


def _subject(given: Any) -> str:
    if not isinstance(given, Mapping):
        return _plain(given)
    for key in _SUBJECTS:
        if given.get(key):
            return _plain(given[key])
    rest = {key: value for key, value in given.items() if key not in _ABOUT_THE_CALL}
    return _plain(rest)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return "" if value is None else json.dumps(value, default=str)
