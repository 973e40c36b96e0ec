"""`holdfast demo`: an agent wrecks a project, and Holdfast brings it back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Terminal, visible
from holdfast.interfaces.cli.wording import count, duration

if TYPE_CHECKING:
    from holdfast.domain.trees.changes import Change
    from holdfast.interfaces.cli.demonstration import Step

ANSWERS = True
AGENT_WARNING = False
_FAILED = 1
_MOST_OF_A_KIND = 2


def configure(parser: Parser) -> None:
    parser.usage = "holdfast demo [--json]"
    parser.description = """\
Watch what Holdfast is for. In a temporary directory, with a store of its own, an agent-like script
saves a project, works on it, and then deletes, overwrites and chmods what it should not, with a
real shell. Holdfast shows what happened, restores it, undoes that and redoes it; each time a
second, independent hash of the tree is compared. Nothing is left behind.

The exit status is 0 only if every comparison held."""
    parser.epilog = """\
example:
  $ holdfast demo"""


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.demonstration import story

    invocation.at_most(0)
    terminal = invocation.terminal
    told: list[Step] = []
    if not invocation.json:
        terminal.line(terminal.paint("An agent wrecks a project; Holdfast brings it back.", BOLD))
    with story() as play:
        for step in play.steps():
            told.append(step)
            if not invocation.json:
                _show(terminal, len(told), step)
    checks = [step.verified for step in told if step.verified is not None]
    if invocation.json:
        from holdfast.api.views.setup import DemoView

        steps = [step.view() for step in told]
        view = DemoView(ok=all(checks), steps=steps, elapsed_ms=invocation.elapsed_ms)
        invocation.emit(view)
    else:
        _conclude(invocation, checks)
    return 0 if all(checks) else _FAILED


def _show(terminal: Terminal, number: int, step: Step) -> None:
    terminal.line()
    terminal.line(f"{terminal.paint(f'{number}.', CYAN)} {terminal.paint(step.title, BOLD)}")
    for command in step.commands:
        terminal.line(terminal.paint(f"   $ {visible(command)}", DIM))
    some = _some_of_each_kind(step.changes)
    for change in some:
        terminal.line(f"   {_change_line(terminal, change)}")
    if len(step.changes) > len(some):
        rest = f"   … and {len(step.changes) - len(some)} more"
        terminal.line(terminal.paint(rest, DIM))
    mark = "  "
    if step.verified is not None:
        mark = terminal.paint("✓ ", GREEN) if step.verified else terminal.paint("✗ ", RED)
    took = "" if step.elapsed_ms is None else terminal.paint(f"  {duration(step.elapsed_ms)}", CYAN)
    terminal.line(f" {mark}{visible(step.said)}{took}")
    terminal.flush()


def _change_line(terminal: Terminal, change: Change) -> str:
    from holdfast.domain.trees.changes import ChangeType

    colours = {ChangeType.ADDED: GREEN, ChangeType.REMOVED: RED}
    word = terminal.paint(f"{change.type.value:<8}", colours.get(change.type, YELLOW))
    path = terminal.path(change.path) + ("/" if change.is_directory else "")
    if change.old_path is not None:
        return f"{word} {terminal.path(change.old_path)} -> {path}"
    note = terminal.paint("  (mode)", DIM) if change.mode_only else ""
    return f"{word} {path}{note}"


def _some_of_each_kind(changes: tuple[Change, ...]) -> list[Change]:
    shown: Counter[str] = Counter()
    some: list[Change] = []
    for change in changes:
        shown[change.type] += 1
        if shown[change.type] <= _MOST_OF_A_KIND:
            some.append(change)
    return some


def _conclude(invocation: Invocation, checks: list[bool]) -> None:
    terminal = invocation.terminal
    terminal.line()
    if all(checks):
        held = count(len(checks), "check")
        terminal.line(
            terminal.paint(f"✓ All {held} held", BOLD, GREEN)
            + f", {duration(invocation.elapsed_ms)}. Try it on your own project:"
        )
        terminal.line('  holdfast checkpoint "before the agent starts"')
    else:
        failed = checks.count(False)
        terminal.line(
            terminal.paint(f"✗ {failed} of {count(len(checks), 'check')} failed", BOLD, RED)
        )
