"""A line that has to fit on one row of a terminal.

    all parts if they fit → without the optional ones, last first → the elastic part cut short, in
    its middle, because both its beginning and its end tell what it is about

In a pipe nothing is left out and nothing is cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.interfaces.cli.cells import cell_width, pieces
from holdfast.interfaces.cli.terminal import Terminal, unpainted
from holdfast.values.classes import dataclass, replace

_LEAST = 8
"""So many cells are left of what is cut short."""


@dataclass(frozen=True, slots=True)
class Part:
    """Text in one colour, or in none. `optional` parts go where there is no room for them; of what
    still does not fit, the `elastic` part is cut."""

    text: str
    codes: tuple[str, ...] = ()
    optional: bool = False
    elastic: bool = False


def show_fitted(terminal: Terminal, parts: Sequence[Part]) -> None:
    shown = fitted(parts, terminal.width) if terminal.for_people else list(parts)
    terminal.line("".join(terminal.paint(part.text, *part.codes) for part in shown))


def fitted(parts: Sequence[Part], width: int) -> list[Part]:
    left = list(parts)
    while _width(left) > width and (optional := [part for part in left if part.optional]):
        left.remove(optional[-1])
    beyond = _width(left) - width
    if beyond <= 0:
        return left
    return [
        replace(part, text=cut_middle(part.text, max(cell_width(part.text) - beyond, _LEAST)))
        if part.elastic
        else part
        for part in left
    ]


def cut(text: str, cells: int) -> str:
    """The text in at most so many cells, with a sign that there was more."""
    if cell_width(text) <= cells:
        return text
    return next(pieces(text, cells - 1)).rstrip() + "…"


def cut_middle(text: str, cells: int) -> str:
    """The beginning and the end of the text, the beginning longer, in at most so many cells."""
    if cell_width(text) <= cells:
        return text
    end = ""
    for character in reversed(text):
        if cell_width(character + end) > (cells - 1) // 3:
            break
        end = character + end
    return cut(text, cells - cell_width(end)) + end.lstrip()


def _width(parts: Sequence[Part]) -> int:
    return sum(cell_width(unpainted(part.text)) for part in parts)
