"""What an automatic checkpoint is called: one line made from the tool and what it was given."""

from __future__ import annotations

import re

from holdfast.domain.masking import masked

DESCRIPTION_MAX_LENGTH = 200
MESSAGE_PREVIEW = 50
BEFORE_MESSAGE = "Before user message"
_SPACE = re.compile(r"\s+")
_MOST_LOOKED_AT = 4_000


def one_line(text: str, most: int) -> str:
    """Printable, on one line, at most so long; `…` tells that there was more."""
    shown = _SPACE.sub(" ", text[:_MOST_LOOKED_AT]).strip()
    shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    if len(shown) <= most and len(text) <= _MOST_LOOKED_AT:
        return shown
    return shown[: most - 1].rstrip() + "…"


def tool_description(
    moment: str, tool: str, subject: str, *, risk: str | None = None, reason: str | None = None
) -> str:
    """Such as `Before Bash: npm install left-pad (risky: rewrites package-lock.json)`."""
    head = f"{moment} {one_line(tool, 40) or 'a tool'}"
    note = ""
    if risk is not None:
        why = one_line(masked(reason), 80) if reason else ""
        note = f" ({risk}: {why})" if why else f" ({risk})"
    room = DESCRIPTION_MAX_LENGTH - len(head) - len(note) - 2
    told = one_line(masked(subject[:_MOST_LOOKED_AT]), room) if subject.strip() else ""
    return f"{head}: {told}{note}" if told else f"{head}{note}"


def message_description(prompt: str) -> str:
    """Such as `Before user message: make the tests pass`, with the first 50 characters of it."""
    told = one_line(masked(prompt[:_MOST_LOOKED_AT]), MESSAGE_PREVIEW)
    return f"{BEFORE_MESSAGE}: {told}" if told else BEFORE_MESSAGE
