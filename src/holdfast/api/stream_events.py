"""Workspace events with the content that clients show, read when the event is delivered.

An edit of several files becomes one event per file. Content that is no longer readable is null.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from holdfast.api.pages import checkpoint_summary
from holdfast.api.views.streams import (
    approval_event_view,
    checkpoint_event_view,
    file_edit_view,
    restore_event_view,
    status_event_view,
    user_event_view,
)
from holdfast.domain.errors import HoldfastError
from holdfast.domain.events import Event, EventType
from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.api.views.snapshots import CheckpointSummaryView
    from holdfast.api.views.streams import StreamEventView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.story import Message

_RESTORES = (EventType.RESTORE, EventType.UNDO, EventType.REDO, EventType.RESET)
_HEADER = re.compile(r"^--- (?:/dev/null|a/(.*))\n\+\+\+ (?:/dev/null|b/(.*))\n", re.MULTILINE)


def stream_events(workspace: Workspace, event: Event) -> list[StreamEventView]:
    """The client events for one workspace event."""
    if event.type is EventType.MESSAGE and event.about.get("role") == "user":
        said = _message(workspace, event)
        if said is not None and event.session_id is not None:
            return [user_event_view(said, event.session_id)]
    if event.type is EventType.FILE_EDIT:
        return _file_edits(workspace, event) or [status_event_view(event)]
    if event.type is EventType.CHECKPOINT:
        found = _checkpoint(workspace, event)
        summary = None if found is None else _summary(workspace, found)
        return [checkpoint_event_view(event, summary)]
    if event.type in _RESTORES:
        return [restore_event_view(event, _checkpoint(workspace, event))]
    if event.type is EventType.APPROVAL:
        return [approval_event_view(event)]
    return [status_event_view(event)]


def _checkpoint(workspace: Workspace, event: Event) -> Checkpoint | None:
    if event.session_id is None or event.checkpoint is None:
        return None
    try:
        return workspace.resolve(event.session_id, event.checkpoint)
    except HoldfastError:
        return None


def _summary(workspace: Workspace, found: Checkpoint) -> CheckpointSummaryView | None:
    try:
        return checkpoint_summary(workspace, found)
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
        file_edit_view(
            bytes(workspace.path) + b"/" + path, diffs.get(to_text(path)) or None, session_id
        )
        for path in paths
    ]


def _by_file(diff: str, names: Collection[str]) -> dict[str, str]:
    """The parts of a unified diff, by path. Changed lines such as `-- old` and `++ new` can look
    like a file header, so only the paths of edited files count."""
    headers = [
        (found.start(), name)
        for found in _HEADER.finditer(diff)
        if (name := found[1] or found[2]) in names
    ]
    ends = [start for start, _ in headers[1:]] + [len(diff)]
    return {name: diff[start:end] for (start, name), end in zip(headers, ends, strict=True)}
