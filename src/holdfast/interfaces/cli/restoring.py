"""What `restore`, `undo` and `redo` share: preview, confirmation, the restore, its report."""

from __future__ import annotations

from holdfast.bootstrap import OpenWorkspace
from holdfast.engine.restore.records import RestoreRequest
from holdfast.interfaces.cli import json_output
from holdfast.interfaces.cli.confirmation import can_ask, require_confirmation
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.restore_view import show_outcome, show_plan, summary, target_words

PARTIAL = 3
_HINT = "look at it with --dry-run, and go ahead with --yes"


def restore_and_report(
    invocation: Invocation, opened: OpenWorkspace, request: RestoreRequest
) -> int:
    """Carry out a request, or only show it; returns the exit status."""
    if invocation.options.dry_run:
        return _preview(invocation, opened, request)
    if not invocation.options.yes:
        _confirm(invocation, opened, request)
    with invocation.busy("restoring"):
        outcome = opened.engine.restore(request)
    if invocation.json:
        invocation.emit(json_output.restored(outcome, invocation.elapsed_ms))
    else:
        show_outcome(invocation.terminal, request, outcome, invocation.elapsed_ms)
        for warning in outcome.warnings:
            invocation.terminal.warn(warning)
    return PARTIAL if outcome.skipped or not outcome.verified else 0


def _preview(invocation: Invocation, opened: OpenWorkspace, request: RestoreRequest) -> int:
    with invocation.busy("planning"):
        plan = opened.engine.plan(request)
    if invocation.json:
        invocation.emit(
            json_output.planned(
                request.target, plan, invocation.elapsed_ms, best_effort=request.best_effort
            )
        )
        return 0
    show_plan(invocation.terminal, request.target, plan)
    for warning in plan.warnings:
        invocation.terminal.warn(warning)
    invocation.terminal.line("Nothing was changed (dry run).")
    return 0


def _confirm(invocation: Invocation, opened: OpenWorkspace, request: RestoreRequest) -> None:
    """Nothing to ask when one file or none is affected, or when the engine will refuse anyway."""
    with invocation.busy("planning"):
        plan = opened.engine.plan(request)
    if len(plan.affected_files) <= 1 or (plan.blocked and not request.best_effort):
        return
    if not invocation.json and can_ask(invocation):
        aside = invocation.terminal.aside()
        show_plan(aside, request.target, plan)
        for warning in plan.warnings:
            aside.warn(warning)
    require_confirmation(
        invocation,
        f"going back to {target_words(request.target)} changes {summary(plan.steps)} "
        "and needs confirmation",
        "Go ahead?",
        hint=_HINT,
    )
