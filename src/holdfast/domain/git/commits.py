"""Checkpoints squashed into a git commit: message, plan, skipped paths and outcome.

A message is composed from the intents of checkpoints:

    subject: the newest reason that a person or an agent gave, shortened to one line
    body:    every reason in order, once each

If no checkpoint has a reason, the user's messages are used; without messages, the tool calls. A
template may arrange them differently.
Control characters in a reason become spaces, and lines that git would treat as comments are
indented by one space.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Checkpoint, Kind
from holdfast.domain.errors import Refused, UsageError
from holdfast.domain.ids import short
from holdfast.domain.intent import BEFORE_MESSAGE

PLACEHOLDERS = ("subject", "reasons", "checkpoints", "session", "goals")
_SUBJECT_LENGTH = 72
_WIDTH = 72
_MOST_REASONS = 100
_LONGEST_REASON = 2000
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_MOMENT = re.compile(rf"\A(?:{BEFORE_MESSAGE}(?:: |\Z)|(?:Before|After) )")
_CO_AUTHOR = re.compile(r"[^<>\n]*[^<>\s][^<>\n]* <[^<>\s]+>\Z")


def compose_message(
    checkpoints: Sequence[Checkpoint],
    *,
    template: str,
    message: str | None = None,
    co_authors: Iterable[str] = (),
    prompts: Sequence[str] = (),
) -> str:
    """The message for these checkpoints, oldest first. `message` replaces the template. `prompts`
    are the user's messages during that work. Ends with exactly one line feed."""
    given = [c.intent.reasoning for c in with_best_reasons(checkpoints)]
    if not has_own_reasons(checkpoints):
        given = list(prompts) or [_subject_of(reason) for reason in given]
    reasons = list(dict.fromkeys(text for text in map(clean_text, given) if text.strip()))
    subject = one_line(reasons[-1]) if reasons else "Accept work"
    if message is not None:
        text = clean_text(message)
    else:
        values = {
            "subject": subject,
            "reasons": _listed(reasons) if reasons != [subject] else "",
            "checkpoints": "\n".join(
                f"- {short(c.id)} {c.name or ''}".rstrip() for c in checkpoints
            ),
            "session": checkpoints[-1].session_id if checkpoints else "",
            "goals": ", ".join(
                dict.fromkeys(c.intent.goal_id for c in checkpoints if c.intent.goal_id)
            ),
        }
        text = _PLACEHOLDER.sub(lambda found: clean_text(values[found[1]]), template)
    text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
    trailers = "\n".join(f"Co-authored-by: {require_co_author(name)}" for name in co_authors)
    return f"{text}\n\n{trailers}\n" if trailers else f"{text}\n"


def with_best_reasons(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints with the most telling reasons: manual ones, else those before messages, else
    all. Records of restores say nothing about the work."""
    own = [c for c in checkpoints if not c.kind.is_record]
    said = [c for c in own if c.kind not in AUTOMATIC_KINDS]
    return said or [c for c in own if c.kind is Kind.MESSAGE] or own


def has_own_reasons(checkpoints: Sequence[Checkpoint]) -> bool:
    """Whether a person or an agent gave a reason for one of them."""
    return any(not c.kind.is_record and c.kind not in AUTOMATIC_KINDS for c in checkpoints)


def _subject_of(reason: str) -> str:
    """The subject of an automatic reason: `fix it` in `Before user message: fix it`."""
    return _MOMENT.sub("", reason, count=1)


def require_template(text: str) -> str:
    """Validate a template; `ValueError` names an unknown placeholder."""
    unknown = [name for name in _PLACEHOLDER.findall(text) if name not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise ValueError(f"unknown placeholder {{{unknown[0]}}}; placeholders: {known}")
    if not text.strip():
        raise ValueError("a commit needs a message")
    return text


def require_co_author(text: str) -> str:
    name = clean_text(text).strip()
    if not _CO_AUTHOR.match(name):
        raise UsageError(
            f"{text!r:.80} is not a valid co-author",
            hint='write it as "Ada Lovelace <ada@example.org>"',
        )
    return name


def clean_text(text: str) -> str:
    """Replace control characters, which a terminal would interpret or git would refuse."""
    return _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str, length: int = _SUBJECT_LENGTH) -> str:
    """The first line, shortened; never empty."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "(no reason given)")
    line = line.replace("\t", " ")
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def without_comments(text: str, comment: str) -> str:
    """The text with comment lines indented, so that git's editor does not drop them."""
    lines = text.split("\n")
    return "\n".join(f" {line}" if comment and line.startswith(comment) else line for line in lines)


def _listed(reasons: Sequence[str]) -> str:
    shown = reasons if len(reasons) <= _MOST_REASONS else reasons[-_MOST_REASONS:]
    lines = [_item(reason) for reason in shown]
    if len(shown) < len(reasons):
        lines.insert(0, f"- ({len(reasons) - len(shown)} earlier reasons)")
    return "\n".join(lines)


def _item(reason: str) -> str:
    text = reason.strip()
    if len(text) > _LONGEST_REASON:
        text = text[: _LONGEST_REASON - 1] + "…"
    paragraphs = [
        textwrap.fill(line, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
        if line.strip()
    ]
    return "- " + "\n".join(paragraphs).replace("\n", "\n  ")


UNDO = "git reset --soft HEAD~1"
UNDO_FIRST = "git update-ref -d HEAD"


class LeftOut(StrEnum):
    """Why a changed path is not in the commit."""

    IGNORED = "ignored by git"
    NESTED = "in another repository or submodule"
    NAME = "a name that git does not accept"


@dataclass(frozen=True, slots=True)
class CommitPath:
    """One path of the commit, relative to the top of the repository. `status` is A, M, D or T."""

    path: bytes
    status: str


@dataclass(frozen=True, slots=True)
class PathLeftOut:
    path: bytes
    reason: LeftOut


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that prevents the commit, and how to resolve it."""

    reason: str
    way_out: str


@dataclass(frozen=True, slots=True)
class AcceptPlan:
    """`head` is the branch's commit, None if it has none yet."""

    branch: bytes | None
    head: str | None
    paths: tuple[CommitPath, ...] = ()
    left_out: tuple[PathLeftOut, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()

    def require_clear(self) -> None:
        """Raise `Refused` if there is an obstacle."""
        if self.obstacles:
            first = self.obstacles[0]
            raise Refused(first.reason, hint=first.way_out)


@dataclass(frozen=True, slots=True)
class AcceptOutcome:
    """The commit, its message as recorded, and the plan it followed. `commit` is None for a
    preview."""

    commit: str | None
    message: str
    plan: AcceptPlan
    warnings: tuple[str, ...] = ()

    @property
    def undo(self) -> str:
        """The git command that undoes the commit and leaves every file as it is."""
        return UNDO_FIRST if self.plan.head is None else UNDO
