"""Which files outside the workspace come back with a restore: each is agreed to by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.component_states import SOME
from holdfast.domain.errors import NeedsConfirmation
from holdfast.domain.restore.plan import ComponentStep
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import agrees, can_ask
from holdfast.interfaces.cli.terminal import visible
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest
    from holdfast.api.workspace import Workspace

EXTERNAL = "external"
_HINT = "look at it with --dry-run, and agree to all of them with --yes"


def choose_external(
    invocation: Invocation, opened: Workspace, request: RestoreRequest
) -> tuple[RestoreRequest, bool]:
    """The request with those files that were agreed to, and whether some had to be left out: those
    that are refused, with --best-effort. Without it the restore is refused as a whole."""
    with invocation.busy("planning", opened):
        plan = opened.restores.plan(request)
    step = next((step for step in plan.components if step.name == EXTERNAL), None)
    if step is None or invocation.options.dry_run or (step.blocked and not request.best_effort):
        return request, False
    for line in step.blocked:
        invocation.terminal.warn(f"not restored: {line}")
    chosen = _agreed(invocation, step)
    whole = len(chosen) == len(step.choices) and not step.blocked
    others = tuple(pair for pair in request.components if pair[0] != EXTERNAL)
    if whole:
        return request, False
    if chosen:
        others = tuple(sorted((*others, (EXTERNAL, f"{SOME}:{','.join(chosen)}"))))
    return replace(request, components=others), bool(step.blocked)


def _agreed(invocation: Invocation, step: ComponentStep) -> list[str]:
    """The keys of those that somebody wants."""
    if invocation.options.yes:
        return [key for key, _ in step.choices]
    if step.choices and (invocation.json or not can_ask(invocation)):
        lines = "; ".join(line for _, line in step.choices[:5])
        raise NeedsConfirmation(
            f"files outside the workspace would be changed, which needs confirmation: {lines}",
            hint=_HINT,
        )
    return [key for key, line in step.choices if agrees(invocation, f"{visible(line)}?")]
