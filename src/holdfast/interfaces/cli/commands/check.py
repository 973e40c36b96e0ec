"""`holdfast check`: verify the store without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import NewerStore, StoreDamaged, StoreMissing
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, RED, Terminal, visible
from holdfast.interfaces.cli.wording import count, duration

if TYPE_CHECKING:
    from holdfast.domain.repair_plan import Problem

ANSWERS = True
_DAMAGED = 6
_MOST_LINES = 20


def configure(parser: Parser) -> None:
    parser.usage = "holdfast check [--data]"
    parser.description = """\
Verify the store: its databases and packs, and everything that checkpoints refer to. With --data,
read every stored byte and compare it with its hash; this takes as long as reading the whole store.
Nothing is changed.

Each problem is listed with the invariant it breaks, and the exit status is then 6."""
    parser.epilog = """\
example:
  $ holdfast check --data
  The store is sound: 0 problems, 412 ms"""
    parser.add_argument("--data", action="store_true", help="also read and verify every byte")


def run(invocation: Invocation) -> int:
    problems = _find_problems(invocation)
    if invocation.json:
        from holdfast.api.views.health import check_view

        invocation.emit(check_view(problems))
        return _DAMAGED if problems else 0
    terminal = invocation.terminal
    _list(terminal, problems)
    took = duration(invocation.elapsed_ms)
    if problems:
        words = count(len(problems), "problem")
        mend = "; to repair it: holdfast repair"
        terminal.line(f"{terminal.cross} The store is damaged: {words}, {took}{mend}")
        return _DAMAGED
    what = "The store is sound" if invocation.options.data else "The store's structure is sound"
    unread = "" if invocation.options.data else "; content was not verified (--data)"
    terminal.line(f"{terminal.tick} {what}: 0 problems, {took}{unread}")
    return 0


def _list(terminal: Terminal, problems: Sequence[Problem]) -> None:
    """List each problem once, with the first checkpoint that has it. A terminal gets one screen at
    most."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        subjects.setdefault((problem.invariant, problem.problem), []).append(problem.subject)
    limit = _MOST_LINES if terminal.for_people else len(subjects)
    for (invariant, words), named in list(subjects.items())[:limit]:
        label = terminal.paint(visible(invariant), RED)
        more = f" and {len(named) - 1:,} more" if len(named) > 1 else ""
        terminal.line(f"{label} {visible(named[0])}{more}: {visible(words)}")
    if len(subjects) > limit:
        terminal.line(f"… and {len(subjects) - limit:,} more (--json lists all)", DIM)


def _find_problems(invocation: Invocation) -> list[Problem]:
    """A store too damaged to open is a finding, not a failed check."""
    from holdfast.domain.repair_plan import Problem

    problems: list[Problem] = []
    try:
        with invocation.open(recover=False) as opened, invocation.busy("checking") as progress:
            for problem in opened.health.check(data=invocation.options.data, progress=progress):
                problems.append(problem)
    except (NewerStore, StoreMissing):
        raise
    except StoreDamaged as error:
        problems.append(Problem("I2", "store", error.message))
    return problems
