"""The plan of a restore with all that it does, for looking at: nothing is written."""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.operations import OperationKind
from holdfast.domain.restore.plan import RestorePlan
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.components.restore import (
    concerns,
    left_alone,
    plan_components,
    with_component_steps,
)
from holdfast.engine.restore.plan import loader_for, make_plan, saved_first
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.restore.working_agents import working_warnings
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace


def preview(
    vault: Vault, scan: Scan, request: RestoreRequest, head: Checkpoint | None
) -> RestorePlan:
    if request.hunks is not None:
        from holdfast.engine.restore.hunks import preview_hunks

        plan = _with_saved_first(
            vault, scan, head, preview_hunks(vault, scan, request), request.kind
        )
        return with_working_agents(vault, scan, with_drift(vault, request, plan))
    if request.added:
        from holdfast.engine.restore.added_paths import with_goal

        scan, request = with_goal(vault, scan, request)
    plan = _with_saved_first(vault, scan, head, make_plan(vault, scan, request), request.kind)
    plan = replace(plan, warnings=(*plan.warnings, *concerns(vault, plan.affected_files)))
    plan = with_left_alone(vault, request, plan)
    steps = plan_components(vault, request.target, request.components)
    plan = with_drift(vault, request, with_component_steps(plan, steps))
    return with_working_agents(vault, scan, plan)


def _with_saved_first(
    vault: Vault, scan: Scan, head: Checkpoint | None, plan: RestorePlan, kind: OperationKind
) -> RestorePlan:
    if not plan.steps:
        return plan
    return replace(plan, warnings=(*plan.warnings, *saved_first(vault, scan, head, kind)))


def with_working_agents(vault: Vault, scan: Scan, plan: RestorePlan) -> RestorePlan:
    """The plan with a warning about each agent that is in the middle of a tool call."""
    if not plan.steps:
        return plan
    load = loader_for(vault, scan)
    working = working_warnings(vault, load, scan, list(plan.affected_files))
    return replace(plan, warnings=(*plan.warnings, *working))


def with_drift(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with where git is, if files come back to it that belong to another commit."""
    if not plan.steps:
        return plan
    drift = git_drift(vault, request.target, request.components, plan.steps)
    if drift is None:
        return plan
    told = (drift.words(planned=True),) if drift.matters else ()
    return replace(plan, git=drift, warnings=(*plan.warnings, *told))


def with_left_alone(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with a warning about what comes back only when asked for. Undo and redo are about
    what a restore did, and that was asked for."""
    if request.paths or request.reverses is not None:
        return plan
    warnings = left_alone(vault, request.target, request.components)
    return replace(plan, warnings=(*plan.warnings, *warnings))
