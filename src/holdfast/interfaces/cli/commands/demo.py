"""`holdfast demo`: an agent deletes a project's code, and Holdfast brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import BOLD, CYAN, DIM, GREEN, RED, Terminal, visible
from holdfast.interfaces.cli.wording import count, duration

if TYPE_CHECKING:
    from holdfast.interfaces.cli.demonstration import Step

ANSWERS = True
AGENT_WARNING = False
_FAILED = 1


def configure(parser: Parser) -> None:
    parser.usage = "holdfast demo [--json]"
    parser.description = """\
Watch Holdfast undo an agent's mistake. A script plays the agent, without a model. It sends the
events that Claude Code sends, and runs `rm -rf src .env` in a small project. `holdfast undo`
brings the files back, `holdfast redo` deletes them again. After each step the project is
compared with an independent copy.

Everything happens in a temporary directory. Nothing is left behind. The exit status is 0 only
if every check passed."""
    parser.epilog = """\
example:
  $ holdfast demo"""


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.demonstration import demonstration

    invocation.at_most(0)
    terminal = invocation.terminal
    steps: list[Step] = []
    if not invocation.json:
        terminal.line("An agent deletes your code. One command brings it back.", BOLD)
    with demonstration() as running:
        for step in running.steps():
            steps.append(step)
            if not invocation.json:
                _show(terminal, len(steps), step)
    checks = [step.verified for step in steps if step.verified is not None]
    if invocation.json:
        from holdfast.api.views.setup import DemoView

        views = [step.view() for step in steps]
        view = DemoView(ok=all(checks), steps=views, elapsed_ms=invocation.elapsed_ms)
        invocation.emit(view)
    else:
        _conclude(invocation, checks)
    return 0 if all(checks) else _FAILED


def _show(terminal: Terminal, number: int, step: Step) -> None:
    terminal.line()
    terminal.line(f"{terminal.paint(f'{number}.', CYAN)} {terminal.paint(step.title, BOLD)}")
    prompt = "agent>" if step.by_agent else "$"
    for command in step.commands:
        terminal.line(f"   {terminal.paint(prompt, DIM)} {visible(command)}")
    for line in step.result:
        colour = {"✓": GREEN, "✗": RED}.get(line[:1])
        mark = terminal.paint(line[0], colour) if colour else line[:1]
        terminal.line(f"   {mark}{visible(line[1:])}")
    terminal.flush()


def _conclude(invocation: Invocation, checks: list[bool]) -> None:
    terminal = invocation.terminal
    terminal.line()
    if all(checks):
        passed = terminal.paint(f"✓ All {count(len(checks), 'check')} passed", BOLD, GREEN)
        terminal.line(f"{passed}, {duration(invocation.elapsed_ms)}. In your own project:")
        terminal.line("  holdfast install claude-code")
    else:
        terminal.line(f"✗ {checks.count(False)} of {count(len(checks), 'check')} failed", BOLD, RED)
