"""Text measured in terminal cells: wrapped, cut, and fitted on one row.

Wide characters take two cells, combining marks none. A row is fitted in this order:

    all parts, if they fit
    → without the optional ones, last first
    → with the elastic part shortened in its middle, because both its ends are informative

In a pipe nothing is left out or cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unicodedata import category, east_asian_width

from holdfast.interfaces.cli.terminal import Terminal, unpainted
from holdfast.values.classes import dataclass, replace

_JOINED = ("Mn", "Me", "Cf")
_LEAST = 8
"""The minimum number of cells that remain of a shortened part."""


@dataclass(frozen=True, slots=True)
class Part:
    """Text in one colour or none. `optional` parts are dropped if there is no room. If that is not
    enough, the `elastic` part is cut."""

    text: str
    codes: tuple[str, ...] = ()
    optional: bool = False
    elastic: bool = False


def show_fitted(terminal: Terminal, parts: Sequence[Part]) -> None:
    shown = fit_to_width(parts, terminal.width) if terminal.for_people else list(parts)
    terminal.line("".join(terminal.paint(part.text, *part.codes) for part in shown))


def fit_to_width(parts: Sequence[Part], width: int) -> list[Part]:
    left = list(parts)
    while _parts_width(left) > width and (optional := [part for part in left if part.optional]):
        left.remove(optional[-1])
    beyond = _parts_width(left) - width
    if beyond <= 0:
        return left
    return [
        replace(part, text=cut_middle(part.text, max(cell_width(part.text) - beyond, _LEAST)))
        if part.elastic
        else part
        for part in left
    ]


def cut(text: str, cells: int) -> str:
    """As much of the text as fits into so many cells, with an ellipsis if it is cut."""
    if cell_width(text) <= cells:
        return text
    mark = "…" if cells > 1 else ""
    start = next(pieces(text, cells - len(mark))).rstrip() if cells > 0 else ""
    # A single character can be wider than the whole room.
    return start + mark if cell_width(start + mark) <= cells else ""


def cut_middle(text: str, cells: int) -> str:
    """The beginning and the end of the text in at most so many cells; the beginning is longer."""
    if cell_width(text) <= cells:
        return text
    end = ""
    for character in reversed(text):
        if cell_width(character + end) > (cells - 1) // 3:
            break
        end = character + end
    return cut(text, cells - cell_width(end)) + end.lstrip()


def cell_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text padded to that many cells; `right` aligns it to the right."""
    space = " " * max(width - cell_width(text), 0)
    return space + text if right else text + space


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most that many cells, broken between words if possible."""
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
    """The first parts, as many as fit on a line."""
    line = ""
    for part in parts:
        longer = f"{line}{gap}{part}" if line else part
        if cell_width(longer) > width:
            break
        line = longer
    return line


def pieces(word: str, width: int) -> Iterator[str]:
    """A word too long for a line, cut into pieces."""
    piece, used = "", 0
    for character in word:
        needed = _width(character)
        if piece and used + needed > width:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + needed
    yield piece


def _parts_width(parts: Sequence[Part]) -> int:
    return sum(cell_width(unpainted(part.text)) for part in parts)


def _width(character: str) -> int:
    if category(character) in _JOINED:
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def wrap_sentence(text: str, width: int, hang: int | None = None) -> str:
    """The text in rows of at most so many cells, broken between words. Longer words, such as paths,
    are kept whole, and so are commands that fit a row."""
    bare = unpainted(text)
    indent = len(bare) - len(bare.lstrip(" ")) + 2 if hang is None else hang
    rows, used = [""], 0
    for unit in _units(text, width - indent):
        needed = cell_width(unpainted(unit))
        if used > indent and used + needed > width and unit.strip():
            rows[-1] = rows[-1].rstrip(" ")
            rows.append(" " * indent)
            used = indent
        rows[-1] += unit
        used += needed + 1
        rows[-1] += " "
    return "\n".join([*rows[:-1], rows[-1][:-1]])


def _units(text: str, room: int) -> Iterator[str]:
    """Words; those of a command stay together up to the next punctuation mark."""
    words = text.split(" ")
    while words:
        length = 1
        if unpainted(words[0]).lstrip("(") == "holdfast":
            ends = (n for n, word in enumerate(words, 1) if unpainted(word)[-1:] in (*";,.)", ""))
            length = next(ends, len(words))
            if len(unpainted(" ".join(words[:length]))) > room:
                length = 1
        yield " ".join(words[:length])
        del words[:length]
