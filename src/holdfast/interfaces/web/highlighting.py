"""Syntax colours: for each line, pairs of a short class name and a length.

The page has a style for each class. Long code, and code in an unknown language, has no colours.
"""

from __future__ import annotations

from collections.abc import Iterable

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from holdfast.api.views.pages import DiffPageView, FileView, PagedHunkView

Colours = list[list[list[str | int]]]
_MOST_CHARACTERS = 200_000
_LONGEST_LINE = 2_000


def colour_diff(page: DiffPageView) -> None:
    """Add colours to the hunks of a page."""
    room = _MOST_CHARACTERS
    for file in page["files"]:
        lexer = _lexer(file["path"])
        for hunk in file["hunks"] if lexer is not None else ():
            room -= sum(map(len, hunk["lines"]))
            if room < 0 or lexer is None:
                return
            hunk["colours"] = _of_hunk(lexer, hunk)


def colour_file(view: FileView) -> None:
    """Add colours to a piece of a text file."""
    lexer = _lexer(view["path"])
    if lexer is None or view["encoding"] != "utf-8" or len(view["content"]) > _MOST_CHARACTERS:
        return
    view["colours"] = _of_lines(lexer, view["content"].split("\n"))


def _lexer(path: str) -> Lexer | None:
    name = path.rpartition("/")[2].encode("utf-8", "replace").decode()
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _of_hunk(lexer: Lexer, hunk: PagedHunkView) -> Colours:
    """Old and new lines are coloured as separate texts, because a string opened in one is not
    closed in the other."""
    colours: Colours = [[] for _ in hunk["lines"]]
    for marks in (" -", " +"):
        places = [at for at, line in enumerate(hunk["lines"]) if line[:1] in marks]
        lines = [hunk["lines"][at][1:] for at in places]
        for at, found in zip(places, _of_lines(lexer, lines), strict=True):
            colours[at] = found
    return colours


def _of_lines(lexer: Lexer, lines: Iterable[str]) -> Colours:
    texts = ["" if len(line) > _LONGEST_LINE else line for line in lines]
    colours: Colours = [[]]
    for token, text in lexer.get_tokens("\n".join(texts)):
        name = STANDARD_TYPES.get(token, "")
        for number, part in enumerate(text.split("\n")):
            if number:
                colours.append([])
            if part:
                colours[-1].append([name, len(part)])
    while len(colours) < len(texts):
        colours.append([])
    return colours[: len(texts)]
