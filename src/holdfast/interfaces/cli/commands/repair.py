"""`holdfast repair`: repair a damaged store, and keep everything that is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import BOLD, RED, visible
from holdfast.interfaces.cli.wording import count

if TYPE_CHECKING:
    from holdfast.api.upkeep import RepairOutcome

_NEEDS_YES = 5


def configure(parser: Parser) -> None:
    parser.usage = "holdfast repair [--yes]"
    parser.description = """\
Find problems in the store and print a repair plan. With --yes, carry it out. Lost content is stored
again from the workspace if it is still there. Nothing is deleted: damaged files, rows and journals
are moved to the store's directory set-aside. A checkpoint that lost files is kept; restore the rest
with --best-effort.

The exit status is 0 if nothing is lost, 3 if the repair is done but something is lost (it is
listed), and 5 if there is something to repair and --yes was not given."""
    parser.epilog = """\
examples:
  $ holdfast repair
  $ holdfast repair --yes"""
    parser.add_argument("-y", "--yes", action="store_true", help="carry out the plan")


def run(invocation: Invocation) -> int:
    from holdfast.api.stores import workspace_with_store
    from holdfast.api.upkeep import repair_workspace

    invocation.at_most(0)
    with invocation.busy("repairing"):
        workspace = workspace_with_store(invocation.directory) or invocation.directory
        outcome = repair_workspace(workspace, act=invocation.options.yes)
    status = _status(outcome)
    if invocation.json:
        from holdfast.api.views.upkeep import repair_view

        invocation.emit(repair_view(outcome, ok=status == 0))
        return status
    _show(invocation, outcome)
    return status


def _status(outcome: RepairOutcome) -> int:
    if not outcome.plan.steps:
        return 0
    if not outcome.done:
        return _NEEDS_YES
    return PARTIAL if outcome.plan.lost else 0


def _show(invocation: Invocation, outcome: RepairOutcome) -> None:
    terminal = invocation.terminal
    if not outcome.plan.steps:
        terminal.line(f"{terminal.tick} The store is sound: nothing to repair")
        return
    for step in outcome.plan.steps:
        label = terminal.paint(step.type.value, BOLD)
        terminal.line(f"{label} {visible(step.subject)}: {visible(step.why)}")
        for loss in step.lost:
            terminal.line(f"    {terminal.paint('lost', RED)} {visible(loss)}")
    steps = count(len(outcome.plan.steps), "step")
    if outcome.done:
        terminal.line(f"{terminal.tick} Repaired: {steps}")
    else:
        terminal.line(f"{steps}; nothing was changed. To carry them out: holdfast repair --yes")
