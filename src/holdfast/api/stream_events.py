"""Events of a workspace with what clients show of them, read when the event is passed on.

An edit of several files becomes one event per file. Content that is no longer readable is null.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.api.pages import checkpoint_summary
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import Event, EventType
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.api.views.streams import (
        CheckpointEventView,
        RestoreEventView,
        StatusEventView,
        StreamEventView,
    )
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.story import Message

_RESTORES = (EventType.RESTORE, EventType.UNDO, EventType.REDO, EventType.RESET)
_HEADER = re.compile(r"^--- (?:/dev/null|a/(.*))\n\+\+\+ (?:/dev/null|b/(.*))\n", re.MULTILINE)


def stream_events(workspace: Workspace, event: Event) -> list[StreamEventView]:
    """What clients are sent of an event."""
    at = iso_from_ns(event.at_ns)
    if event.type is EventType.MESSAGE and event.about.get("role") == "user":
        said = _message(workspace, event)
        if said is not None and event.session_id is not None:
            return [
                {
                    "type": "user",
                    "content": said.content,
                    "checkpoint": said.checkpoint,
                    "dialog_id": event.session_id,
                }
            ]
    if event.type is EventType.FILE_EDIT:
        return _file_edits(workspace, event) or [_status(event, at)]
    if event.type is EventType.CHECKPOINT:
        found = _checkpoint(workspace, event)
        made: CheckpointEventView = {
            "type": "checkpoint",
            "at": at,
            "session_id": event.session_id,
            "checkpoint": event.checkpoint,
            "summary": None if found is None else checkpoint_summary(workspace, found),
        }
        return [made]
    if event.type in _RESTORES:
        record, safety = _checkpoint(workspace, event), event.about.get("safety")
        restored: RestoreEventView = {
            "type": "restore",
            "kind": event.type.value,
            "at": at,
            "session_id": event.session_id,
            "checkpoint": event.checkpoint,
            "restored_to": None if record is None else record.restores_from,
            "safety": None if safety is None else str(safety),
        }
        return [restored]
    if event.type is EventType.APPROVAL:
        return [
            {
                "type": "approval",
                "at": at,
                "session_id": event.session_id,
                "checkpoint": event.checkpoint,
            }
        ]
    return [_status(event, at)]


def _status(event: Event, at: str) -> StatusEventView:
    return {
        "type": "status",
        "what": event.type.value,
        "at": at,
        "session_id": event.session_id,
        "checkpoint": event.checkpoint,
        "about": dict(event.about),
    }


def _checkpoint(workspace: Workspace, event: Event) -> Checkpoint | None:
    if event.session_id is None or event.checkpoint is None:
        return None
    try:
        return workspace.resolve(event.session_id, event.checkpoint)
    except HoldfastError:
        return None


def _message(workspace: Workspace, event: Event) -> Message | None:
    index = event.about.get("message")
    if event.session_id is None or not isinstance(index, int):
        return None
    try:
        found = workspace.conversation.messages(event.session_id, first=index, limit=1)
    except HoldfastError:
        return None
    return found[0] if found else None


def _file_edits(workspace: Workspace, event: Event) -> list[StreamEventView]:
    number, session_id = event.about.get("edit"), event.session_id
    if session_id is None or not isinstance(number, int):
        return []
    try:
        edits = workspace.edits.activities(session_id, after=number - 1, limit=1)
        whole = workspace.edits.diff(session_id, number)
    except HoldfastError:
        return []
    if not edits or edits[0].number != number:
        return []
    paths = edits[0].paths
    names = {to_text(path) for path in paths}
    diffs = _by_file(whole or "", names) if len(paths) != 1 else {to_text(paths[0]): whole}
    return [
        {
            "type": "file_edit",
            "file": to_text(bytes(workspace.path) + b"/" + path),
            "diff": diffs.get(to_text(path)) or None,
            "dialog_id": session_id,
        }
        for path in paths
    ]


def _by_file(diff: str, names: Collection[str]) -> dict[str, str]:
    """The parts of a unified diff by their path. Changed lines can look like the header of a file,
    such as `-- old` and `++ new`: those name none of the edited ones."""
    headers = [
        (found.start(), name)
        for found in _HEADER.finditer(diff)
        if (name := found[1] or found[2]) in names
    ]
    ends = [start for start, _ in headers[1:]] + [len(diff)]
    return {name: diff[start:end] for (start, name), end in zip(headers, ends, strict=True)}
