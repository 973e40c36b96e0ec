"""Whether a tool call can have written a file, judged by its name and by what it was given.

Calls come from hooks (`{"tool": …, "paths": […]}`), from transcripts (`{"name": …, "input": …}`) or
from a caller's own words. Texts that are contents count for nothing: they may name any file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from holdfast.domain.intent import ToolCall
from holdfast.domain.paths import to_text

_EDITS = re.compile(r"edit|write|patch|replace|create|notebook|delete|move|rename", re.I)
_COMMANDS = re.compile(r"bash|shell|exec|command|terminal|run|python", re.I)
_CONTENTS = ("content", "old_string", "new_string", "old_str", "new_str", "new_source", "text")
_MOST_DEPTH = 8
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Move to|Delete)(?: File)?: (.+)$", re.M)


class Likelihood(IntEnum):
    """That a call wrote a file."""

    NONE = 0
    COMMAND = 1
    """A command that names it."""
    EDIT = 2
    """An edit of it."""


def likelihood(call: ToolCall, path: bytes) -> Likelihood:
    """How likely a call wrote the file at a path of the workspace."""
    if isinstance(call, str):
        return Likelihood.NONE
    name = str(call.get("tool") or call.get("name") or "")
    edits = _EDITS.search(name) is not None
    if not edits and _COMMANDS.search(name) is None:
        return Likelihood.NONE
    wanted = to_text(path)
    if any(_names(text, wanted, whole=edits) for text in _texts(call, 0)):
        return Likelihood.EDIT if edits else Likelihood.COMMAND
    return Likelihood.NONE


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _CONTENTS:
                yield from _texts(item, depth + 1)


def _names(text: str, path: str, *, whole: bool) -> bool:
    if text == path or text.endswith("/" + path):
        return True
    if whole:
        return any(_names(named.strip(), path, whole=False) for named in _PATCHED.findall(text))
    return re.search(rf"(?<![\w.-]){re.escape(path)}(?![\w./-])", text) is not None
