"""Picking the moment to go back to, at a terminal: `restore` without a reference.

draw the list, or the difference of the chosen one → wait for a key → move, search, look or choose

Each row is one saved state, of whichever session, and choosing it restores exactly that state. Its
changes are planned as a restore would, when the row is first seen. The first one that would change
something is preselected. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import Digest, SessionId, short
from holdfast.domain.sessions import Session
from holdfast.engine.engine import Engine
from holdfast.engine.restore.planning import make_plan
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.withheld import WITHHELD, IgnoredContent
from holdfast.interfaces.cli.cells import padded
from holdfast.interfaces.cli.checkpoint_view import title
from holdfast.interfaces.cli.diff_views.difference import Difference
from holdfast.interfaces.cli.diff_views.unified import COLOURS, reading_lines
from holdfast.interfaces.cli.log_table import session_mark
from holdfast.interfaces.cli.replay_view.screen import GONE, RESIZED, Screen, ScreenLine, cut
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, RED, Terminal, visible, visible_line
from holdfast.interfaces.cli.wording import ago, count

_MOST_LINES = 20_000
_TAB = 4
_FRAME_LINES = 3
_WHEN, _CHANGE, _WHO = 16, 9, 16
_NARROW, _NARROW_WHO = 100, 10
_MOST_TRIED = 50
_ENTER = ("\r", "\n")
_ERASE = ("\x7f", "\b")
_CLEAR = "\x15"
_NOW = "as now"
_LIST_HELP = "enter restore   space diff   type to search   ↑↓ move   esc leave"
_DIFF_HELP = "enter restore   space back to the list   ↑↓ scroll   esc leave"


class MomentPicker:
    """The moments, newest first, and which of them somebody is looking at."""

    def __init__(
        self,
        engine: Engine,
        scan: Scan,
        moments: Sequence[Checkpoint],
        sessions: Mapping[SessionId, Session],
        terminal: Terminal,
        screen: Screen,
        now: datetime,
    ) -> None:
        self._engine = engine
        self._scan = scan
        self._moments = moments
        self._sessions = sessions
        self._terminal = terminal
        self._screen = screen
        self._now = now
        self._ignored = IgnoredContent(engine.vault)
        self._files: dict[Digest, frozenset[bytes] | None] = {}
        self._typed = ""
        self._at: int | None = None
        self._top = 0
        self._page: list[ScreenLine] | None = None
        self._texts = [self._text(one).casefold() for one in moments]
        self._when_width = self._widest((ago(one.created_at, now) for one in moments), _WHEN)
        self._who_width = self._widest(map(self._who, moments), _WHO)

    def pick(self) -> Checkpoint | None:
        """The moment that was chosen; None when somebody left without choosing."""
        with self._screen.taken_over():
            while True:
                shown = self._shown()
                at = self._first_that_changes(shown) if self._at is None else self._at
                self._at = max(min(at, len(shown) - 1), 0)
                self._draw(shown, self._at)
                key = self._screen.next_key()
                if key in (GONE, "escape") or (key == "q" and not self._typed):
                    return None
                if key in _ENTER and shown:
                    return shown[self._at]
                if key != RESIZED:
                    self._act(key, shown, self._at)

    def _act(self, key: str, shown: Sequence[Checkpoint], at: int) -> None:
        if key == " ":
            turned = self._page is None and bool(shown)
            self._page = self._difference(shown[at]) if turned else None
            self._top = 0
        elif self._page is not None:
            self._top += self._by(key)
        elif key in _ERASE:
            self._search(self._typed[:-1])
        elif key == _CLEAR:
            self._search("")
        elif len(key) == 1 and key.isprintable():
            self._search(self._typed + key)
        else:
            self._at = at + self._by(key)

    def _search(self, typed: str) -> None:
        self._typed, self._at = typed, None

    def _first_that_changes(self, shown: Sequence[Checkpoint]) -> int:
        """Not the state that is there already, such as what somebody wants to get away from."""
        tried = enumerate(shown[:_MOST_TRIED])
        return next((at for at, one in tried if self._would_change(one) != _NOW), 0)

    def _by(self, key: str) -> int:
        whole = max(self._body_lines() - 1, 1)
        steps = {"up": -1, "down": 1, "page up": -whole, "page down": whole}
        return steps.get(key, 0) or {"home": -_MOST_LINES, "end": _MOST_LINES}.get(key, 0)

    def _shown(self) -> list[Checkpoint]:
        wanted = self._typed.casefold()
        pairs = zip(self._moments, self._texts, strict=True)
        return [one for one, text in pairs if wanted in text]

    def _text(self, one: Checkpoint) -> str:
        """What can be searched for: who, why, the name and the id."""
        return f"{self._who(one)} {one.kind.value} {one.name or ''} {title(one)} {one.id}"

    def _who(self, one: Checkpoint) -> str:
        session = self._sessions[one.session_id]
        return session_mark(session) if session.title or not session.agent else session.agent

    @staticmethod
    def _widest(texts: Iterable[str], most: int) -> int:
        return min(max(map(len, texts), default=0), most)

    def _body_lines(self) -> int:
        return max(self._screen.size[1] - _FRAME_LINES, 1)

    def _draw(self, shown: Sequence[Checkpoint], at: int) -> None:
        columns, _ = self._screen.size
        body = self._body_lines()
        lines = self._rows(shown, at, columns, body) if self._page is None else self._lines(body)
        lines += [ScreenLine("")] * (body - len(lines))
        heading = "Restore which moment?" + (f"  search: {self._typed}" if self._typed else "")
        help_line = _LIST_HELP if self._page is None else _DIFF_HELP
        place = f"{at + 1} of {len(shown):,}" if shown else "nothing matches"
        self._screen.draw(
            [ScreenLine(heading, (BOLD,)), *lines, ScreenLine(place, (DIM,)), ScreenLine(help_line)]
        )

    def _rows(
        self, shown: Sequence[Checkpoint], at: int, columns: int, body: int
    ) -> list[ScreenLine]:
        first = max(min(at - body // 2, len(shown) - body), 0)
        return [
            self._row(one, first + number == at, columns)
            for number, one in enumerate(shown[first : first + body])
        ]

    def _row(self, one: Checkpoint, is_chosen: bool, columns: int) -> ScreenLine:
        would = self._would_change(one)
        name = f"[{visible(one.name)}] " if one.name else ""
        wide = self._when_width
        who_width = min(self._who_width, _NARROW_WHO) if columns < _NARROW else self._who_width
        when = padded(cut(ago(one.created_at, self._now), wide), wide)
        who = padded(cut(self._who(one), who_width), who_width)
        text = (
            f"{'▶' if is_chosen else ' '} {when} {padded(would, _CHANGE, right=True)}  {who}  "
            f"{name}{title(one)}"
        )
        codes: tuple[str, ...] = (BOLD, CYAN) if is_chosen else (DIM,) if would == _NOW else ()
        return ScreenLine(cut(text, columns), codes)

    def _would_change(self, one: Checkpoint) -> str:
        """How many files restoring it would change now."""
        files = self._affected(one)
        if files is None:
            return "damaged"
        return count(len(files), "file") if files else _NOW

    def _affected(self, one: Checkpoint) -> frozenset[bytes] | None:
        """The files that restoring it would change; None where that cannot be read."""
        if one.tree not in self._files:
            try:
                request = self._engine.restore_request(None, one.id)
                plan = make_plan(self._engine.vault, self._scan, request)
                self._files[one.tree] = frozenset(plan.affected_files)
            except HoldfastError:
                self._files[one.tree] = None
        return self._files[one.tree]

    def _difference(self, one: Checkpoint) -> list[ScreenLine]:
        """As `diff` shows it, of the files that a restore would change. The content of ignored
        files is not shown."""
        lines = [
            ScreenLine(f"{short(one.id)} {title(one)}", (DIM,)),
            ScreenLine("Restoring adds the lines marked - and removes the lines marked +", (DIM,)),
        ]
        try:
            affected = self._affected(one) or frozenset()
            changes = []
            for change in self._engine.changes_in(self._scan, one, renames=False):
                if change.path not in affected:
                    continue
                if self._ignored.rule(change.path) is None:
                    changes.append(change)
                else:
                    name = self._terminal.path(change.path)
                    lines.append(ScreenLine(f"{name}: {WITHHELD}", (DIM,)))
            if not affected:
                return [*lines, ScreenLine("the workspace is as it was at this moment", (DIM,))]
            shown = Difference(self._engine.vault, one, None, changes)
            for line in islice(reading_lines(self._terminal, shown), _MOST_LINES):
                text = visible_line(line.data).expandtabs(_TAB)
                lines.append(ScreenLine(text, COLOURS[line.style]))
        except HoldfastError as error:
            lines.append(ScreenLine(f"damaged: {visible(error.message)}", (RED,)))
        return lines

    def _lines(self, body: int) -> list[ScreenLine]:
        page = self._page or []
        self._top = max(min(self._top, len(page) - body), 0)
        return list(page[self._top : self._top + body])
