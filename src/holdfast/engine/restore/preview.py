"""The plan of a restore with everything it does, for looking at: nothing is written.

It warns about agents in the middle of a tool call. The output of such a call is in no checkpoint
yet; the restore saves it first, and the preview says whose call it is and which of its files would
go.

It also brings back paths that the target left out, as the first checkpoint after it has them:

    a turn begins, `.env` is ignored → a tool names it: captured → the tool changes it → undo --turn

The target does not have such a file, but it was there, and its content is saved. A directory that
was left out as a whole may hold new files, too: one that a tool call named before any checkpoint
had it was made by that call, and is not brought back.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import basename, from_text, parent, to_text
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.sessions import Session
from holdfast.domain.tool_calls import one_line
from holdfast.domain.trees.changes import TreeLoader, replace_entries, tree_changes, visible_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.components.recorded import recorded_remarks
from holdfast.engine.components.restore import (
    file_warnings,
    plan_components,
    unrestored_warnings,
    with_component_steps,
)
from holdfast.engine.edits.running import working_tools
from holdfast.engine.restore.plan import loader_for, make_plan, read_report, unsaved_remarks
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.scan.scanner import Scan
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
    steps = plan_components(vault, request.target, request.components)
    plan = with_drift(vault, request, with_component_steps(plan, steps))
    return with_working_agents(vault, scan, plan)


def _with_unsaved(
    vault: Vault, scan: Scan, head: Checkpoint | None, plan: RestorePlan, kind: OperationKind
) -> RestorePlan:
    if not plan.steps:
        return plan
    return replace(plan, warnings=(*plan.warnings, *unsaved_remarks(vault, scan, head, kind)))


def _with_others(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with whose work it changes, besides that of the session's agent."""
    if not plan.steps or request.kind not in (OperationKind.RESTORE, OperationKind.RESET):
        return plan
    from holdfast.engine.restore.last_changes import others_remarks

    return replace(plan, warnings=(*plan.warnings, *others_remarks(vault, plan, request.target)))


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
    warnings = (drift.words(planned=True),) if drift.matters else ()
    return replace(plan, git=drift, warnings=(*plan.warnings, *warnings))


def with_unrestored(vault: Vault, request: RestoreRequest, plan: RestorePlan) -> RestorePlan:
    """The plan with a warning about what comes back only when asked for. Undo and redo are about
    what a restore did, and that was asked for."""
    if request.paths or request.reverses is not None:
        return plan
    warnings = unrestored_warnings(vault, request.target, request.components)
    if request.kind is OperationKind.RESTORE:  # an undo is about the last step, not about then
        warnings = (*warnings, *recorded_remarks(vault, request.target))
    return replace(plan, warnings=(*plan.warnings, *warnings))


def working_warnings(
    vault: Vault, load: TreeLoader, scan: Scan, affected: Sequence[bytes]
) -> Iterator[str]:
    """One for each session that is at work, with those of its files that the restore takes."""
    tools = working_tools(vault)
    if not tools:
        return
    sessions = {session_digest(one.agent or "", one.id): one for one in vault.catalog.sessions()}
    for digest in dict.fromkeys(tool.session for tool in tools):
        names = ", ".join(dict.fromkeys(tool.tool for tool in tools if tool.session == digest))
        session = sessions.get(digest)
        said = f"{_who(session)} is in the middle of a tool call ({names})"
        taken = [] if session is None else _taken(vault, load, scan, session, set(affected))
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


def _taken(
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


def first_captured(
    vault: Vault, target: Checkpoint, since: Iterable[Checkpoint]
) -> tuple[tuple[bytes, Entry], ...]:
    """What `target` left out, by path, as the first of the checkpoints `since` that has it."""
    found: dict[bytes, Entry] = {}
    left_out: set[bytes] | None = None
    named: set[bytes] = set()
    report, tree = target.report, target.tree
    for checkpoint in since:
        if checkpoint.report == report or checkpoint.tree == tree:
            named |= _names_in_calls(checkpoint)
            continue
        report, tree = checkpoint.report, checkpoint.tree
        if left_out is None:
            skips = read_report(vault, target)
            left_out = {skip.path for skip in skips if not skip.reason.content_is_captured}
        for change in tree_changes(vault.load_tree, target.tree, tree) if left_out else ():
            entry = change.new
            if change.old is not None or entry is None or isinstance(entry, DirectoryEntry):
                continue
            if change.path in left_out or (
                basename(change.path) not in named and _is_below(change.path, left_out)
            ):
                found.setdefault(change.path, entry)
        named |= _names_in_calls(checkpoint)
    return tuple(sorted(found.items()))


def _names_in_calls(checkpoint: Checkpoint) -> set[bytes]:
    """The last part of each path that the tool call named, before which it was made."""
    return {
        basename(from_text(str(path)).rstrip(b"/"))
        for call in checkpoint.intent.tool_calls
        if isinstance(call, Mapping) and isinstance(call.get("paths"), (list, tuple))
        for path in call["paths"]
    }


def _is_below(path: bytes, directories: Container[bytes]) -> bool:
    while path := parent(path):
        if path in directories:
            return True
    return False


def with_goal(vault: Vault, scan: Scan, request: RestoreRequest) -> tuple[Scan, RestoreRequest]:
    """The request with the tree to reach, for a plan; nothing is stored."""
    if not request.added:
        return scan, request
    tree, encoded = replace_entries(vault.load_tree, request.target.tree, dict(request.added))
    return replace(scan, encoded=scan.encoded | encoded), replace(request, tree=tree)
