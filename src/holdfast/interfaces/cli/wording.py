"""Numbers, sizes and times in words."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.domain.wording import count_words as count
from holdfast.domain.wording import iso
from holdfast.domain.wording import size_words as size
from holdfast.interfaces.cli.terminal import Terminal, visible

__all__ = [
    "ago",
    "count",
    "duration",
    "first_line",
    "headline",
    "iso",
    "moment",
    "percent",
    "shortened",
    "size",
    "when_words",
]

_STEPS = (
    (60, 1, "second"),
    (3600, 60, "minute"),
    (86400, 3600, "hour"),
    (14 * 86400, 86400, "day"),
)


def duration(elapsed_ms: float) -> str:
    return f"{elapsed_ms:.0f} ms" if elapsed_ms < 1000 else f"{elapsed_ms / 1000:.1f} s"


def moment(at_ns: int) -> datetime:
    return datetime.fromtimestamp(at_ns / 1e9, tz=UTC)


def when_words(terminal: Terminal, at: datetime, now: datetime) -> str:
    """A relative time for people; the exact time in a pipe."""
    return ago(at, now) if terminal.for_people else iso(at)


def ago(moment: datetime, now: datetime) -> str:
    """A rough relative time; the date if that is clearer, or if clocks disagree."""
    seconds = (now - moment).total_seconds()
    if -5 <= seconds < 5:
        return "just now"
    for limit, unit_s, noun in _STEPS:
        if 0 <= seconds < limit:
            return f"{count(int(seconds // unit_s), noun)} ago"
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def percent(share: float) -> str:
    """A non-zero share is never shown as zero."""
    return "<1%" if 0 < share < 0.005 else f"{share * 100:.0f}%"


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else ""


def headline(text: str, length: int | None = None) -> str:
    """The first line, without control characters, in at most that many characters."""
    line = first_line(text)
    return visible(line if length is None else shortened(line, length))
