"""Tool calls: descriptions for people, checkpoint names, and which files a call wrote.

Calls come from hooks (`{"tool": …, "paths": […]}`), from transcripts (`{"name": …, "input": …}`) or
from a caller's own words. File contents in a call are ignored, because they may mention any file.

Secrets are masked before text is stored in a checkpoint: assignments and options with a
secret-sounding name, credentials in URLs and headers, and tokens with a known prefix. Every pattern
is bounded, so that no text takes long. Not guaranteed: a secret that looks like an ordinary word is
not masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from holdfast.domain.intent import BEFORE_MESSAGE, ToolCall
from holdfast.domain.paths import to_text
from holdfast.domain.wording import one_line

MASK = "***"
_MOST_READ = 8_000
_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credential|auth[_-]?key",
    re.IGNORECASE,
)
_VALUE = r"(?:\"[^\"]*+\"?|'[^']*+'?|[^\s\"'&;|,}]++)"
_ASSIGNED = re.compile(rf"(?<![\w.-])([\w.-]++)([\"']?\s{{0,3}}[=:]\s{{0,3}}){_VALUE}")
_OPTION = re.compile(rf"(?<!\S)(--?[\w.-]++)(\s{{1,3}})(?!-){_VALUE}")
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [^-]*-----|\Z)", re.S),
        MASK,
    ),
    (re.compile(r"(?i)\b(bearer|basic|token)(\s{1,3})[\w.~+/=-]{8,}+"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b(authorization\s?:\s?)(?:\w{1,20}\s)?[\w.~+/=-]{6,}+"), rf"\1{MASK}"),
    (re.compile(r"(://[^\s/:@]{0,200}):[^\s/@]{1,500}@"), rf"\1:{MASK}@"),
    (re.compile(r"(\b(?:mysql|mariadb)\w{0,20}\b[^;|&]{0,200}?\s-p)[^\s-]\S*+"), rf"\1{MASK}"),
    (re.compile(r"(\bcurl\b[^;|&]{0,200}?\s(?:-u|--user)[ =]?[^\s:]{0,100}:)\S++"), rf"\1{MASK}"),
    (
        re.compile(
            r"\b(?:sk-[\w-]{16,}+|gh[pousr]_\w{16,}+|github_pat_\w{16,}+|glpat-[\w-]{16,}+"
            r"|xox[abprs]-[\w-]{8,}+|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{30,}+|npm_\w{20,}+"
            r"|hf_\w{20,}+|pypi-[\w-]{20,}+|eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+"
            r"|[rs]k_(?:live|test)_\w{10,}+)"
        ),
        MASK,
    ),
)


def masked(text: str) -> str:
    """The beginning of the text, with recognisable secrets masked."""
    text = text[:_MOST_READ]
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    return _OPTION.sub(_hide, _ASSIGNED.sub(_hide, text))


def names_secret(name: str) -> bool:
    """Whether the name of a value suggests a secret."""
    return _SECRET_NAME.search(name) is not None


def _hide(match: re.Match[str]) -> str:
    name, between = match[1], match[2]
    return f"{name}{between}{MASK}" if names_secret(name) else match[0]


_SUBJECTS = ("command", "cmd", "file_path", "path", "paths", "pattern", "query", "url")
"""Keys for the subject of a call, the most telling first."""

_ABOUT_THE_CALL = ("tool", "name", "id", "kind", "input", "arguments", "risk", "reasons")


def call_words(call: ToolCall) -> str:
    """The tool, its subject, and why it was considered risky."""
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


DESCRIPTION_MAX_LENGTH = 200
MESSAGE_PREVIEW = 50
_MOST_LOOKED_AT = 4_000


def tool_description(
    moment: str, tool: str, subject: str, *, risk: str | None = None, reason: str | None = None
) -> str:
    """For example `Before Bash: npm install left-pad (risky: rewrites package-lock.json)`."""
    head = f"{moment} {one_line(tool, 40) or 'a tool'}"
    note = ""
    if risk is not None:
        why = one_line(masked(reason), 80) if reason else ""
        note = f" ({risk}: {why})" if why else f" ({risk})"
    room = DESCRIPTION_MAX_LENGTH - len(head) - len(note) - 2
    shown = one_line(masked(subject[:_MOST_LOOKED_AT]), room) if subject.strip() else ""
    return f"{head}: {shown}{note}" if shown else f"{head}{note}"


def message_description(prompt: str) -> str:
    """For example `Before user message: make the tests pass`, with its first 50 characters."""
    shown = one_line(masked(prompt[:_MOST_LOOKED_AT]), MESSAGE_PREVIEW)
    return f"{BEFORE_MESSAGE}: {shown}" if shown else BEFORE_MESSAGE


_EDITS = re.compile(r"edit|write|patch|replace|create|notebook|delete|move|rename", re.I)
_COMMANDS = re.compile(r"bash|shell|exec|command|terminal|run|python", re.I)
_CONTENTS = ("content", "old_string", "new_string", "old_str", "new_str", "new_source", "text")
_MOST_DEPTH = 8
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Move to|Delete)(?: File)?: (.+)$", re.M)


class Likelihood(IntEnum):
    """How likely it is that a call wrote a file."""

    NONE = 0
    COMMAND = 1
    """A command names the file."""
    EDIT = 2
    """An edit of the file."""


def likelihood(call: ToolCall, path: bytes) -> Likelihood:
    """How likely it is that a call wrote the file at this workspace path."""
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
