"""What a restore of one repository would do, for people."""

from __future__ import annotations

from holdfast.components.git.commands import Git
from holdfast.components.git.planning import describe, make_plan, other_differences
from holdfast.components.git.references import BrokenReference
from holdfast.components.git.restoring import present_look
from holdfast.components.git.states import decode_state
from holdfast.ports.component import ComponentPreview, RestoreOf


def preview(git: Git, request: RestoreOf) -> ComponentPreview:
    target = decode_state(request.target)
    try:
        present = present_look(git, request)
        plan = make_plan(git, present, target, request.mode, request.label)
        if plan.blocked:
            return ComponentPreview(blocked=tuple(plan.blocked))
        actions = describe(git, present, target, plan)
        actions += other_differences(present, request, plan, actions)
    except BrokenReference as error:
        return ComponentPreview(blocked=(f"the repository is damaged: {error}",))
    warnings = []
    if target.operation is not None and not plan.put_operation:
        warnings.append(
            f"a {target.operation} was under way then; only --git exact takes it up again"
        )
    return ComponentPreview(tuple(actions), tuple(warnings))
