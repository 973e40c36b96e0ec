"""The interactive view of a replay: one step at a time, on pages that keys turn and scroll.

    draw position, page and scroll → wait for a key → change one of the three

Each page is made from the step alone. Damage is shown as a line on the page, and the other steps
can still be viewed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import short
from holdfast.domain.story import Message
from holdfast.domain.tool_calls import call_words
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.checkpoint_view import confidence_colour, given_confidence
from holdfast.interfaces.cli.diff_view import changed_path, notes
from holdfast.interfaces.cli.screen import (
    GONE,
    MOST_LINES,
    RESIZED,
    Screen,
    ScreenLine,
    difference_lines,
)
from holdfast.interfaces.cli.terminal import (
    BLUE,
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Terminal,
    visible,
    visible_bytes,
)
from holdfast.interfaces.cli.text_layout import fitting_words, wrapped
from holdfast.interfaces.cli.wording import ago, count, percent

if TYPE_CHECKING:
    from holdfast.api.diffs import Diffs
    from holdfast.api.history import Replay

_LONGEST_LINE = 2_000
_MOST_MESSAGES = 200
_CHANGE_COLOURS = {"added": GREEN, "removed": RED, "modified": YELLOW, "renamed": CYAN}
_ROLE_COLOURS = {"user": CYAN, "assistant": GREEN}

KEYS = (
    ("n →", "next step"),
    ("p ←", "previous step"),
    ("g G", "first and last step"),
    ("d", "what this step changed, line by line"),
    ("f", "all files of this state"),
    ("m", "the conversation so far"),
    ("↑ ↓", "scroll by a line"),
    ("space b", "scroll by a page"),
    ("esc", "back to the step itself"),
    ("?", "this page"),
    ("q", "quit"),
)

Page = Callable[["Pages", int], Iterator[ScreenLine]]
_FRAME_LINES = 3
"""The heading, the position and the help line."""
# The most useful come first; keys that do not fit are not shown.
_HELP = ("q quit", "n next", "p previous", "d diff", "f files", "m messages", "? help", "g/G ends")
_PAGE_KEYS = {"d": "diff", "f": "files", "m": "messages", "?": "help"}


class Pages:
    """The pages of a replay step."""

    def __init__(self, diffs: Diffs, replay: Replay, terminal: Terminal, now: datetime) -> None:
        self._diffs = diffs
        self._replay = replay
        self._terminal = terminal
        self._now = now

    def lines(self, name: str, width: int) -> list[ScreenLine]:
        """A page, up to a limit that is enough for scrolling."""
        found: list[ScreenLine] = []
        try:
            for line in islice(PAGES[name](self, max(width, 1)), MOST_LINES):
                found.append(line._replace(text=line.text[:_LONGEST_LINE]))
            if len(found) == MOST_LINES:
                found.append(ScreenLine("… more, not shown here", (DIM,)))
        except HoldfastError as error:
            found += _damage_lines(error, width)
        return found

    def heading(self) -> ScreenLine:
        place = f"{self._replay.position + 1}/{len(self._replay.steps)}"
        try:
            step = self._replay.step
        except HoldfastError:
            return ScreenLine(f" {place}  cannot be read ", ("7",))
        name = f" {visible(step.checkpoint.name)}" if step.checkpoint.name else ""
        what = f"{step.action.value} {short(step.checkpoint.id)}{name}"
        return ScreenLine(f" {place}  {what} ", ("7",))

    def overview(self, width: int) -> Iterator[ScreenLine]:
        found = self._replay.step.checkpoint
        yield from self._facts(found)
        yield ScreenLine("")
        for text in found.intent.reasoning.splitlines() or [""]:
            for line in wrapped(visible(text), width):
                yield ScreenLine(line, (BOLD,))
        for call in found.intent.tool_calls:
            yield ScreenLine(f"tool {visible(call_words(call))}", (DIM,))
        yield ScreenLine("")
        # Separately: if one is damaged, the other is still shown.
        for part in (self._components, self._changed_paths):
            try:
                yield from part()
            except HoldfastError as error:
                yield from _damage_lines(error, width)

    def _components(self) -> Iterator[ScreenLine]:
        for name, said in self._replay.components():
            yield ScreenLine(f"{visible(name)}: {visible(said)}", (BLUE,))

    def _facts(self, found: Checkpoint) -> Iterator[ScreenLine]:
        intent, state = found.intent, self._replay.agent_state()
        yield ScreenLine(f"{ago(found.created_at, self._now)}, {found.kind.value}, {state.round}")
        if (sure := given_confidence(found.kind, intent.confidence)) is not None:
            yield ScreenLine(f"● {percent(sure)} sure", (confidence_colour(sure),))
        said = [("goal", intent.goal_id), ("task", intent.task_id), ("tool use", state.tool_use_id)]
        said.append(("tags", ", ".join(intent.tags)))
        if state.message_index is not None:
            said.append(("message", str(state.message_index + 1)))
        for label, value in said:
            if value:
                yield ScreenLine(f"{label} {visible(value)}")
        if found.partial:
            yield ScreenLine("partial: some paths or components could not be saved", (YELLOW,))

    def _changed_paths(self) -> Iterator[ScreenLine]:
        changes = self._replay.changes()
        before = self._replay.step.before
        since = f" since {short(before.id)}" if before is not None else ""
        yield ScreenLine(f"{count(len(changes), 'path')} changed{since}", (DIM,))
        for change in changes:
            said = f" ({', '.join(notes(change))})" if notes(change) else ""
            text = f"{change.type.value:<9} {changed_path(self._terminal, change)}{said}"
            yield ScreenLine(text, (_CHANGE_COLOURS[change.type.value],))

    def difference(self, width: int) -> Iterator[ScreenLine]:
        step = self._replay.step
        changes = self._replay.changes()
        if not changes:
            yield ScreenLine("nothing changed in this step", (DIM,))
        shown = self._diffs.of(step.before, step.checkpoint, changes)
        yield from difference_lines(self._terminal, shown)

    def files(self, width: int) -> Iterator[ScreenLine]:
        found = self._replay.step.checkpoint
        yield ScreenLine(f"{count(found.files, 'file')} in this state", (DIM,))
        for path, entry in self._replay.entries():
            name = visible_bytes(path)
            if isinstance(entry, DirectoryEntry):
                yield ScreenLine(f"{entry.mode:04o} {'-':>12} {name}/", (BLUE,))
            elif isinstance(entry, SymlinkEntry):
                target = visible_bytes(entry.target)
                yield ScreenLine(f"link {'-':>12} {name} -> {target}", (CYAN,))
            elif isinstance(entry, FileEntry):
                yield ScreenLine(f"{entry.mode:04o} {entry.size:>12} {name}")

    def messages(self, width: int) -> Iterator[ScreenLine]:
        messages = self._replay.messages(newest=_MOST_MESSAGES)
        if not messages:
            yield ScreenLine("no messages for this step", (DIM,))
        elif messages[0].index:
            yield ScreenLine(f"… {count(messages[0].index, 'earlier message')}", (DIM,))
        for message in messages:
            yield from self._message(message, width)

    def _message(self, message: Message, width: int) -> Iterator[ScreenLine]:
        new = message.index >= self._replay.step.first_message
        gone = message.rolled_back_by is not None
        marks = (", new in this step" if new else "") + (", rolled back" if gone else "")
        head = f"{message.index + 1} {message.role.value}{marks}"
        colour = DIM if gone else _ROLE_COLOURS.get(message.role.value, YELLOW)
        yield ScreenLine(head, (colour,))
        for text in message.content.splitlines():
            for line in wrapped(visible(text), max(width - 2, 1)):
                yield ScreenLine(f"  {line}", (DIM,) if gone else ())

    def help(self, width: int) -> Iterator[ScreenLine]:
        yield ScreenLine("Keys", (BOLD,))
        for keys, meaning in KEYS:
            yield ScreenLine(f"  {keys:<8} {meaning}")
        yield ScreenLine("")
        for line in wrapped("Replay never changes the workspace.", width):
            yield ScreenLine(line, (DIM,))


PAGES: dict[str, Page] = {
    "step": Pages.overview,
    "diff": Pages.difference,
    "files": Pages.files,
    "messages": Pages.messages,
    "help": Pages.help,
}


def _damage_lines(error: HoldfastError, width: int) -> Iterator[ScreenLine]:
    for line in wrapped(f"damaged: {visible(error.message)}", width):
        yield ScreenLine(line, (BOLD, RED))
    if error.hint:
        for line in wrapped(visible(error.hint), width):
            yield ScreenLine(line)
    for line in wrapped("the other steps can still be shown", width):
        yield ScreenLine(line, (DIM,))


class Browser:
    """The current step and page."""

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
        """Run until the user quits or the terminal is gone."""
        with self._screen.full_screen():
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
        with contextlib.suppress(HoldfastError):  # the step is unreadable; its page says so
            self._moves[key]()
        if self._replay.position != before:
            self._turn_to(self._page)
        elif before == 0 and key in ("p", "left", "g"):
            self._note = "this is the first step"
        else:
            self._note = "this is the last step"

    def _turn_to(self, page: str) -> None:
        """A conversation opens at its end, every other page at the top."""
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
        # With hardly any room, the help line is dropped last.
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
