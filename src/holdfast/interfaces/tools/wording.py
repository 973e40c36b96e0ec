"""Text for models: one fact per line, safe names, shortened lists, and hints with tool calls
instead of shell commands.

Hints contain commands as users type them. An agent without a shell needs a tool call instead. If no
tool does it, the user can run the command.

    list checkpoints: holdfast log          →  list checkpoints: checkpoint_list {}
    skip such paths: --best-effort           →  skip such paths: "best_effort": true
    run: holdfast repair                     →  ask the user to run: holdfast repair

Guarantee: a command remains in a text only after `ask the user to run: `. Texts that users wrote
are not translated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.api.views.tool_values import CheckpointInfo, GitNow, MessageInfo
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.git.drift import TO_RESTORE_GIT, PresentGit
from holdfast.domain.ids import short
from holdfast.domain.story import Message
from holdfast.domain.wording import Remark, reworded

NOTICE_PHRASES = (
    "To undo this: holdfast undo.",
    "see holdfast log --records.",
    "unless the restore was made with --external.",
    TO_RESTORE_GIT,
    "holdfast diff HEAD shows what differs from your last checkpoint.",
)
ASK_USER = "ask the user to run: "
_REF = r"([\w~@.{}-]*[\w}])"
_END = r"(?=[.,;)]|\s|$)"
Replacement = str | Callable[[re.Match[str]], str]


def as_tool_calls(text: str) -> str:
    """A hint, warning or reason from the engine, for an agent."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def notice_in_calls(notice: str) -> str:
    """The notice to an agent about a restore (RB-10). Quoted user text is not translated."""
    for phrase in NOTICE_PHRASES:
        notice = notice.replace(phrase, as_tool_calls(phrase))
    return notice


def _call(tool: str, **arguments: Any) -> str:
    return f"{tool} {json.dumps(arguments, ensure_ascii=False)}"


def _unquoted(word: str) -> str:
    """A word as the shell would pass it."""
    from shlex import split

    try:
        [found] = split(word)
    except ValueError:
        return word
    return found


def _rule(pattern: str, replacement: Replacement) -> tuple[re.Pattern[str], Replacement]:
    return re.compile(pattern), replacement


_ON_A_BRANCH = _call("checkpoint_restore", checkpoint_id="REF", files_only=False)
_RULES: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    _rule(r'holdfast checkpoint "([^"]*)"', lambda m: _call("checkpoint_create", reasoning=m[1])),
    _rule(r"holdfast log --records", _call("checkpoint_list", records=True)),
    _rule(rf"holdfast log{_END}(?! --)", _call("checkpoint_list")),
    _rule(rf"holdfast status --skipped{_END}", _call("checkpoint_show")),
    _rule(
        r"show the session: holdfast status",
        f"see what was done: {_call('checkpoint_history')}",
    ),
    _rule(
        rf"holdfast show {_REF} --files",
        lambda m: _call("checkpoint_show", checkpoint_id=m[1], files=True),
    ),
    _rule(rf"holdfast show {_REF}{_END}", lambda m: _call("checkpoint_show", checkpoint_id=m[1])),
    _rule(
        rf"holdfast diff {_REF} -- (.+)$",
        lambda m: _call(
            "checkpoint_diff", from_checkpoint=m[1], paths=[_unquoted(m[2])], content=True
        ),
    ),
    _rule(
        rf"holdfast diff {_REF}{_END}(?! --)",
        lambda m: _call("checkpoint_diff", from_checkpoint=m[1]),
    ),
    _rule(r"as holdfast diff shows", "as checkpoint_diff shows"),
    _rule(
        r"holdfast search ('?path:.+)$",
        lambda m: _call("checkpoint_search", query=_unquoted(m[1])),
    ),
    _rule(rf"holdfast restore {_REF}$", lambda m: _call("checkpoint_restore", checkpoint_id=m[1])),
    _rule(
        rf"holdfast restore {_REF} (?!.*--hunk)([^-\s].*)$",
        lambda m: _call("checkpoint_restore", checkpoint_id=m[1], paths=[_unquoted(m[2])]),
    ),
    _rule(rf"holdfast undo{_END}", _call("checkpoint_undo")),
    _rule(rf"holdfast redo{_END}", _call("checkpoint_undo", redo=True)),
    _rule(rf"holdfast cleanup{_END}(?! --)", _call("checkpoint_cleanup")),
    _rule(r"by holdfast purge", "by a purge"),
    _rule(
        r"for its meaning: holdfast config list",
        f"for its meaning: {_call('checkpoint_auto_configure')}",
    ),
    _rule(
        r"paths are relative to the current directory, or to the workspace as :/PATH",
        "paths are relative to the workspace",
    ),
    _rule(r"(?<!\S)--best-effort", '"best_effort": true'),
    _rule(r"(?<!\S)--ref REF", '"checkpoint_id": "REF"'),
    _rule(
        re.escape(TO_RESTORE_GIT),
        f"to restore git too: {_ON_A_BRANCH} puts it on a new branch, or "
        f"{ASK_USER}holdfast restore REF --git exact",
    ),
    _rule(r"(?<!REF )(?<!\S)--git branch", _ON_A_BRANCH),
    _rule(
        r"(?<!REF )(?<!\S)--(git exact|with \w+|refs all)",
        lambda m: f"{ASK_USER}holdfast restore REF --{m[1]}",
    ),
    _rule(r"was made with --external", "brought them back too"),
    _rule(
        r"use a project directory with -C DIR, or add --force",
        "ask the user for another workspace",
    ),
    _rule(
        r"set HOLDFAST_HOME to a directory outside it, or add --force",
        "ask the user to set HOLDFAST_HOME to a directory outside it",
    ),
    _rule(r"or end it if it hangs: kill (\d+)", lambda m: f"or {ASK_USER}kill {m[1]}"),
    _rule(r"(?<!user to )run: holdfast ", f"{ASK_USER}holdfast "),
    # The holder of the store is in brackets, and the workspace's directory begins with a dot.
    _rule(r"(?<!run: )(?<![(.])holdfast (?=[a-z])", f"{ASK_USER}holdfast "),
)


NOTHING_SAVED = (
    "This session has no checkpoint yet. Make one before changing anything: "
    'checkpoint_create {"reasoning": "why"}.'
)
MOST_LINES = 50
MOST_LISTED = 1_000
_LONGEST_MESSAGE = 1_000
_UNSAFE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u2028\u2029\u202a-\u202e]")


@dataclass(frozen=True, slots=True)
class PathNote:
    """A path and a note about it."""

    path: str
    note: str


def one_line(text: str) -> str:
    """A text on one line, without control characters."""
    return _UNSAFE.sub(_written_out, text)


def many_lines(text: str) -> str:
    """Like `one_line`, but lines and tabs are kept."""
    lines = text.split("\n")
    return "\n".join("\t".join(one_line(part) for part in line.split("\t")) for line in lines)


def reason_line(text: str) -> str:
    """A warning or reason from the engine on one line, with tool calls."""
    return reworded(text, lambda words: one_line(as_tool_calls(words)))


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """One line each; remarks are not marked as warnings."""
    labels = (
        ("Note" if isinstance(one, Remark) else "Warning", reason_line(one)) for one in warnings
    )
    return [f"{label}: {words}" for label, words in labels]


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def path_text(path: bytes) -> str:
    return one_line(path.decode("utf-8", "surrogateescape"))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def message_info(message: Message) -> MessageInfo:
    return MessageInfo(message.index, message.role.value, cut(message.content, _LONGEST_MESSAGE))


def git_now(place: PresentGit) -> GitNow:
    branch = None if place.branch is None else one_line(place.branch)
    return GitNow(branch, place.commit, place.dirty)


def label(found: CheckpointInfo | Checkpoint) -> str:
    """`before-refactor (3f9c2a41d0)`, or the id alone."""
    return f"{one_line(found.name)} ({short(found.id)})" if found.name else short(found.id)


def row(found: CheckpointInfo) -> str:
    """A checkpoint on one line of a list."""
    when = datetime.fromisoformat(found.created_at).strftime("%Y-%m-%d %H:%M:%S UTC")
    marks = f"+{found.added} ~{found.modified} -{found.removed}"
    head = " (HEAD)" if found.is_head else ""
    name = f" [{one_line(found.name)}]" if found.name else ""
    reason = cut(one_line(found.reasoning.strip().split("\n", 1)[0]), 200)
    return f"{short(found.id)}{head}{name} {when} {found.kind} {marks}: {reason}"


def bullets(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """The lines, and how many are left out."""
    shown = [f"  {line}" for line in lines[:most]]
    return [*shown, f"  … and {len(lines) - most:,} more"] if len(lines) > most else shown


def notes(problems: Iterable[tuple[bytes, str]]) -> list[PathNote]:
    return [PathNote(path_text(path), reason_line(note)) for path, note in problems]


def path_list(title: str, found: Sequence[PathNote]) -> list[str]:
    """Paths under a title; empty if there are none."""
    if not found:
        return []
    return [title, *bullets([f"{note.path}: {note.note}" for note in found])]
