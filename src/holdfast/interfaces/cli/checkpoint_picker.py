"""An interactive checkpoint picker for a terminal: `restore` without a reference.

    draw the list, or one checkpoint's differences → wait for a key → move, search, view or choose

Each row is a saved state of any session, and choosing it restores exactly that state. Its changes
are planned as for a restore when the row first becomes visible. That is slow in a large workspace,
so keys never wait for it. The first row that would change something is preselected. Nothing is
changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from time import monotonic

from holdfast.api.restores import PresentState
from holdfast.api.workspace import Workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import CheckpointId, Digest, SessionId, short
from holdfast.domain.sessions import Session
from holdfast.interfaces.cli.checkpoint_view import title
from holdfast.interfaces.cli.log_table import session_mark
from holdfast.interfaces.cli.screen import (
    GONE,
    MOST_LINES,
    RESIZED,
    Screen,
    ScreenLine,
    difference_lines,
)
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, RED, Terminal, visible
from holdfast.interfaces.cli.text_layout import cell_width, cut, fitting_words, padded
from holdfast.interfaces.cli.wording import ago, count

_FRAME_LINES = 3
_WHEN, _CHANGE, _WHO = 16, 11, 16
_NARROW, _NARROW_WHO = 100, 10
_TOO_NARROW_FOR_WHO = 60
_MOST_TRIED = 50
_REDRAW_S = 0.2
_ENTER = ("\r", "\n")
_ERASE = ("\x7f", "\b")
_CLEAR = "\x15"
_NOW = "as now"
_UNKNOWN = "…"
_LIST_HELP = ("enter restore", "esc leave", "space diff", "type to search", "↑↓ move")
_DIFF_HELP = ("enter restore", "esc leave", "space back to the list", "↑↓ scroll")


class MomentPicker:
    """The checkpoints, newest first, and the selected one."""

    def __init__(
        self,
        opened: Workspace,
        present: PresentState,
        moments: Sequence[Checkpoint],
        sessions: Mapping[SessionId, Session],
        terminal: Terminal,
        screen: Screen,
        now: datetime,
        *,
        older: int = 0,
    ) -> None:
        """`older` checkpoints are not in the list."""
        self._opened = opened
        self._present = present
        self._moments = moments
        self._sessions = sessions
        self._terminal = terminal
        self._screen = screen
        self._now = now
        self._older = older
        self._files: dict[Digest, frozenset[bytes] | None] = {}
        self._typed = ""
        self._at: int | None = None
        self._top = 0
        self._drawn: CheckpointId | None = None
        self._page: list[ScreenLine] | None = None
        self._unread: Iterator[ScreenLine] = iter(())
        self._texts = [self._text(one).casefold() for one in moments]
        self._when_width = self._widest((ago(one.created_at, now) for one in moments), _WHEN)
        self._who_width = self._widest(map(self._who, moments), _WHO)

    def pick(self) -> Checkpoint | None:
        """The chosen checkpoint; None if the user cancelled."""
        with self._screen.full_screen():
            while True:
                shown = self._shown()
                at = self._first_that_changes(shown) if self._at is None else self._at
                self._at = max(min(at, len(shown) - 1), 0)
                key = self._next_key(shown, self._at)
                if key in (GONE, "escape"):
                    return None
                if key in _ENTER:
                    # A key typed before the screen was drawn would choose a row that the user did
                    # not see.
                    if shown and shown[self._at].id == self._drawn:
                        return shown[self._at]
                elif key != RESIZED:
                    self._act(key, shown, self._at)

    def _next_key(self, shown: Sequence[Checkpoint], at: int) -> str:
        """Draw, and plan visible rows until a key is pressed. While keys are waiting nothing is
        drawn, so that the screen does not lag behind."""
        if self._screen.has_key():
            return self._screen.next_key()
        self._draw(shown, at)
        drawn_at = monotonic()
        first, body = self._window(shown, at)
        seen = [] if self._page is not None else shown[first : first + body]
        unplanned = [one for one in seen if one.tree not in self._files]
        for one in unplanned:
            if self._screen.has_key():
                break
            self._affected(one)
            if one is unplanned[-1] or monotonic() - drawn_at > _REDRAW_S:
                self._draw(shown, at)
                drawn_at = monotonic()
        return self._screen.next_key()

    def _act(self, key: str, shown: Sequence[Checkpoint], at: int) -> None:
        if key == " ":
            turned = self._page is None and bool(shown)
            self._page, self._top = ([] if turned else None), 0
            self._unread = islice(self._difference(shown[at]) if turned else (), MOST_LINES)
        elif self._page is not None:
            self._top += self._steps(key)
        elif key in _ERASE:
            self._search(self._typed[:-1])
        elif key == _CLEAR:
            self._search("")
        elif len(key) == 1 and key.isprintable():
            self._search(self._typed + key)
        else:
            self._at = at + self._steps(key)

    def _search(self, typed: str) -> None:
        self._typed, self._at = typed, None

    def _first_that_changes(self, shown: Sequence[Checkpoint]) -> int:
        """Not the current state, which the user wants to leave. During a search, only planned rows
        count."""
        if self._typed:
            return next((at for at, one in enumerate(shown) if not self._is_known_as_now(one)), 0)
        tried = enumerate(shown[:_MOST_TRIED])
        return next((at for at, one in tried if self._affected(one) != frozenset()), 0)

    def _is_known_as_now(self, one: Checkpoint) -> bool:
        return self._present.is_state_of(one) or self._files.get(one.tree) == frozenset()

    def _steps(self, key: str) -> int:
        whole = max(self._body_lines() - 1, 1)
        steps = {"up": -1, "down": 1, "page up": -whole, "page down": whole}
        return steps.get(key, 0) or {"home": -MOST_LINES, "end": MOST_LINES}.get(key, 0)

    def _shown(self) -> list[Checkpoint]:
        wanted = self._typed.casefold()
        pairs = zip(self._moments, self._texts, strict=True)
        return [one for one, text in pairs if wanted in text]

    def _text(self, one: Checkpoint) -> str:
        """The searchable text: who, why, name and id."""
        return f"{self._who(one)} {one.kind.value} {one.name or ''} {title(one)} {one.id}"

    def _who(self, one: Checkpoint) -> str:
        session = self._sessions[one.session_id]
        return session_mark(session) if session.title or not session.agent else session.agent

    @staticmethod
    def _widest(texts: Iterable[str], most: int) -> int:
        return min(max(map(cell_width, texts), default=0), most)

    def _body_lines(self) -> int:
        return max(self._screen.size[1] - _FRAME_LINES, 1)

    def _draw(self, shown: Sequence[Checkpoint], at: int) -> None:
        columns, _ = self._screen.size
        body = self._body_lines()
        page = self._page
        lines = self._rows(shown, at, columns) if page is None else self._lines(page, body)
        lines += [ScreenLine("")] * (body - len(lines))
        heading = "Which checkpoint do you want to restore?" + (
            f"  search: {self._typed}" if self._typed else ""
        )
        help_line = fitting_words(_LIST_HELP if self._page is None else _DIFF_HELP, columns)
        self._screen.draw(
            [
                ScreenLine(heading, (BOLD,)),
                *lines,
                ScreenLine(self._place(shown, at), (DIM,)),
                ScreenLine(help_line),
            ]
        )
        self._drawn = shown[at].id if shown else None

    def _place(self, shown: Sequence[Checkpoint], at: int) -> str:
        place = f"{at + 1:,} of {len(shown):,}" if shown else "nothing matches"
        if not self._older:
            return place
        older = count(self._older, "older moment")
        return f"{place}; {older} not listed: holdfast {'search' if self._typed else 'log'}"

    def _window(self, shown: Sequence[Checkpoint], at: int) -> tuple[int, int]:
        """The index of the first visible row, and the number of visible rows."""
        body = self._body_lines()
        return max(min(at - body // 2, len(shown) - body), 0), body

    def _rows(self, shown: Sequence[Checkpoint], at: int, columns: int) -> list[ScreenLine]:
        first, body = self._window(shown, at)
        return [
            self._row(one, first + number == at, columns)
            for number, one in enumerate(shown[first : first + body])
        ]

    def _row(self, one: Checkpoint, is_chosen: bool, columns: int) -> ScreenLine:
        would = self._would_change(one)
        name = f"[{visible(one.name)}] " if one.name else ""
        wide = self._when_width
        when = padded(cut(ago(one.created_at, self._now), wide), wide)
        text = (
            f"{'▶' if is_chosen else ' '} {when} {padded(would, _CHANGE, right=True)}  "
            f"{self._who_column(one, columns)}{name}{title(one)}"
        )
        codes: tuple[str, ...] = (BOLD, CYAN) if is_chosen else (DIM,) if would == _NOW else ()
        return ScreenLine(cut(text, columns), codes)

    def _who_column(self, one: Checkpoint, columns: int) -> str:
        """Whose checkpoint it is; left out if the reason needs the room."""
        if columns < _TOO_NARROW_FOR_WHO:
            return ""
        width = min(self._who_width, _NARROW_WHO) if columns < _NARROW else self._who_width
        return padded(cut(self._who(one), width), width) + "  "

    def _would_change(self, one: Checkpoint) -> str:
        """How many files restoring it would change now, if that is known."""
        if one.tree not in self._files:
            return _UNKNOWN
        files = self._files[one.tree]
        if files is None:
            return "damaged"
        return count(len(files), "file") if files else _NOW

    def _affected(self, one: Checkpoint) -> frozenset[bytes] | None:
        """The files that restoring it would change; None if the checkpoint cannot be read."""
        if one.tree not in self._files:
            try:
                self._files[one.tree] = self._present.affected_files(one)
            except HoldfastError:
                self._files[one.tree] = None
        return self._files[one.tree]

    def _difference(self, one: Checkpoint) -> Iterator[ScreenLine]:
        """The files that a restore would change, as `diff` shows them."""
        yield ScreenLine(f"{short(one.id)} {title(one)}", (DIM,))
        yield ScreenLine("Restoring adds the lines marked - and removes the lines marked +", (DIM,))
        try:
            affected = self._affected(one) or frozenset()
            found = self._present.changes(one)
            changes = [change for change in found if change.path in affected]
            if not affected:
                yield ScreenLine("the workspace matches this checkpoint", (DIM,))
            shown = self._opened.diffs.of(one, None, changes)
            yield from difference_lines(self._terminal, shown)
        except HoldfastError as error:
            yield ScreenLine(f"damaged: {visible(error.message)}", (RED,))

    def _lines(self, page: list[ScreenLine], body: int) -> list[ScreenLine]:
        """The visible part of the difference; no more is computed."""
        page += islice(self._unread, max(self._top + body - len(page), 0))
        self._top = max(min(self._top, len(page) - body), 0)
        return page[self._top : self._top + body]
