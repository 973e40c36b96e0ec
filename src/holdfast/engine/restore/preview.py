"""The complete plan of a restore, for display; nothing is written.

It warns about agents in the middle of a tool call. The output of such a call is in no checkpoint
yet, and the restore saves it first. The preview names the agent, and its files that the restore
would remove.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import short
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.sessions import Session
from holdfast.domain.trees.changes import TreeLoader, tree_changes, visible_changes
from holdfast.domain.wording import Remark, one_line
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.components.recorded import recorded_remarks
from holdfast.engine.components.restore import (
    file_warnings,
    plan_components,
    unrestored_warnings,
    with_component_steps,
)
from holdfast.engine.edits.open_activities import working_tools
from holdfast.engine.restore.backfilled_paths import with_goal
from holdfast.engine.restore.plan import make_plan, unsaved_remarks
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import loader_for
from holdfast.engine.undo.outside_files import EXTERNAL
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import session_digest
from holdfast.values.classes import replace

_MOST_FILES = 5


def preview(
    vault: Vault, scan: Scan, request: RestoreRequest, head: Checkpoint | None
) -> RestorePlan:
    if request.hunks is not None:
        from holdfast.engine.restore.hunks import preview_hunks

        plan = _with_unsaved(vault, scan, head, preview_hunks(vault, scan, request), request.kind)
        return with_working_agents(vault, scan, with_drift(vault, request, plan))
    if request.added:
        scan, request = with_goal(vault, scan, request)
    plan = _with_unsaved(vault, scan, head, make_plan(vault, scan, request), request.kind)
    plan = replace(plan, warnings=(*plan.warnings, *file_warnings(vault, plan.affected_files)))
    plan = with_unrestored(vault, request, _with_others(vault, request, plan))
    plan = with_databases_in_use(request, plan)
    plan = replace(plan, databases_in_use=_affected_databases_in_use(vault, plan))
    steps = plan_components(vault, request.target, request.components)
    plan = with_edits_outside(request, with_component_steps(plan, steps))
    return with_working_agents(vault, scan, with_drift(vault, request, plan))


def _with_unsaved(
    vault: Vault, scan: Scan, head: Checkpoint | None, plan: RestorePlan, kind: OperationKind
) -> RestorePlan:
    if not plan.steps:
        return plan
    return replace(plan, warnings=(*plan.warnings, *unsaved_remarks(vault, scan, head, kind)))


def _with_others(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with remarks about files last changed by others than the session's agent."""
    if not plan.steps or request.kind not in (OperationKind.RESTORE, OperationKind.RESET):
        return plan
    from holdfast.engine.restore.change_authors import others_remarks

    return replace(plan, warnings=(*plan.warnings, *others_remarks(vault, plan, request.target)))


def with_working_agents(vault: Vault, scan: Scan, plan: RestorePlan) -> RestorePlan:
    """The plan with a warning about each agent in the middle of a tool call."""
    if not plan.steps:
        return plan
    load = loader_for(vault, scan)
    working = working_warnings(vault, load, scan, list(plan.affected_files))
    return replace(plan, warnings=(*plan.warnings, *working))


def with_drift(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with git's position, if the restored files belong to another commit."""
    if not plan.steps:
        return plan
    drift = git_drift(vault, request.target, request.components, plan.steps)
    if drift is None:
        return plan
    warnings = (drift.words(planned=True),) if drift.matters else ()
    return replace(plan, git=drift, warnings=(*plan.warnings, *warnings))


def with_unrestored(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with a warning about components that are restored only on request. Undo and redo
    need none: they repeat what a restore was asked to do."""
    if request.paths or request.reverses is not None:
        return plan
    warnings = unrestored_warnings(vault, request.target, request.components)
    if request.kind is OperationKind.RESTORE:  # not for an undo, which concerns the last step
        warnings = (*warnings, *recorded_remarks(vault, request.target))
    return replace(plan, warnings=(*plan.warnings, *warnings))


def with_edits_outside(request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with a remark about each file outside the workspace that was edited in between, and
    a warning about each that cannot be restored."""
    chosen = dict(request.components).get(EXTERNAL, "").partition(":")[2].split(",")
    command = "redo" if request.kind is OperationKind.UNDO else "undo"
    edits = [
        Remark(f"{line}: this replaces a later edit, which is saved first; {command} restores it")
        for key, line in request.edited_outside
        if key in chosen
    ]
    blocked = [f"not restored: {line}" for line in request.blocked_outside]
    return replace(plan, warnings=(*plan.warnings, *edits, *blocked))


def with_databases_in_use(request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with a remark about each database whose latest changes are not a step by
    themselves."""
    remarks = []
    for path in request.passed_over:
        words = f"{to_text(path)} is in use by another program"
        if path in plan.affected_files:
            words += (
                ": its changes since then are undone too, and saved first. To leave it as it is, "
                f"restore only the other files: holdfast restore {short(request.target.id)} PATH…"
            )
        else:
            words += ": its latest changes are kept"
        remarks.append(Remark(words))
    return replace(plan, warnings=(*plan.warnings, *remarks))


def _affected_databases_in_use(vault: Vault, plan: RestorePlan) -> tuple[bytes, ...]:
    """Databases that another program has open, and whose content the plan changes."""
    from holdfast.engine.undo.databases_in_use import DatabasesInUse  # late: few plans need it

    in_use = DatabasesInUse(vault)
    changed = [s for s in plan.steps if s.before is not None and s.after is not None]
    owners = (in_use.owner_of(s.path, s.before, s.after) for s in changed)
    return tuple(sorted({owner for owner in owners if owner is not None}))


def working_warnings(
    vault: Vault, load: TreeLoader, scan: Scan, affected: Sequence[bytes]
) -> Iterator[str]:
    """One for each working session, with its files that the restore removes."""
    tools = working_tools(vault)
    if not tools:
        return
    sessions = {session_digest(one.agent or "", one.id): one for one in vault.catalog.sessions()}
    for digest in dict.fromkeys(tool.session for tool in tools):
        names = ", ".join(dict.fromkeys(tool.tool for tool in tools if tool.session == digest))
        session = sessions.get(digest)
        said = f"{_who(session)} is in the middle of a tool call ({names})"
        taken = (
            [] if session is None else _changed_by_call(vault, load, scan, session, set(affected))
        )
        if taken:
            shown = ", ".join(one_line(to_text(path), 80) for path in taken[:_MOST_FILES])
            more = f" and {len(taken) - _MOST_FILES} more" if len(taken) > _MOST_FILES else ""
            said += f"; changes it made since then are saved first and removed: {shown}{more}"
        yield said


def _who(session: Session | None) -> str:
    if session is None:
        return "an agent"
    title = f' "{one_line(session.title, 60)}"' if session.title else ""
    return f"{one_line(session.agent or 'an agent', 40)} (session {session.id}{title})"


def _changed_by_call(
    vault: Vault, load: TreeLoader, scan: Scan, session: Session, affected: set[bytes]
) -> list[bytes]:
    """Files that differ from the checkpoint before the call, and that the restore changes."""
    before = vault.catalog.checkpoint(session.id, session.head) if session.head else None
    if before is None:
        return []
    try:
        changed = visible_changes(tree_changes(load, before.tree, scan.tree))
        return [change.path for change in changed if change.path in affected]
    except StoreDamaged:
        return []
