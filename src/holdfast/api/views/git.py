"""Where git is, or was at a checkpoint, as data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.git.place import dirty_files

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.git.drift import GitDrift, GitPlace
    from holdfast.domain.git.place import PresentGit


class GitPlaceView(TypedDict):
    """Where HEAD is: no branch when it is detached, no commit before the first."""

    branch: str | None
    commit: str | None


class GitNowView(GitPlaceView):
    """With the number of dirty tracked files; null where that is not known."""

    dirty: int | None


class GitAtCheckpointView(GitNowView):
    """With the names of the first dirty files."""

    dirty_files: list[str]


class GitDriftView(TypedDict):
    """HEAD is elsewhere than at the checkpoint; `modes` are the ways to restore git as well."""

    then: GitPlaceView
    now: GitPlaceView
    changed_files: int | None
    modes: list[str]


def git_now_view(git: "PresentGit | None") -> GitNowView | None:
    if git is None:
        return None
    return {"branch": git.branch, "commit": git.commit, "dirty": git.dirty}


def git_at_checkpoint_view(
    state: "ComponentState | None", checkpoint: "Checkpoint"
) -> GitAtCheckpointView | None:
    """From what the git component recorded; None where there was no repository."""
    head = None if state is None else state.facts.get("head")
    if state is None or not isinstance(head, Mapping):
        return None
    ref, dirty = head.get("ref"), dirty_files(state, checkpoint)
    return {
        "branch": str(ref).removeprefix("refs/heads/") if ref else None,
        "commit": head.get("commit"),
        "dirty": None if dirty is None else dirty["count"],
        "dirty_files": [] if dirty is None else dirty["files"],
    }


def git_drift_view(git: "GitDrift | None") -> GitDriftView | None:
    if git is None:
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
