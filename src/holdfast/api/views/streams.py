"""Events as HTTP clients follow them. `user` and `file_edit` have the fields that dialog clients
expect, and no others."""

from typing import TYPE_CHECKING, TypedDict

from holdfast.api.views.snapshots import CheckpointSummaryView
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.events import Event
    from holdfast.domain.ids import SessionId
    from holdfast.domain.story import Message


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
    """A new checkpoint; `summary` is null if it was deleted meanwhile or cannot be read."""

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


def user_event_view(said: "Message", session_id: "SessionId") -> UserEventView:
    return {
        "type": "user",
        "content": said.content,
        "checkpoint": said.checkpoint,
        "dialog_id": session_id,
    }


def file_edit_view(path: bytes, diff: str | None, session_id: "SessionId") -> FileEditEventView:
    return {"type": "file_edit", "file": to_text(path), "diff": diff, "dialog_id": session_id}


def checkpoint_event_view(
    event: "Event", summary: CheckpointSummaryView | None
) -> CheckpointEventView:
    return {
        "type": "checkpoint",
        "at": iso_from_ns(event.at_ns),
        "session_id": event.session_id,
        "checkpoint": event.checkpoint,
        "summary": summary,
    }


def restore_event_view(event: "Event", record: "Checkpoint | None") -> RestoreEventView:
    """`record` is the checkpoint that recorded the restore, if it still exists."""
    safety = event.about.get("safety")
    return {
        "type": "restore",
        "kind": event.type.value,
        "at": iso_from_ns(event.at_ns),
        "session_id": event.session_id,
        "checkpoint": event.checkpoint,
        "restored_to": None if record is None else record.restores_from,
        "safety": None if safety is None else str(safety),
    }


def approval_event_view(event: "Event") -> ApprovalEventView:
    return {
        "type": "approval",
        "at": iso_from_ns(event.at_ns),
        "session_id": event.session_id,
        "checkpoint": event.checkpoint,
    }


def status_event_view(event: "Event") -> StatusEventView:
    return {
        "type": "status",
        "what": event.type.value,
        "at": iso_from_ns(event.at_ns),
        "session_id": event.session_id,
        "checkpoint": event.checkpoint,
        "about": dict(event.about),
    }


def server_status_view(what: str, about: "Mapping[str, str | int | None]") -> StatusEventView:
    """A status that the server reports about itself. It is not a workspace event."""
    return {
        "type": "status",
        "what": what,
        "at": None,
        "session_id": None,
        "checkpoint": None,
        "about": dict(about),
    }
