"""Events as HTTP clients follow them. `user` and `file_edit` have the fields that dialog clients
expect, and no others."""

from typing import TypedDict

from holdfast.api.views.snapshots import CheckpointSummaryView


class UserEventView(TypedDict):
    """A user's message, and the checkpoint that was made before it."""

    type: str
    content: str
    checkpoint: str | None
    dialog_id: str


class FileEditEventView(TypedDict):
    """A file that an edit changed. `diff` is null where it is not kept."""

    type: str
    file: str
    diff: str | None
    dialog_id: str


class CheckpointEventView(TypedDict):
    """A new checkpoint; `summary` is null if it was deleted meanwhile."""

    type: str
    at: str
    session_id: str | None
    checkpoint: str | None
    summary: CheckpointSummaryView | None


class RestoreEventView(TypedDict):
    """A restore; `kind` is `restore`, `undo`, `redo` or `reset`. `checkpoint` is its record,
    `restored_to` what was restored, and `safety` the state before it."""

    type: str
    kind: str
    at: str
    session_id: str | None
    checkpoint: str | None
    restored_to: str | None
    safety: str | None


class ApprovalEventView(TypedDict):
    """A round that was approved with a checkpoint."""

    type: str
    at: str
    session_id: str | None
    checkpoint: str | None


class StatusEventView(TypedDict):
    """Anything else. `what` is `annotation`, `deletion`, `settings`, `status`, `message`, `accept`,
    `import`, `repair`, `progress`, `behind` or `unavailable`; `about` has its details."""

    type: str
    what: str
    at: str | None
    session_id: str | None
    checkpoint: str | None
    about: dict[str, str | int | None]


StreamEventView = (
    UserEventView
    | FileEditEventView
    | CheckpointEventView
    | RestoreEventView
    | ApprovalEventView
    | StatusEventView
)
