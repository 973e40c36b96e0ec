"""Checkpoints as HTTP clients read them: the fields of published checkpoint APIs, and Holdfast's
own.

Clients of other tools know a checkpoint as `{id, session_id, type, name, annotation, files, git}`
or as `{id, timestamp, parent, intent, artifacts, manifest}`. A view has both sets of names.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from holdfast.api.views.checkpoints import (
    AnnotationView,
    ChangeCountsView,
    ComponentStateView,
    DatabaseView,
    MessageTextView,
    SkippedView,
    annotation_view,
    change_counts_view,
    component_view,
    database_view,
    message_text_view,
    skipped_view,
)
from holdfast.api.views.git import git_at_checkpoint_view
from holdfast.domain.checkpoints import AUTOMATIC_KINDS
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso

if TYPE_CHECKING:
    from holdfast.api.contents import SavedDatabase
    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.story import Annotation, Message
    from holdfast.domain.trees.entries import FileEntry

_PREVIEW_LENGTH = 80


class CheckpointSummaryView(TypedDict):
    """One checkpoint in a list. `type` is `auto` or `manual`; `annotation` is the newest note.
    Lists cut `reasoning` and `annotation` after 2,000 characters."""

    id: str
    session_id: str
    type: str
    kind: str
    name: str | None
    checkpoint_name: str | None
    annotation: str | None
    created_at: str
    timestamp: str
    parent: str | None
    reasoning: str
    reasoning_preview: str
    goal_id: str | None
    task_id: str | None
    tags: list[str]
    confidence: float
    message_index: int | None
    tool_use_id: str | None
    file_count: int
    size_bytes: int
    changed: ChangeCountsView
    partial: bool
    restores_from: str | None
    is_head: bool


class GitStateView(TypedDict):
    """Git at a checkpoint. `dirty` is null if the number of dirty files is unknown."""

    branch: str | None
    commit_hash: str | None
    has_uncommitted_changes: bool
    staged_files: list[str]
    dirty: int | None
    dirty_files: list[str]


class CheckpointFileView(TypedDict):
    """One file. `content` and `encoding` come only with contents: `utf-8`, or `base64` for other
    bytes. `content` is null for a file that is ignored or damaged, is larger than 1 MiB, or comes
    after 2 MiB of others."""

    path: str
    mode: int
    hash: str
    size_bytes: int
    content: NotRequired[str | None]
    encoding: NotRequired[str]


class ArtifactView(TypedDict):
    """The same file in the words of a workspace snapshot."""

    path: str
    content_hash: str
    status: str


class IntentView(TypedDict):
    """Why a checkpoint was made."""

    reasoning: str
    goal_id: str | None
    task_id: str | None
    tool_calls: list[Any]
    confidence: float
    checkpoint_name: str | None
    tags: list[str]


class CheckpointDetailView(CheckpointSummaryView):
    """Everything about one checkpoint. `files`, `artifacts` and `manifest` list the same files;
    `files_next` asks for the following ones."""

    intent: IntentView
    tool_calls: list[Any]
    files: list[CheckpointFileView]
    artifacts: list[ArtifactView]
    manifest: list[list[str]]
    files_next: str | None
    git: GitStateView | None
    round: str
    is_approved: bool
    message: MessageTextView | None
    annotations: list[AnnotationView]
    skipped: list[SkippedView]
    components: list[ComponentStateView]
    databases: list[DatabaseView]


class CheckpointFilesView(TypedDict):
    """A page of the files in a checkpoint, in order; `next` is the cursor of the next page."""

    checkpoint: str
    files: list[CheckpointFileView]
    next: str | None


def checkpoint_summary_view(
    found: "Checkpoint", *, annotation: "Annotation | None", is_head: bool
) -> CheckpointSummaryView:
    intent, made = found.intent, iso(found.created_at)
    return {
        "id": found.id,
        "session_id": found.session_id,
        "type": "auto" if found.kind in AUTOMATIC_KINDS else "manual",
        "kind": found.kind.value,
        "name": found.name,
        "checkpoint_name": found.name,
        "annotation": None if annotation is None else annotation.text,
        "created_at": made,
        "timestamp": made,
        "parent": found.parent,
        "reasoning": intent.reasoning,
        "reasoning_preview": intent.reasoning[:_PREVIEW_LENGTH],
        "goal_id": intent.goal_id,
        "task_id": intent.task_id,
        "tags": list(intent.tags),
        "confidence": intent.confidence,
        "message_index": found.message_index,
        "tool_use_id": found.tool_use_id,
        "file_count": found.files,
        "size_bytes": found.size_bytes,
        "changed": change_counts_view(found.changed),
        "partial": found.partial,
        "restores_from": found.restores_from,
        "is_head": is_head,
    }


def checkpoint_detail_view(
    found: "Checkpoint",
    files: list[CheckpointFileView],
    files_next: str | None,
    *,
    is_head: bool,
    is_approved: bool,
    message: "Message | None",
    annotations: "Sequence[Annotation]",
    skipped: "Iterable[Skipped]",
    components: "Sequence[ComponentState]",
    databases: "Sequence[SavedDatabase]",
) -> CheckpointDetailView:
    from holdfast.domain.sessions import round_name

    newest = annotations[-1] if annotations else None
    git = next((state for state in components if state.name == "git"), None)
    intent = _intent(found)
    return {
        **checkpoint_summary_view(found, annotation=newest, is_head=is_head),
        "intent": intent,
        "tool_calls": intent["tool_calls"],
        "files": files,
        "artifacts": [
            {"path": one["path"], "content_hash": one["hash"], "status": "passed"} for one in files
        ],
        "manifest": [[one["path"], one["hash"]] for one in files],
        "files_next": files_next,
        "git": git_state_view(git, found),
        "round": round_name(found.round),
        "is_approved": is_approved,
        "message": None if message is None else message_text_view(message),
        "annotations": [annotation_view(note) for note in annotations],
        "skipped": skipped_view(skipped),
        "components": [component_view(state) for state in components],
        "databases": [database_view(one) for one in databases],
    }


def _intent(found: "Checkpoint") -> IntentView:
    intent = found.intent
    return {
        "reasoning": intent.reasoning,
        "goal_id": intent.goal_id,
        "task_id": intent.task_id,
        "tool_calls": [one if isinstance(one, str) else dict(one) for one in intent.tool_calls],
        "confidence": intent.confidence,
        "checkpoint_name": intent.checkpoint_name,
        "tags": list(intent.tags),
    }


def git_state_view(state: "ComponentState | None", found: "Checkpoint") -> GitStateView | None:
    git = git_at_checkpoint_view(state, found)
    if git is None:
        return None
    return {
        "branch": git["branch"],
        "commit_hash": git["commit"],
        "has_uncommitted_changes": bool(git["dirty"]),
        "staged_files": git["staged_files"],
        "dirty": git["dirty"],
        "dirty_files": git["dirty_files"],
    }


def checkpoint_file_view(path: bytes, entry: "FileEntry") -> CheckpointFileView:
    return {
        "path": to_text(path),
        "mode": entry.mode,
        "hash": entry.digest.hex(),
        "size_bytes": entry.size,
    }
