"""Tools that restore: `checkpoint_restore` and `checkpoint_reset`, which preview first, and
`checkpoint_undo`.

    preview: plan → words → a token for the target, the paths and every step
    call with the token: plan again → same steps: carry out; others: a new preview
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.api.confirmations import VALID_MINUTES
from holdfast.api.views.tool_values import restore_hint
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import round_title
from holdfast.interfaces.agent_setup.lost_hooks import with_lost_hooks
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.restore_result import (
    Restored,
    fingerprint,
    plan_lines,
    planned,
    restore_answer,
)
from holdfast.interfaces.tools.tool import (
    CONFIRM,
    PATHS,
    Answer,
    Parameter,
    Tool,
    ToolContext,
    flag,
    reference,
)
from holdfast.interfaces.tools.wording import bullets, one_line

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest

_RESTORE = "checkpoint_restore"
_RESET = "checkpoint_reset"


@dataclass(frozen=True, slots=True)
class _Preview:
    """A preview that was shown: the request, its arguments, and the plan."""

    request: RestoreRequest
    arguments: dict[str, Any]
    plan: bytes


class _PlanChanged(Exception):
    """The restore would do something else than its preview showed."""


def restore(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    token = arguments.pop("confirm_token")
    if token is None or arguments["preview"]:
        wanted = arguments["checkpoint_id"]
        found = None if wanted is None else context.resolve(wanted)
        request = context.workspace.restores.request(
            context.session_id if found is None else found.session_id,
            None if found is None else found.id,
            paths=context.paths(arguments["paths"]),
            best_effort=arguments["best_effort"],
            components=None if arguments["files_only"] else {"git": "branch"},
        )
        return _show_preview(context, _RESTORE, request, arguments)
    preview = context.confirmations.take(_RESTORE, token)
    assert isinstance(preview, _Preview)
    _require_matching_preview(preview, arguments)
    return _carry_out(context, _RESTORE, preview)


def reset(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    token = arguments["confirm_token"]
    if token is None:
        return _show_preview(
            context, _RESET, context.workspace.rounds.reset_request(context.session_id), {}
        )
    preview = context.confirmations.take(_RESET, token)
    assert isinstance(preview, _Preview)
    return _carry_out(context, _RESET, preview)


def undo(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    restores, session_id = context.workspace.restores, context.session_id
    redo = arguments["redo"]
    request = restores.redo_request(session_id) if redo else restores.undo_request(session_id)
    if arguments["dry_run"]:
        plan = with_lost_hooks(context.workspace, restores.plan(request))
        data = planned(request, plan, None)
        words = plan_lines(context, request, plan, data)
        again = '{"redo": true}' if redo else "{}"
        words.append(f"Nothing has been changed. To proceed: checkpoint_undo {again}.")
        return Answer("\n".join(words), data)
    outcome = restores.restore(request)
    back = '{"redo": false}' if redo else '{"redo": true}'
    return restore_answer(context, request, outcome, f"To undo this: checkpoint_undo {back}.")


def _show_preview(
    context: ToolContext,
    tool: str,
    request: RestoreRequest,
    arguments: dict[str, Any],
    first: str = "",
) -> Answer:
    plan = with_lost_hooks(context.workspace, context.workspace.restores.plan(request))
    abandoned = None
    if request.kind is OperationKind.RESET:
        abandoned = context.workspace.rounds.abandoned_by(request, plan)
    # A reset also ends a round whose work was already rolled back.
    besides = any(step.actions for step in plan.components)
    to_do = bool(plan.steps) or besides or abandoned is not None
    obstacles = bool(plan.blocked) or any(step.blocked for step in plan.components)
    possible = to_do and (request.best_effort or not obstacles)
    token = None
    active = context.workspace.sessions.active_agents() if arguments.get("stop_agents") else []
    if possible:
        token = context.confirmations.offer(tool, _Preview(request, arguments, fingerprint(plan)))
    data = planned(request, plan, token)
    lines = [first] if first else []
    lines += plan_lines(context, request, plan, data)
    if active and token is not None:
        names = [one_line(str(one)) for one in active]
        data = replace(data, agents=[f"{name}: active" for name in names])
        lines += ["It first asks these agents to end:", *bullets(names)]
    if abandoned is not None and token is not None:
        data = replace(data, abandoned_round=abandoned)
        lines.append(
            f"It abandons {round_title(abandoned)} and begins the next round. To recover the "
            "abandoned one: checkpoint_undo right afterwards, or later checkpoint_restore with "
            "the safety checkpoint that the reset returns."
        )
    if token is not None:
        own = request.session_id == context.session_id
        undoable = ", and checkpoint_undo restores it" if own else ""
        lines.append(
            f"Nothing has been changed yet. The current state is saved first{undoable}. "
            f'To proceed: {tool} {{"confirm_token": "{token}"}} (valid once, for {VALID_MINUTES} '
            "minutes)."
        )
    elif plan.blocked:
        lines.append(
            "Nothing has been changed. These paths have content that no checkpoint has, so the "
            "restore would be refused. Move them away, or leave them as they are with "
            '"best_effort": true.'
        )
    elif obstacles:
        lines.append(
            "Nothing has been changed, and the restore would be refused. Fix the cause, "
            'or restore the rest with "best_effort": true.'
        )
    return Answer("\n".join(lines), data)


def _carry_out(context: ToolContext, tool: str, preview: _Preview) -> Answer:
    request, restores = preview.request, context.workspace.restores

    def as_shown() -> RestoreRequest:
        """Called with the store's lock held, so that no other restore can intervene."""
        if fingerprint(restores.plan(request)) != preview.plan:
            raise _PlanChanged
        return request

    try:
        stopped = []
        if preview.arguments.get("stop_agents"):
            as_shown()  # no agent has to end for a restore that is not carried out
            stopped = context.workspace.sessions.stop_agents()
        outcome = restores.restore(as_shown)
    except _PlanChanged:
        first = "The workspace has changed since the preview; nothing was done. The new preview:"
        return _show_preview(context, tool, request, preview.arguments, first)
    back = "checkpoint_undo {}"
    if request.session_id != context.session_id:  # it is recorded there
        back = restore_hint(f"{request.session_id}:{outcome.safety}")
    answer = restore_answer(context, request, outcome, f"To undo this: {back}.")
    if stopped:
        agents = [f"{one_line(str(one.agent))}: {one.status}" for one in stopped]
        assert isinstance(answer.data, Restored)
        text = "\n".join([answer.text, "Agents that were asked to end:", *bullets(agents)])
        answer = Answer(text, replace(answer.data, agents=agents), answer.restored)
    if request.kind is not OperationKind.RESET:
        return answer
    rounds = context.workspace.rounds.reset_outcome(context.session_id, outcome)
    assert isinstance(answer.data, Restored)
    data = replace(answer.data, abandoned_round=rounds.abandoned, new_round=rounds.new_round)
    text = answer.text
    if rounds.abandoned is not None:
        ended, begun = round_title(rounds.abandoned), round_title(rounds.new_round)
        text += f"\nNow {ended} is abandoned, and {begun} begins."
    return Answer(text, data, answer.restored)


def _require_matching_preview(preview: _Preview, arguments: dict[str, Any]) -> None:
    """A token needs no other arguments; any given argument must match the preview."""
    for name, value in arguments.items():
        default = getattr(RESTORE.parameter(name), "default", None)
        if value is not None and value != default and value != preview.arguments[name]:
            raise BadArguments(
                f"{name} of {_RESTORE} differs from the preview of this confirm_token; nothing "
                "was done, and the token is used up",
                hint=f"call {_RESTORE} without confirm_token to preview it with this {name}",
            )


RESTORE = Tool(
    "checkpoint_restore",
    "Restore a checkpoint",
    "Return the workspace, or some paths, to a checkpoint, instead of repairing by hand. The first "
    "call only previews and returns a `confirm_token`: read it, then call again with the token. "
    "The current state is saved first; checkpoint_undo brings it back. Files that no checkpoint "
    "has are not touched.",
    (
        reference("Default: the one before the current.", aliases=("checkpoint", "ref")),
        Parameter(
            "files_only",
            "boolean",
            "false: also put git on a new branch at the checkpoint's commit.",
            True,
            default=True,
        ),
        flag("preview", "Only preview, without asking."),
        PATHS,
        flag("best_effort", "Skip what cannot be restored, instead of refusing."),
        flag("stop_agents", "First ask other active agents here to end."),
        CONFIRM,
    ),
    "restore",
    handler=restore,
    result=Restored,
)

UNDO = Tool(
    "checkpoint_undo",
    "Undo a restore",
    "Undo the last restore, reset or undo: the workspace is exactly what it was before it.",
    (
        flag("redo", "Undo the last undo."),
        flag("dry_run", "Only preview."),
    ),
    "restore",
    handler=undo,
    result=Restored,
)

RESET = Tool(
    "checkpoint_reset",
    "Discard unapproved work",
    "Return the workspace to the last approved state (or the session's first) and abandon the "
    "round. Previews first, like checkpoint_restore. Only when the user wants the whole round "
    "gone.",
    (CONFIRM,),
    "restore",
    handler=reset,
    result=Restored,
)
