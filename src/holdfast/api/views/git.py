"""Git as data: where it is, or was at a checkpoint, and checkpoints accepted as a commit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.api.exchange import AcceptRange
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.git.commits import AcceptOutcome
    from holdfast.domain.git.drift import GitDrift, GitPlace, PresentGit


class GitPlaceView(TypedDict):
    """The position of HEAD. The branch is null if it is detached, the commit before the first
    one."""

    branch: str | None
    commit: str | None


class GitNowView(GitPlaceView):
    """The position of HEAD, with the number of dirty tracked files; null if unknown."""

    dirty: int | None


class GitAtCheckpointView(GitNowView):
    """The position of HEAD at a checkpoint, with the names of the first dirty and staged files."""

    dirty_files: list[str]
    staged_files: list[str]


class GitDriftView(TypedDict):
    """HEAD has moved since the checkpoint; `modes` are the ways to restore git too."""

    then: GitPlaceView
    now: GitPlaceView
    changed_files: int | None
    modes: list[str]


class CommitPathView(TypedDict):
    """A path in a commit."""

    path: str
    status: str


class PathLeftOutView(TypedDict):
    """A path that is not in a commit, and why."""

    path: str
    reason: str


class ObstacleView(TypedDict):
    """A reason that prevents the commit, and the fix."""

    reason: str
    hint: str


AcceptView = TypedDict(  # not a class: `from` is a keyword
    "AcceptView",
    {
        "commit": str | None,
        "branch": str | None,
        "parent": str | None,
        "message": str,
        "from": str | None,
        "to": str,
        "checkpoints": list[str],
        "files": list[CommitPathView],
        "left_out": list[PathLeftOutView],
        "obstacles": list[ObstacleView],
        "warnings": list[str],
        "undo": str,
        "dry_run": bool,
        "elapsed_ms": float,
    },
)
AcceptView.__doc__ = """A range of checkpoints as one commit; with `dry_run`, the plan of one."""


def git_now_view(git: "PresentGit | None") -> GitNowView | None:
    if git is None:
        return None
    return {"branch": git.branch, "commit": git.commit, "dirty": git.dirty}


def git_at_checkpoint_view(
    state: "ComponentState | None", checkpoint: "Checkpoint"
) -> GitAtCheckpointView | None:
    """From the git component's record; None if there was no repository."""
    head = None if state is None else state.facts.get("head")
    if state is None or not isinstance(head, Mapping):
        return None
    from holdfast.domain.git.drift import dirty_files  # late: many workspaces have no repository

    ref, dirty = head.get("ref"), dirty_files(state, checkpoint)
    return {
        "branch": str(ref).removeprefix("refs/heads/") if ref else None,
        "commit": head.get("commit"),
        "dirty": None if dirty is None else dirty["count"],
        "dirty_files": [] if dirty is None else dirty["files"],
        "staged_files": [str(path) for _, path in state.facts.get("staged") or ()],
    }


def git_drift_view(git: "GitDrift | None") -> GitDriftView | None:
    if git is None or not git.moved:
        return None
    from holdfast.domain.git.drift import OFFERED

    return {
        "then": _place(git.then),
        "now": _place(git.now),
        "changed_files": git.changed_files,
        "modes": list(OFFERED),
    }


def _place(place: "GitPlace") -> GitPlaceView:
    return {"branch": place.branch, "commit": place.commit}


def accept_view(chosen: "AcceptRange", outcome: "AcceptOutcome", elapsed_ms: float) -> AcceptView:
    plan = outcome.plan
    branch = None if plan.branch is None else plan.branch.removeprefix(b"refs/heads/")
    return {
        "commit": outcome.commit,
        "branch": None if branch is None else to_text(branch),
        "parent": plan.head,
        "message": outcome.message,
        "from": None if chosen.start is None else chosen.start.id,
        "to": chosen.end.id,
        "checkpoints": [checkpoint.id for checkpoint in chosen.checkpoints],
        "files": [{"path": to_text(one.path), "status": one.status} for one in plan.paths],
        "left_out": [
            {"path": to_text(one.path), "reason": one.reason.value} for one in plan.left_out
        ],
        "obstacles": [{"reason": one.reason, "hint": one.way_out} for one in plan.obstacles],
        "warnings": list(outcome.warnings),
        "undo": outcome.undo,
        "dry_run": outcome.commit is None,
        "elapsed_ms": elapsed_ms,
    }
