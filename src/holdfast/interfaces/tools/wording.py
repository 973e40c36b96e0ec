"""How tools tell things to a model: one fact a line, names made harmless, long lists cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from holdfast.domain.checkpoints import Checkpoint, Skipped, SkipReason
from holdfast.domain.git.place import PresentGit
from holdfast.domain.ids import short
from holdfast.domain.wording import Remark, count_words, reworded
from holdfast.interfaces.tools.results import CheckpointInfo, GitNow, PathNote
from holdfast.interfaces.tools.shell_words import in_calls

count = count_words

MOST_LINES = 50
MOST_LISTED = 1_000
MOST_REASONING = 300_000
_UNSAFE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]|[\u2028\u2029\u202a-\u202e]")


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


def told_warnings(warnings: Iterable[str]) -> list[str]:
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


def info(found: Checkpoint, *, head: str | None, longest: int | None = None) -> CheckpointInfo:
    """A checkpoint as data; `longest`: of its reasoning only so much."""
    intent = found.intent
    return CheckpointInfo(
        id=found.id,
        name=found.name,
        kind=found.kind.value,
        created_at=found.created_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        reasoning=intent.reasoning if longest is None else cut(intent.reasoning, longest),
        confidence=intent.confidence,
        tags=list(intent.tags),
        files=found.files,
        size_bytes=found.size_bytes,
        added=found.changed.added,
        modified=found.changed.modified,
        removed=found.changed.removed,
        parent=found.parent,
        is_head=found.id == head,
        partial=found.partial,
        restores_from=found.restores_from,
    )


def git_now(place: PresentGit) -> GitNow:
    branch = None if place.branch is None else one_line(place.branch)
    return GitNow(branch, place.commit, place.dirty)


def within_an_answer(
    found: Iterable[Checkpoint], limit: int
) -> tuple[list[Checkpoint], Checkpoint | None]:
    """As many as fit: at most `limit`, and with long reasons as many as an answer holds, at least
    one; and the next one, if there is one."""
    fitting: list[Checkpoint] = []
    room = MOST_REASONING
    for one in found:
        room -= len(one.intent.reasoning)
        if len(fitting) == limit or (fitting and room < 0):
            return fitting, one
        fitting.append(one)
    return fitting, None


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


def by_rule(skipped: Iterable[Skipped]) -> list[Skipped]:
    """What was left out on purpose; that our own data is, goes without saying."""
    return [s for s in skipped if not s.reason.is_failure and s.reason is not SkipReason.OWN_DATA]


def noted(title: str, found: Sequence[PathNote]) -> list[str]:
    """Paths under a title; nothing when there are none."""
    if not found:
        return []
    return [title, *bullets([f"{note.path}: {note.note}" for note in found])]
