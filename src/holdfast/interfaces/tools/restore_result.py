"""The answer of a tool that restores, as data and as text, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.api.views.tool_values import GitDriftInfo, GitNow, git_drift_info
from holdfast.domain.outcomes import PathProblem, RestoreOutcome
from holdfast.domain.restore.plan import (
    FAILED,
    Blocked,
    ComponentOutcome,
    ComponentStep,
    Kept,
    Missing,
    RestorePlan,
    Step,
    count_steps,
)
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.wording import count_words, remarks_in
from holdfast.interfaces.agent_setup.lost_hooks import with_lost_hooks
from holdfast.interfaces.tools.tool import Answer, ToolContext
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    PathNote,
    bullets,
    cut,
    git_now,
    label,
    notes,
    one_line,
    path_list,
    path_text,
    reason_line,
    warning_lines,
)

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest

_KEPT = "Not part of it, and kept:"
_MISSING = "Left out of the checkpoint and missing now, so not restored:"


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One step of a restore: create, restore, delete, chmod, relink, mkdir or rmdir."""

    step: str
    path: str


@dataclass(frozen=True, slots=True)
class ComponentNews:
    """What a restore does, or did, to a component. `status` is None in a preview, then restored or
    failed. `blocked` says why it cannot be, or was not, restored."""

    name: str
    mode: str
    status: str | None
    actions: list[str]
    blocked: list[str]


@dataclass(frozen=True, slots=True)
class AffectedFile:
    """A file that a restore changes, with git's letter: A is created, D deleted, M rewritten."""

    status: str
    file: str


@dataclass(frozen=True, slots=True)
class Restored:
    """A restore preview or, if `done`, a restore. `method` is files_only or full_branch, with the
    branch in `branch_created`. `degraded_mode`: something was not restored. A feasible preview has
    a `confirm_token`; `plan_id` is equal for equal plans. A completed restore has the safety
    checkpoint, and whether it was verified. `kept` are files that the checkpoint lacks but that
    stay; `missing` are files that the checkpoint lacks and that are gone."""

    success: bool
    preview: bool
    checkpoint_id: str
    files_affected: list[AffectedFile]
    total_files: int
    method: str
    branch_created: str | None
    degraded_mode: bool
    done: bool
    target: str
    steps: list[StepInfo]
    total_steps: int
    created: int
    rewritten: int
    deleted: int
    blocked: list[PathNote]
    kept: list[PathNote]
    conflicts: list[PathNote]
    warnings: list[str]
    confirm_token: str | None
    plan_id: str | None
    safety_checkpoint: str | None
    components: list[ComponentNews] = field(default_factory=list)
    verified: bool | None = None
    abandoned_round: str | None = None
    new_round: str | None = None
    git: GitDriftInfo | None = None
    missing: list[PathNote] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """Warnings that need no action."""
    git_now: GitNow | None = None
    agents: list[str] = field(default_factory=list)
    """The agents of `stop_agents`, each with its status."""


def fingerprint(plan: RestorePlan) -> bytes:
    """Equal for plans with the same effect: contents and modes count, times do not, nor what a
    server writes meanwhile to a database that it has open."""
    from holdfast.domain.sqlite_files import database_of
    from holdfast.domain.trees.objects import digest_of

    in_use = plan.databases_in_use
    steps = [
        (s.type.value, s.path, _state(s.before), _state(s.after))
        for s in plan.steps
        if (database_of(s.path) or s.path) not in in_use
    ]
    besides = [(c.name, c.mode, c.actions, c.blocked) for c in plan.components]
    shown = repr((steps, in_use, plan.blocked, plan.kept, besides))
    return digest_of(shown.encode("utf-8", "surrogatepass"))


def _state(entry: Entry | None) -> tuple[object, ...]:
    """The values that `same_state` compares."""
    if isinstance(entry, FileEntry):
        return ("file", entry.digest, entry.mode, entry.link)
    if isinstance(entry, DirectoryEntry):
        return ("directory", entry.mode)
    return () if entry is None else ("symlink", entry.target)


def _restored(
    found: RestorePlan | RestoreOutcome, *, done: bool, target: str, git: str | None, **more: Any
) -> Restored:
    """The common part of a preview and a completed restore. `git` is the git mode, if git is
    restored."""
    counts = count_steps(found.steps)
    steps = found.steps[:MOST_LISTED]
    files = [
        step for step in found.steps if not isinstance(step.after or step.before, DirectoryEntry)
    ]
    return Restored(
        success=True,
        preview=not done,
        checkpoint_id=target,
        files_affected=[AffectedFile(_letter(s), path_text(s.path)) for s in files[:MOST_LISTED]],
        total_files=len(files),
        method="full_branch" if git == "branch" else "files_only",
        done=done,
        target=target,
        steps=[StepInfo(step.type.value, path_text(step.path)) for step in steps],
        total_steps=len(found.steps),
        created=counts.created,
        rewritten=counts.restored,
        deleted=counts.deleted,
        kept=_path_notes(found.kept),
        missing=_path_notes(found.missing),
        warnings=[reason_line(warning) for warning in found.warnings],
        remarks=remarks_in(map(reason_line, found.warnings)),
        git=git_drift_info(found.git),
        **more,
    )


def _letter(step: Step) -> str:
    if step.before is None:
        return "A"
    return "D" if step.after is None else "M"


def _git_mode(components: Iterable[ComponentStep | ComponentOutcome]) -> str | None:
    return next((_mode_word(one.mode) for one in components if one.name == "git"), None)


def _path_notes(found: Sequence[Blocked | Kept | Missing | PathProblem]) -> list[PathNote]:
    return notes((one.path, one.reason) for one in found[:MOST_LISTED])


def planned(request: RestoreRequest, plan: RestorePlan, token: str | None) -> Restored:
    return _restored(
        plan,
        done=False,
        target=request.target.id,
        git=_git_mode(plan.components),
        branch_created=None,
        degraded_mode=False,
        blocked=_path_notes(plan.blocked),
        conflicts=[],
        confirm_token=token,
        plan_id=fingerprint(plan).hex()[:16],
        safety_checkpoint=None,
        components=_planned_components(plan.components),
    )


def plan_lines(
    context: ToolContext, request: RestoreRequest, plan: RestorePlan, data: Restored
) -> list[str]:
    besides = _component_lines(data.components)
    if not plan.steps and not plan.blocked and not besides:
        rest = [*path_list(_KEPT, data.kept), *path_list(_MISSING, data.missing)]
        return [f"The workspace already matches {label(request.target)}.", *rest]
    rows = [f"{step.step} {step.path}" for step in data.steps]
    reason = one_line(request.target.intent.reasoning.split("\n", 1)[0][:200])
    end = ":" if rows else "."
    return [
        f"Restoring {label(request.target)} ({reason}) would change {_summary(data)}{end}",
        *bullets(rows),
        *_row_lines(context, plan),
        *(f"Note on it: {cut(one_line(note), 500)}" for note in plan.annotations),
        *besides,
        *warning_lines(plan.warnings),
        *path_list("In the way:", data.blocked),
        *path_list(_KEPT, data.kept),
        *path_list(_MISSING, data.missing),
    ]


def _row_lines(context: ToolContext, plan: RestorePlan) -> list[str]:
    """The row counts of the databases among the files."""
    return [
        f"{path_text(database.path)}: {one_line(line)}"
        for database in context.workspace.restores.changed_rows(plan)
        for line in database.differences
    ]


def restore_answer(
    context: ToolContext, request: RestoreRequest, outcome: RestoreOutcome, way_back: str
) -> Answer:
    outcome = with_lost_hooks(context.workspace, outcome)
    place = context.workspace.restores.git_now(outcome)
    mode = _git_mode(outcome.components)
    data = _restored(
        outcome,
        done=True,
        target=outcome.restored_to,
        git=mode,
        branch_created=None if place is None or mode != "branch" else one_line(place.branch or ""),
        degraded_mode=any(one.status == FAILED for one in outcome.components),
        blocked=_path_notes(outcome.skipped),
        conflicts=_path_notes(outcome.conflicts),
        git_now=None if place is None else git_now(place),
        confirm_token=None,
        plan_id=None,
        safety_checkpoint=outcome.safety if outcome.recorded else None,
        components=_restored_components(outcome.components),
        verified=outcome.verified,
    )
    if not outcome.recorded:
        said_so = f"The workspace already matched {label(request.target)}; nothing changed."
        return Answer("\n".join([said_so, *path_list(_MISSING, data.missing)]), data)
    checked = "NOT verified"
    if outcome.verified:
        checked = (
            f"verified {count_words(outcome.compared, 'file')}" if outcome.compared else "verified"
        )
    lines = [
        f"Restored {label(request.target)}: {_summary(data)}, {checked}.",
        *bullets([f"{step.step} {step.path}" for step in data.steps]),
        *_component_lines(data.components),
        *warning_lines(outcome.warnings),
        *path_list("Skipped:", data.blocked),
        *path_list(
            "Changed in the meantime; that content is in the safety checkpoint:", data.conflicts
        ),
        *path_list(_KEPT, data.kept),
        *path_list(_MISSING, data.missing),
        *([] if place is None else [f"Git: {one_line(str(place))}."]),
        f"The previous state is saved as {outcome.safety}. {way_back}",
        "Files you have read may have changed: read them again before you edit them.",
    ]
    return Answer("\n".join(lines), data, outcome.record)


def _summary(data: Restored) -> str:
    total = data.created + data.rewritten + data.deleted
    if not total:
        return (
            f"{count_words(data.total_steps, 'directory', 'directories')}"
            if data.steps
            else "no files"
        )
    parts = {"created": data.created, "rewritten": data.rewritten, "deleted": data.deleted}
    kinds = ", ".join(f"{number:,} {word}" for word, number in parts.items() if number)
    return f"{count_words(total, 'file')} ({kinds})"


def _planned_components(steps: Iterable[ComponentStep]) -> list[ComponentNews]:
    return [
        ComponentNews(
            name=reason_line(step.name),
            mode=_mode_word(step.mode),
            status=None,
            actions=[reason_line(line) for line in step.actions[:MOST_LISTED]],
            blocked=[reason_line(line) for line in step.blocked[:MOST_LISTED]],
        )
        for step in steps
    ]


def _restored_components(outcomes: Iterable[ComponentOutcome]) -> list[ComponentNews]:
    return [
        ComponentNews(
            name=reason_line(one.name),
            mode=_mode_word(one.mode),
            status=one.status,
            actions=[],
            blocked=[reason_line(one.detail)] if one.status == FAILED else [],
        )
        for one in outcomes
    ]


def _component_lines(news: Sequence[ComponentNews]) -> list[str]:
    """One line per change to a component."""
    rows: list[str] = []
    for one in news:
        rows += [f"{one.name}: {line}" for line in one.actions]
        word = "in the way" if one.status is None else "NOT restored"
        rows += [f"{one.name}: {word}: {line}" for line in one.blocked]
        if one.status is not None and one.status != FAILED:
            rows.append(f"{one.name}: restored")
    return ["Besides files:", *bullets(rows)] if rows else []


def _mode_word(mode: str) -> str:
    """A mode without the keys of chosen parts."""
    return mode.partition(":")[0]
