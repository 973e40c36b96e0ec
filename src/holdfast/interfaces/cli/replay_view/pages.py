"""The pages of a replay: what there is to see of one step, as lines for a screen.

Each page is made from the step alone. Damage is a line on the page, not the end of the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import short
from holdfast.domain.messages import Message
from holdfast.domain.tool_calls import call_words
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.checkpoint_view import confidence_colour, given_confidence
from holdfast.interfaces.cli.diff_views.difference import notes
from holdfast.interfaces.cli.diff_views.unified import COLOURS, reading_lines
from holdfast.interfaces.cli.replay_view.screen import ScreenLine
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
    visible_line,
)
from holdfast.interfaces.cli.text_layout import wrapped
from holdfast.interfaces.cli.wording import ago, count, percent

if TYPE_CHECKING:
    from holdfast.api.diffs import Diffs
    from holdfast.api.history import Replay


MOST_LINES = 20_000
_LONGEST_LINE = 2_000
_MOST_MESSAGES = 200
_TAB = 4
_CHANGE_COLOURS = {"added": GREEN, "removed": RED, "modified": YELLOW, "renamed": CYAN}
_ROLE_COLOURS = {"user": CYAN, "assistant": GREEN}

KEYS = (
    ("n →", "next step"),
    ("p ←", "previous step"),
    ("g G", "first and last step"),
    ("d", "what this step changed, line by line"),
    ("f", "all files of this state"),
    ("m", "what had been said by then"),
    ("↑ ↓", "scroll by a line"),
    ("space b", "scroll by a page"),
    ("esc", "back to the step itself"),
    ("?", "this page"),
    ("q", "quit"),
)

Page = Callable[["Pages", int], Iterator[ScreenLine]]


class Pages:
    """What can be seen where a replay stands."""

    def __init__(self, diffs: Diffs, replay: Replay, terminal: Terminal, now: datetime) -> None:
        self._diffs = diffs
        self._replay = replay
        self._terminal = terminal
        self._now = now

    def lines(self, name: str, width: int) -> list[ScreenLine]:
        """A page, whole or as far as anybody scrolls."""
        found: list[ScreenLine] = []
        try:
            for line in islice(PAGES[name](self, max(width, 1)), MOST_LINES):
                found.append(line._replace(text=line.text[:_LONGEST_LINE]))
            if len(found) == MOST_LINES:
                found.append(ScreenLine("… and more, which is not shown here", (DIM,)))
        except HoldfastError as error:
            found += _trouble(error, width)
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
        # Each on its own: damage to the one is no reason not to show the other.
        for part in (self._components, self._changed_paths):
            try:
                yield from part()
            except HoldfastError as error:
                yield from _trouble(error, width)

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
            yield ScreenLine("saved in part: some paths could not be read", (YELLOW,))

    def _changed_paths(self) -> Iterator[ScreenLine]:
        changes = self._replay.changes()
        before = self._replay.step.before
        since = f" since {short(before.id)}" if before is not None else ""
        yield ScreenLine(f"{count(len(changes), 'path')} changed{since}", (DIM,))
        for change in changes:
            path = visible_bytes(change.path) + ("/" if change.is_directory else "")
            if change.old_path is not None:
                path = f"{visible_bytes(change.old_path)} → {path}"
            said = f" ({', '.join(notes(change))})" if notes(change) else ""
            text = f"{change.type.value:<9} {path}{said}"
            yield ScreenLine(text, (_CHANGE_COLOURS[change.type.value],))

    def difference(self, width: int) -> Iterator[ScreenLine]:
        step = self._replay.step
        changes = self._replay.changes()
        if not changes:
            yield ScreenLine("nothing changed with this step", (DIM,))
        shown = self._diffs.of(step.before, step.checkpoint, changes)
        for line in reading_lines(self._terminal, shown):
            yield ScreenLine(visible_line(line.data).expandtabs(_TAB), COLOURS[line.style])

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
            yield ScreenLine("nothing that was said is known here", (DIM,))
        elif messages[0].index:
            yield ScreenLine(f"… {count(messages[0].index, 'earlier message')}", (DIM,))
        for message in messages:
            yield from self._message(message, width)

    def _message(self, message: Message, width: int) -> Iterator[ScreenLine]:
        new = message.index >= self._replay.step.first_message
        gone = message.rolled_back_by is not None
        marks = (", new with this step" if new else "") + (", rolled back" if gone else "")
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
        for line in wrapped("The workspace is only looked at, never changed.", width):
            yield ScreenLine(line, (DIM,))


PAGES: dict[str, Page] = {
    "step": Pages.overview,
    "diff": Pages.difference,
    "files": Pages.files,
    "messages": Pages.messages,
    "help": Pages.help,
}


def _trouble(error: HoldfastError, width: int) -> Iterator[ScreenLine]:
    for line in wrapped(f"damaged: {visible(error.message)}", width):
        yield ScreenLine(line, (BOLD, RED))
    if error.hint:
        for line in wrapped(visible(error.hint), width):
            yield ScreenLine(line)
    for line in wrapped("the other steps can still be seen", width):
        yield ScreenLine(line, (DIM,))
