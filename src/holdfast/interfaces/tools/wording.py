"""How tools write to a model: one fact a line, names made harmless, long lists cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.api.views.tool_values import CheckpointInfo, GitNow
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.git.place import PresentGit
from holdfast.domain.ids import short
from holdfast.domain.wording import Remark, reworded
from holdfast.interfaces.tools.hint_translation import in_calls

NOTHING_SAVED = (
    "This session has no checkpoint yet. Make one before changing anything: "
    'checkpoint_create {"reasoning": "why"}.'
)
MOST_LINES = 50
MOST_LISTED = 1_000
_UNSAFE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u2028\u2029\u202a-\u202e]")


@dataclass(frozen=True, slots=True)
class PathNote:
    """A path and what there is to say about it."""

    path: str
    note: str


def one_line(text: str) -> str:
    """A text that cannot pass for more than one line, nor for anything else than text."""
    return _UNSAFE.sub(_written_out, text)


def many_lines(text: str) -> str:
    """The same for a text that may have lines and tabs."""
    lines = text.split("\n")
    return "\n".join("\t".join(one_line(part) for part in line.split("\t")) for line in lines)


def said(text: str) -> str:
    """A warning or a reason of the engine on one line, in calls of tools."""
    return reworded(text, lambda words: one_line(in_calls(words)))


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """A line each; a remark is no warning."""
    labels = (("Note" if isinstance(one, Remark) else "Warning", said(one)) for one in warnings)
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
    reason = one_line(found.reasoning.strip().split("\n", 1)[0])
    reason = reason if len(reason) <= 200 else reason[:199] + "…"
    return f"{short(found.id)}{head}{name} {when} {found.kind} {marks}: {reason}"


def bullets(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """The lines, and how many were left out."""
    shown = [f"  {line}" for line in lines[:most]]
    return [*shown, f"  … and {len(lines) - most:,} more"] if len(lines) > most else shown


def notes(problems: Iterable[tuple[bytes, str]]) -> list[PathNote]:
    return [PathNote(path_text(path), said(note)) for path, note in problems]


def noted(title: str, found: Sequence[PathNote]) -> list[str]:
    """Paths under a title; nothing when there are none."""
    if not found:
        return []
    return [title, *bullets([f"{note.path}: {note.note}" for note in found])]
