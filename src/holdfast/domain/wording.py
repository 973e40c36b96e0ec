"""Sizes, counts, times and remarks as text.

A warning is a sentence. A `Remark` is one that needs no action; interfaces show it without
emphasis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

_MOST_LOOKED_AT = 4_000
_UNITS = ("kB", "MB", "GB", "TB", "PB")


def size_words(size_bytes: int) -> str:
    """Powers of ten, three digits: `999 B`, `1.5 kB`, `12 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in _UNITS:
        value /= 1000
        if value < 999.5 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    raise AssertionError("the last unit takes everything")


def count_words(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `1,200 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """The text on one line, with a question mark for each unprintable character."""
    return "".join(c if c.isprintable() else "?" for c in text)


def one_line(text: str, most: int) -> str:
    """Printable, on one line, with at most `most` characters; `…` marks omitted text."""
    shown = " ".join(text[:_MOST_LOOKED_AT].split())
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    if len(shown) <= most and len(text) <= _MOST_LOOKED_AT:
        return shown
    return shown[: most - 1].rstrip() + "…"


class Remark(str):
    """A warning that needs no action."""

    __slots__ = ()


def reworded(warning: str, change: Callable[[str], str]) -> str:
    """The warning with its text changed; a remark remains a remark."""
    words = change(warning)
    return Remark(words) if isinstance(warning, Remark) else words


def remarks_in(warnings: Iterable[str]) -> list[str]:
    """The remarks among them, as plain text."""
    return [str(warning) for warning in warnings if isinstance(warning, Remark)]


def iso(moment: datetime, timespec: str = "microseconds") -> str:
    """ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat(timespec=timespec)


def iso_from_ns(at_ns: int, timespec: str = "microseconds") -> str:
    """The same for nanoseconds since the epoch."""
    return iso(datetime.fromtimestamp(at_ns / 1e9, tz=UTC), timespec)
