"""The interactive view of a replay: one step at a time, on a page that keys turn and scroll.

draw what the position, the page and the scroll say → wait for a key → change one of the three
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.cli.replay_view.pages import Pages
from holdfast.interfaces.cli.replay_view.screen import GONE, RESIZED, Screen, ScreenLine
from holdfast.interfaces.cli.terminal import DIM
from holdfast.interfaces.cli.text_layout import fitting_words

if TYPE_CHECKING:
    from holdfast.api.history import Replay


_FRAME_LINES = 3
"""The heading, the line that tells where one is, and the help line."""

# The most useful come first: what does not fit is left out.
_HELP = ("q quit", "n next", "p previous", "d diff", "f files", "m messages", "? help", "g/G ends")
_PAGE_KEYS = {"d": "diff", "f": "files", "m": "messages", "?": "help"}


class Browser:
    """Where somebody stands and what they look at."""

    def __init__(self, replay: Replay, pages: Pages, screen: Screen, *, page: str = "step") -> None:
        self._replay = replay
        self._pages = pages
        self._screen = screen
        self._page = page
        self._top = 0
        self._note = ""
        self._known: tuple[int, str, int] | None = None
        self._lines: list[ScreenLine] = []
        self._moves: dict[str, Callable[[], object]] = {
            "n": replay.forward,
            "right": replay.forward,
            "p": replay.back,
            "left": replay.back,
            "g": replay.first,
            "G": replay.last,
        }

    def run(self) -> None:
        """Until somebody quits, or nobody is there any more."""
        with self._screen.taken_over():
            while True:
                self._draw()
                key = self._screen.next_key()
                if key in ("q", GONE):
                    return
                self._act(key)

    def _act(self, key: str) -> None:
        self._note = ""
        if key in self._moves:
            self._move(key)
        elif key in _PAGE_KEYS:
            self._turn_to("step" if self._page == _PAGE_KEYS[key] else _PAGE_KEYS[key])
        elif key == "escape":
            self._turn_to("step")
        elif key != RESIZED:
            self._scroll(key)

    def _move(self, key: str) -> None:
        before = self._replay.position
        with contextlib.suppress(HoldfastError):  # of a step that cannot be read; its page tells
            self._moves[key]()
        if self._replay.position != before:
            self._turn_to(self._page)
        elif before == 0 and key in ("p", "left", "g"):
            self._note = "this is the first step"
        else:
            self._note = "this is the last step"

    def _turn_to(self, page: str) -> None:
        """Of a conversation the end is what matters; everything else is read from the top."""
        self._page, self._top = page, sys.maxsize if page == "messages" else 0

    def _scroll(self, key: str) -> None:
        whole = max(self._body_lines() - 1, 1)
        by = {"up": -1, "k": -1, "down": 1, "j": 1, "\r": 1, "\n": 1}
        by |= {" ": whole, "page down": whole, "b": -whole, "page up": -whole}
        by |= {"home": -len(self._lines), "end": len(self._lines)}
        self._top += by.get(key, 0)

    def _body_lines(self) -> int:
        return max(self._screen.size[1] - _FRAME_LINES, 0)

    def _draw(self) -> None:
        columns, rows = self._screen.size
        known = (self._replay.position, self._page, columns)
        if known != self._known:
            self._lines, self._known = self._pages.lines(self._page, columns), known
        body = self._body_lines()
        self._top = max(min(self._top, len(self._lines) - body), 0)
        shown = self._lines[self._top : self._top + body]
        shown += [ScreenLine("")] * (body - len(shown))
        help_line = fitting_words(_HELP, columns, "  ")
        frame = [self._pages.heading(), *shown, self._place(body), ScreenLine(help_line)]
        # Where there is hardly any room, the help line goes last.
        self._screen.draw(frame[:1] + frame[-1:] if rows < _FRAME_LINES else frame)

    def _place(self, body: int) -> ScreenLine:
        if self._note:
            return ScreenLine(self._note, (DIM,))
        last = min(self._top + body, len(self._lines))
        if len(self._lines) <= body:
            return ScreenLine(self._page, (DIM,))
        return ScreenLine(
            f"{self._page}, lines {self._top + 1}-{last} of {len(self._lines)}", (DIM,)
        )
