"""Text measured in the cells of a terminal: wide characters take two, combining marks none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from unicodedata import category, east_asian_width

_JOINED = ("Mn", "Me", "Cf")


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text in that many cells; `right` puts it at their end."""
    space = " " * max(width - cell_width(text), 0)
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most that many cells, broken between words where that is possible."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        needed = cell_width(word)
        if line and used + 1 + needed <= width:
            line, used = f"{line} {word}", used + 1 + needed
            continue
        if line:
            lines.append(line)
        *full, line = pieces(word, width)
        lines += full
        used = cell_width(line)
    return [*lines, line]


def fitting_words(parts: Iterable[str], width: int, gap: str = "   ") -> str:
    """The first of these parts, as many as fit on a line."""
    line = ""
    for part in parts:
        longer = f"{line}{gap}{part}" if line else part
        if cell_width(longer) > width:
            break
        line = longer
    return line


def pieces(word: str, width: int) -> Iterator[str]:
    """A word that is too long for a line, cut where it has to be."""
    piece, used = "", 0
    for character in word:
        needed = _width(character)
        if piece and used + needed > width:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + needed
    yield piece


def _width(character: str) -> int:
    if category(character) in _JOINED:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
