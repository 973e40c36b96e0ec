"""Checkpoints and git as agent tools return them: flat, with times in milliseconds.

Dataclasses, because `ToolResult.data` is public: library users read its attributes, and MCP output
schemas are generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import KINDS_OF_TYPE
from holdfast.domain.wording import iso

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint, Kind
    from holdfast.domain.git.drift import GitDrift


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """One checkpoint. `type` groups kinds: manual, auto, session or risky. `sha` is the digest of
    its files: the same for the same files."""

    id: str
    sha: str
    session_id: str
    name: str | None
    kind: str
    type: str
    created_at: str
    timestamp: str
    reasoning: str
    confidence: float
    tags: list[str]
    files: int
    size_bytes: int
    added: int
    modified: int
    removed: int
    parent: str | None
    is_head: bool
    partial: bool
    restores_from: str | None
    restore_hint: str


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """A message of the conversation; a long one is cut."""

    index: int
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class GitPlaceInfo:
    """The position of HEAD: no branch if it is detached, no commit before the first."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class GitNow:
    """The position of HEAD, and how many tracked files are changed, deleted or staged; null if
    unknown."""

    branch: str | None
    commit: str | None
    dirty: int | None


@dataclass(frozen=True, slots=True)
class GitDriftInfo:
    """HEAD is not where it was at the checkpoint. A commit of everything would contain this many
    changed files."""

    then: GitPlaceInfo
    now: GitPlaceInfo
    changed_files: int | None


def kind_type(kind: Kind) -> str:
    return next(name for name, kinds in KINDS_OF_TYPE.items() if kind in kinds)


def checkpoint_info(
    found: Checkpoint, *, head: str | None, longest: int | None = None
) -> CheckpointInfo:
    """With `longest`, the reasoning is shortened."""
    reasoning = found.intent.reasoning
    if longest is not None and len(reasoning) > longest:
        reasoning = reasoning[: longest - 1] + "…"
    created_at = iso(found.created_at, "milliseconds")
    return CheckpointInfo(
        id=found.id,
        sha=found.tree.hex(),
        session_id=found.session_id,
        name=found.name,
        kind=found.kind.value,
        type=kind_type(found.kind),
        created_at=created_at,
        timestamp=created_at,
        reasoning=reasoning,
        confidence=found.intent.confidence,
        tags=list(found.intent.tags),
        files=found.files,
        size_bytes=found.size_bytes,
        added=found.changed.added,
        modified=found.changed.modified,
        removed=found.changed.removed,
        parent=found.parent,
        is_head=found.id == head,
        partial=found.partial,
        restores_from=found.restores_from,
        restore_hint=restore_hint(found.id),
    )


def restore_hint(reference: str) -> str:
    """The call that restores a checkpoint."""
    return f'checkpoint_restore {{"checkpoint_id": "{reference}"}}'


def git_drift_info(git: GitDrift | None) -> GitDriftInfo | None:
    if git is None or not git.moved:
        return None
    then, now = (GitPlaceInfo(place.branch, place.commit) for place in (git.then, git.now))
    return GitDriftInfo(then, now, git.changed_files)
