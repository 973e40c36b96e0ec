"""The health of a workspace as data: its status, checks of its store, statistics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

from holdfast.api.views.changes import ChangeView, change_view
from holdfast.api.views.checkpoints import (
    CheckpointWithIntentView,
    SkippedView,
    checkpoint_with_intent_view,
    skipped_view,
)
from holdfast.api.views.sessions import (
    ApprovalView,
    InterruptedView,
    RoundView,
    approval_view,
    interrupted_view,
    round_view,
)
from holdfast.domain.trees.changes import ChangeType
from holdfast.domain.wording import iso, iso_from_ns

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from holdfast.api.automation import Problem as HookProblem
    from holdfast.api.automation import WatchStatus
    from holdfast.api.health import Degraded, LastAction, LastCheck, LastCleanup, WorkspaceStatus
    from holdfast.api.stores import StoreWithoutWorkspace
    from holdfast.api.upkeep import Usage
    from holdfast.domain.repair_plan import Problem, Symptom


class ProblemView(TypedDict):
    """Something in the store that breaks an invariant."""

    invariant: str
    subject: str
    problem: str


class CheckView(TypedDict):
    """The check of a store."""

    ok: bool
    problems: list[ProblemView]


class SymptomView(TypedDict):
    """One finding about the setup."""

    subject: str
    status: str
    finding: str
    cure: str | None


class SymptomsView(TypedDict):
    """All findings; `ok` if none needs action."""

    ok: bool
    findings: list[SymptomView]


class UsageView(TypedDict):
    """How checkpoints are used: `restores` by kind, and an estimate of the time they saved."""

    sessions: int
    sessions_with_restores: int
    sessions_with_manual_checkpoints: int
    restores: dict[str, int]
    time_saved_seconds: float


class StatisticsView(TypedDict):
    """A session, the store of its workspace, and the stores whose workspace is gone."""

    session_id: str
    checkpoints: int
    restores: int
    bytes_stored: int
    bytes_deduped: int
    snapshots: int
    content_blobs: int
    sessions: int
    store_bytes: int
    budget_bytes: int
    lost_stores: int
    lost_stores_bytes: int
    usage: NotRequired[UsageView]


class HookProblemView(TypedDict):
    """An event of an agent that a hook could not save or record."""

    at: str
    agent: str
    event: str
    tool: str
    session_id: str
    code: str
    reason: str


class HookProblemsView(TypedDict):
    """Events without a checkpoint, and events whose conversation is not recorded."""

    unprotected: list[HookProblemView]
    unrecorded: list[HookProblemView]


class NothingSavedView(HookProblemsView):
    """The status of a workspace without checkpoints."""

    workspace: str


class WatchView(TypedDict):
    """The daemon's watch over a workspace; `reason` is why it cannot be trusted now."""

    watched: bool
    reason: str | None
    off: bool
    directories: int
    whole_scans: int
    hinted_scans: int
    overflows: int
    differences: int


class AgentView(TypedDict):
    """Whether an agent's hooks would run."""

    agent: str
    scope: str
    protected: bool
    finding: str
    cure: str | None
    last_event: str | None


class AgentProtection(Protocol):
    """An agent's hooks, as its setup describes them."""

    @property
    def agent(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def protected(self) -> bool: ...
    @property
    def finding(self) -> str: ...
    @property
    def cure(self) -> str | None: ...
    @property
    def last_event(self) -> "datetime | None": ...


class CleanupNoteView(TypedDict):
    """The last cleanup."""

    at: str
    deleted: int
    freed_bytes: int


class CheckNoteView(TypedDict):
    """The last check that ran to its end; `data` if it read every stored byte."""

    at: str
    problems: int
    data: bool


class DegradedView(TypedDict):
    """A component that the last checkpoint lacks, or has only in part."""

    component: str
    reason: str
    failures: int
    left_alone_until: str | None


class LastActionView(TypedDict):
    """The last change to the workspace, which `undo` would undo."""

    what: str
    at: str | None


class StatusView(HookProblemsView):
    """A workspace and one of its sessions. `approval` and `rounds` are present if the session has
    checkpoints, `skipped` if requested."""

    workspace: str
    store: str | None
    store_bytes: int
    budget_bytes: int
    cleanup: CleanupNoteView | None
    session_id: str | None
    session_status: str | None
    sessions: list[str]
    checkpoints: int
    head: CheckpointWithIntentView | None
    files: int
    changed: dict[str, int]
    changes: list[ChangeView]
    watch: dict[str, Any] | None
    cut_off: list[InterruptedView]
    degraded: list[DegradedView]
    git: str | None
    last: LastActionView | None
    redo: str | None
    agents: list[AgentView]
    next: str
    skipped_counts: dict[str, int]
    warnings: list[str]
    approval: NotRequired[ApprovalView]
    rounds: NotRequired[list[RoundView]]
    skipped: NotRequired[list[SkippedView]]


class WorkspaceStateView(TypedDict):
    """The current workspace, compared with its last checkpoint. `skipped` are the first paths that
    a checkpoint would leave out. `watch` is the daemon's watch, or null."""

    workspace: str
    store_bytes: int
    budget_bytes: int
    session_id: str | None
    session_status: str | None
    head: CheckpointWithIntentView | None
    files: int
    changed: dict[str, int]
    changes: list[ChangeView]
    watch: dict[str, Any] | None
    cut_off: list[InterruptedView]
    degraded: list[DegradedView]
    cleanup: CleanupNoteView | None
    last_check: CheckNoteView | None
    git: str | None
    last: LastActionView | None
    redo: str | None
    approval: ApprovalView | None
    skipped_counts: dict[str, int]
    skipped: list[SkippedView]
    warnings: list[str]


def workspace_state_view(
    found: "WorkspaceStatus", *, watch: dict[str, Any] | None, most: int
) -> WorkspaceStateView:
    """Lists at most this many changed and skipped paths. The counts are complete."""
    head, approval = found.head, found.approval
    return {
        "workspace": str(found.workspace),
        "store_bytes": found.store_bytes,
        "budget_bytes": found.budget_bytes,
        "session_id": found.session,
        "session_status": found.session_status,
        "head": None if head is None else checkpoint_with_intent_view(head, is_head=True),
        "files": found.files,
        "changed": _change_counts(found),
        "changes": [change_view(change) for change in found.changes[:most]],
        "watch": watch,
        "cut_off": [interrupted_view(one) for one in found.interrupted],
        "degraded": [_degraded(one) for one in found.degraded],
        "cleanup": _cleanup(found.cleanup),
        "last_check": _last_check(found.last_check),
        "git": found.git,
        "last": _last(found.last),
        "redo": found.redo,
        "approval": None if approval is None else approval_view(approval),
        "skipped_counts": dict(Counter(skip.reason.value for skip in found.skipped)),
        "skipped": skipped_view(found.skipped[:most]),
        "warnings": [gap.finding for gap in found.gaps],
    }


def _change_counts(found: "WorkspaceStatus") -> dict[str, int]:
    counts = Counter(change.type for change in found.changes)
    return {kind.value: counts[kind] for kind in ChangeType}


def check_view(problems: "Sequence[Problem]") -> CheckView:
    found: list[ProblemView] = [
        {"invariant": one.invariant, "subject": one.subject, "problem": one.problem}
        for one in problems
    ]
    return {"ok": not problems, "problems": found}


def symptoms_view(symptoms: "Iterable[Symptom]", *, ok: bool) -> SymptomsView:
    found: list[SymptomView] = [
        {
            "subject": one.subject,
            "status": one.gravity.value,
            "finding": one.finding,
            "cure": one.cure,
        }
        for one in symptoms
    ]
    return {"ok": ok, "findings": found}


class GrowthView(TypedDict):
    """The stored bytes of all checkpoints up to a moment."""

    at: str
    bytes: int


def growth_view(points: "Sequence[tuple[int, int]]") -> list[GrowthView]:
    return [{"at": iso_from_ns(at_ns), "bytes": total} for at_ns, total in points]


class DurationsView(TypedDict):
    """How long recent saves and restores took, in milliseconds. `saves` are those of the daemon and
    of this server since they started; other processes keep no times. `restores` are those of any
    process, from the safety checkpoint to the verified result."""

    saves: list[float]
    restores: list[float]


def durations_view(saves_ns: "Iterable[int]", restores_ns: "Iterable[int]") -> DurationsView:
    return {"saves": _milliseconds(saves_ns), "restores": _milliseconds(restores_ns)}


def _milliseconds(times_ns: "Iterable[int]") -> list[float]:
    return [round(one / 1e6, 3) for one in times_ns]


def statistics_view(
    session_id: str,
    counted: Mapping[str, int],
    *,
    sessions: int,
    store_bytes: int,
    budget_bytes: int,
    lost: "Sequence[StoreWithoutWorkspace]",
) -> StatisticsView:
    return {
        "session_id": session_id,
        "checkpoints": counted["checkpoints"],
        "restores": counted["restores"],
        "bytes_stored": counted["bytes_stored"],
        "bytes_deduped": counted["bytes_deduped"],
        "snapshots": counted["snapshots"],
        "content_blobs": counted["content_blobs"],
        "sessions": sessions,
        "store_bytes": store_bytes,
        "budget_bytes": budget_bytes,
        "lost_stores": len(lost),
        "lost_stores_bytes": sum(one.size_bytes for one in lost),
    }


def usage_view(found: "Usage") -> UsageView:
    return {
        "sessions": found.sessions,
        "sessions_with_restores": found.sessions_with_restores,
        "sessions_with_manual_checkpoints": found.sessions_with_manual_checkpoints,
        "restores": {kind.value: count for kind, count in found.restores.items()},
        "time_saved_seconds": round(found.saved_ns / 1e9, 1),
    }


def watch_view(found: "WatchStatus") -> WatchView:
    return {
        "watched": found.doubt is None,
        "reason": found.doubt,
        "off": found.off,
        "directories": found.directories,
        "whole_scans": found.whole_scans,
        "hinted_scans": found.hinted_scans,
        "overflows": found.overflows,
        "differences": found.differences,
    }


def hook_problems_view(problems: "Sequence[HookProblem]") -> HookProblemsView:
    return {
        "unprotected": [_hook_problem(one) for one in problems if not one.saved],
        "unrecorded": [_hook_problem(one) for one in problems if one.saved],
    }


def nothing_saved_view(workspace: "Path", problems: "Sequence[HookProblem]") -> NothingSavedView:
    return {"workspace": str(workspace), **hook_problems_view(problems)}


def _hook_problem(one: "HookProblem") -> HookProblemView:
    return {
        "at": iso(one.at),
        "agent": one.agent,
        "event": one.event,
        "tool": one.tool,
        "session_id": one.session,
        "code": one.code,
        "reason": one.message,
    }


def status_view(
    found: "WorkspaceStatus",
    *,
    watch: dict[str, Any] | None,
    hook_problems: HookProblemsView,
    agents: "Iterable[AgentProtection]",
    next_step: str,
    skipped: bool,
) -> StatusView:
    """`next_step` is the most useful next command; `skipped` lists skipped paths."""
    head = found.head
    view: StatusView = {
        "workspace": str(found.workspace),
        "store": None if found.store is None else str(found.store),
        "store_bytes": found.store_bytes,
        "budget_bytes": found.budget_bytes,
        "cleanup": _cleanup(found.cleanup),
        "session_id": found.session,
        "session_status": found.session_status,
        "sessions": list(found.sessions),
        "checkpoints": found.checkpoints,
        "head": None if head is None else checkpoint_with_intent_view(head, is_head=True),
        "files": found.files,
        "changed": _change_counts(found),
        "changes": [change_view(change) for change in found.changes],
        "watch": watch,
        "unprotected": hook_problems["unprotected"],
        "unrecorded": hook_problems["unrecorded"],
        "cut_off": [interrupted_view(one) for one in found.interrupted],
        "degraded": [_degraded(one) for one in found.degraded],
        "git": found.git,
        "last": _last(found.last),
        "redo": found.redo,
        "agents": [_agent(one) for one in agents],
        "next": next_step,
        "skipped_counts": dict(Counter(skip.reason.value for skip in found.skipped)),
        "warnings": [gap.finding for gap in found.gaps],
    }
    if found.approval is not None:
        view["approval"] = approval_view(found.approval)
        view["rounds"] = [round_view(one) for one in found.rounds]
    if skipped:
        view["skipped"] = skipped_view(found.skipped)
    return view


def _agent(one: AgentProtection) -> AgentView:
    return {
        "agent": one.agent,
        "scope": one.scope,
        "protected": one.protected,
        "finding": one.finding,
        "cure": one.cure,
        "last_event": None if one.last_event is None else iso(one.last_event),
    }


def _cleanup(last: "LastCleanup | None") -> CleanupNoteView | None:
    if last is None:
        return None
    return {"at": iso(last.at), "deleted": last.deleted, "freed_bytes": last.freed_bytes}


def _last_check(last: "LastCheck | None") -> CheckNoteView | None:
    if last is None:
        return None
    return {"at": iso(last.at), "problems": last.problems, "data": last.data}


def _degraded(one: "Degraded") -> DegradedView:
    until = one.left_alone_until_ns
    return {
        "component": one.name,
        "reason": one.reason,
        "failures": one.failures,
        "left_alone_until": None if until is None else iso_from_ns(until),
    }


def _last(last: "LastAction | None") -> LastActionView | None:
    if last is None:
        return None
    return {"what": last.what, "at": None if last.at is None else iso(last.at)}
