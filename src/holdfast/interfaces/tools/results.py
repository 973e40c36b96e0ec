"""What a tool found or did, as plain data: the shapes that servers publish and programs read.

Texts can be written as UTF-8, whatever names the workspace holds; lists are bounded, and totals
tell how much there was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """One checkpoint."""

    id: str
    name: str | None
    kind: str
    created_at: str
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


@dataclass(frozen=True, slots=True)
class PathNote:
    """A path and what there is to say about it."""

    path: str
    note: str


@dataclass(frozen=True, slots=True)
class Created:
    """A checkpoint that is durable, and what is not in it although it should be. `deduplicated`: it
    is one that was there, because nothing has changed since."""

    checkpoint: CheckpointInfo
    problems: list[PathNote]
    left_out: int
    warnings: list[str]
    deduplicated: bool = False
    remarks: list[str] = field(default_factory=list)
    """Those of the warnings that nobody has to act on."""
    git: GitNow | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of checkpoints, newest first; `next_cursor` asks for the next one."""

    checkpoints: list[CheckpointInfo]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LineOfWork:
    """The steps that led to a checkpoint, newest first; `complete`: back to the beginning."""

    steps: list[CheckpointInfo]
    complete: bool


@dataclass(frozen=True, slots=True)
class NoteInfo:
    """What somebody wrote about a checkpoint."""

    number: int
    revision: int
    author: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything about one checkpoint. `components` is what it holds besides files, in lines."""

    checkpoint: CheckpointInfo
    goal_id: str | None
    task_id: str | None
    tool_calls: list[str | dict[str, Any]]
    left_out: list[PathNote]
    left_out_total: int
    paths: list[str] = field(default_factory=list)
    annotations: list[NoteInfo] = field(default_factory=list)
    components: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoundText:
    """A piece of text that matched: where it stands, and which message it is."""

    field: str
    text: str
    message_index: int | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A checkpoint, or a message that no checkpoint knows, with what matched."""

    checkpoint: CheckpointInfo | None
    matches: list[FoundText]


@dataclass(frozen=True, slots=True)
class Found:
    """Best first; not `complete` while the index has not taken everything in yet."""

    hits: list[SearchHit]
    complete: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A path that differs: added, removed, modified or renamed."""

    path: str
    change: str
    old_path: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two states; `to_id` is None for the workspace as it is now."""

    from_id: str
    to_id: str | None
    changes: list[ChangedPath]
    total: int
    diff: str | None
    diff_is_complete: bool


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """A message of the conversation; a long one is cut."""

    index: int
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ExplainedLines:
    """Neighbouring lines of one origin. `state` is written, initial (there before the history
    begins), unsaved or older (than what was looked at); `checkpoint` is the first that has them,
    `before` the one it follows, `path` what the file was called then. `others` are calls of other
    sessions that were running and may have written them; without `own`, no call of this one was."""

    first_line: int
    last_line: int
    text: str
    state: str
    path: str
    checkpoint: CheckpointInfo | None
    before: str | None
    reasoning: str | None
    tool_calls: list[str | dict[str, Any]]
    tool_use_id: str | None
    message: MessageInfo | None
    prompt: MessageInfo | None
    own: bool = True
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explained:
    """Where the lines of a file come from; `of` is None for the file as it is now."""

    path: str
    of: str | None
    total_lines: int
    spans: list[ExplainedLines]
    total_spans: int
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One step of a restore: create, restore, delete, chmod, relink, mkdir or rmdir."""

    step: str
    path: str


@dataclass(frozen=True, slots=True)
class ComponentNews:
    """What a restore does, or did, to a part of the state other than files. `status` is None in a
    preview, and afterwards restored or failed; `blocked` says why it cannot be, or was not."""

    name: str
    mode: str
    status: str | None
    actions: list[str]
    blocked: list[str]


@dataclass(frozen=True, slots=True)
class GitPlaceInfo:
    """Where HEAD is: no branch when it is detached, no commit before the first."""

    branch: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class GitNow:
    """Where HEAD is, and how many tracked files are changed, deleted or staged; null where that is
    not known."""

    branch: str | None
    commit: str | None
    dirty: int | None


@dataclass(frozen=True, slots=True)
class GitDriftInfo:
    """HEAD stays elsewhere than it was at the checkpoint; a commit of everything would contain so
    many changed files."""

    then: GitPlaceInfo
    now: GitPlaceInfo
    changed_files: int | None


@dataclass(frozen=True, slots=True)
class Restored:
    """A restore that was previewed or, when `done`, carried out. A preview of something that can be
    done has a `confirm_token`, and `plan_id` is the same for the same plan; what was done has the
    checkpoint of the state before it, and whether it was found to be what it should be. `kept` is
    what stays though the checkpoint does not have it; `missing` was left out of the checkpoint, and
    is gone."""

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
    """Those of the warnings that nobody has to act on."""
    git_now: GitNow | None = None


@dataclass(frozen=True, slots=True)
class Approved:
    """What is locked in, how many checkpoints of the round, and the round that begins."""

    checkpoint: CheckpointInfo
    merged_round: str
    new_round: str
    checkpoints_approved: int


@dataclass(frozen=True, slots=True)
class Annotated:
    """What is now written about a checkpoint; an edit is a new revision of the same number."""

    checkpoint: CheckpointInfo
    number: int
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A part of the state that the last checkpoint is without, and why. After some `failures` in a
    row it is left alone until a time; None when every save tries."""

    component: str
    reason: str
    failures: int
    left_alone_until: str | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the session, and of the store of its workspace. `has_unapproved`: the workspace or HEAD
    holds something that is not approved; `unsaved`: the workspace something that HEAD does not.
    These and the round are None before the first checkpoint."""

    workspace: str
    session_id: str
    checkpoints: int
    restores: int
    bytes_stored: int
    bytes_deduped: int
    snapshots: int
    content_blobs: int
    head: str | None
    degraded: list[DegradedPart] = field(default_factory=list)
    active_round: str | None = None
    has_unapproved: bool | None = None
    unsaved: bool | None = None


@dataclass(frozen=True, slots=True)
class DroppedCheckpoint:
    """A checkpoint that the rules let go, and the rule."""

    id: str
    session_id: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """A cleanup that was previewed or, when `done`, carried out. `bytes_freed` of a preview is what
    would not be needed any more."""

    done: bool
    dropped: list[DroppedCheckpoint]
    total_dropped: int
    total_kept: int
    bytes_freed: int
    warnings: list[str]
    confirm_token: str | None
    plan_id: str | None


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting with its value, where it comes from and what it means."""

    name: str
    value: str | int | float | bool | list[str] | dict[str, Any] | None
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class AutomaticSettings:
    """How automatic checkpoints are made and kept; `changed` are the names set by this call."""

    settings: list[SettingInfo]
    changed: list[str]
