"""Bounded pages of a workspace's history, for programs that display it.

A cursor is opaque: clients pass back the one from the previous page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, NotFound, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import from_text, require_safe_path, to_text
from holdfast.domain.trees.entries import FileEntry
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.api.contents import Contents
    from holdfast.api.views.history import ReplayMessageView
    from holdfast.api.views.pages import MessagesView
    from holdfast.api.views.snapshots import (
        CheckpointDetailView,
        CheckpointFilesView,
        CheckpointFileView,
        CheckpointSummaryView,
    )
    from holdfast.api.views.timeline import TimelineView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import SessionId
    from holdfast.domain.story import Annotation

_LARGEST_CONTENT = 1 << 20
_MOST_CONTENT = 2 << 20
"""Bytes of one file, and of all files on a page, that an answer contains."""
_MOST_SKIPPED = 1_000
_LONGEST_TEXT = 2_000
"""Characters of a reason, message or note in a list."""
_MOST_TEXT = 4_000_000


class CheckpointPage(NamedTuple):
    """Checkpoints, newest first; `next` is None on the last page."""

    checkpoints: list[CheckpointSummaryView]
    next: str | None


def checkpoint_page(
    workspace: Workspace,
    session_id: SessionId,
    *,
    limit: int,
    cursor: str | None = None,
    records: bool = False,
) -> CheckpointPage:
    """Checkpoints of a session; `records` adds restore records."""
    from holdfast.api.views.snapshots import checkpoint_summary_view

    found = workspace.history.checkpoints(
        session_id, limit=limit + 1, records=records, before=_sequence(cursor)
    )
    shown, more = found[:limit], len(found) > limit
    head = workspace.head()
    newest = _newest_annotations(workspace, session_id)
    views = [
        _shortened(
            checkpoint_summary_view(
                one, annotation=newest.get(one.id), is_head=head is not None and head.id == one.id
            )
        )
        for one in shown
    ]
    return CheckpointPage(views, str(shown[-1].sequence) if more else None)


def checkpoint_summary(workspace: Workspace, found: Checkpoint) -> CheckpointSummaryView:
    """One checkpoint, as in a page."""
    from holdfast.api.views.snapshots import checkpoint_summary_view

    notes = workspace.conversation.around(found).annotations
    head = workspace.head()
    return _shortened(
        checkpoint_summary_view(
            found,
            annotation=notes[-1] if notes else None,
            is_head=head is not None and head.id == found.id,
        )
    )


def _shortened(view: CheckpointSummaryView) -> CheckpointSummaryView:
    """Shorten long texts in a list; the detail view has them in full."""
    view["reasoning"] = view["reasoning"][:_LONGEST_TEXT]
    if view["annotation"] is not None:
        view["annotation"] = view["annotation"][:_LONGEST_TEXT]
    return view


def timeline_page(
    workspace: Workspace,
    session_id: SessionId | None,
    *,
    limit: int,
    cursor: str | None = None,
    messages: bool = True,
) -> TimelineView:
    """A page of a session's timeline or, for None, of the workspace's, with long texts cut."""
    from holdfast.api.views.timeline import timeline_view

    found = workspace.history.timeline(session_id, limit=limit, before=cursor, messages=messages)
    view = timeline_view(found)
    for event in view["events"]:
        if "checkpoint" in event:
            event["checkpoint"]["reasoning"] = event["checkpoint"]["reasoning"][:_LONGEST_TEXT]
        if "content" in event:
            event["content"] = event["content"][:_LONGEST_TEXT]
        if "text" in event:
            event["text"] = event["text"][:_LONGEST_TEXT]
    return view


def message_page(
    workspace: Workspace, session_id: SessionId, *, first: int, limit: int
) -> MessagesView:
    """Messages in full, by index; fewer than requested if they are long."""
    from holdfast.api.views.history import replay_message_view

    found = workspace.conversation.messages(session_id, first=first, limit=limit + 1)
    views: list[ReplayMessageView] = []
    room = _MOST_TEXT
    for one in found[:limit]:
        room -= len(one.content)
        if views and room < 0:
            break
        views.append(replay_message_view(one))
    more = len(views) < len(found)
    return {
        "session_id": session_id,
        "messages": views,
        "next": views[-1]["index"] + 1 if more and views else None,
    }


def checkpoint_detail(
    workspace: Workspace, found: Checkpoint, *, files: int, contents: bool = False
) -> CheckpointDetailView:
    """Everything about a checkpoint, with its first files."""
    from holdfast.api.views.snapshots import checkpoint_detail_view

    around, topic = workspace.conversation.around(found), workspace.contents
    head = workspace.head()
    with topic.explain_deletion((found,), "shown"):
        page = checkpoint_files(workspace, found, limit=files, contents=contents)
        return checkpoint_detail_view(
            found,
            page["files"],
            page["next"],
            is_head=head is not None and head.id == found.id,
            is_approved=found.id in workspace.rounds.approved(found.session_id),
            message=around.message,
            annotations=around.annotations,
            skipped=islice(topic.skipped(found), _MOST_SKIPPED),
            components=topic.component_states(found),
            databases=topic.databases(found),
        )


def checkpoint_files(
    workspace: Workspace,
    found: Checkpoint,
    *,
    limit: int,
    cursor: str | None = None,
    directory: bytes = b"",
    contents: bool = False,
) -> CheckpointFilesView:
    """Files of a checkpoint below a directory, in order; the cursor is the last path."""
    from holdfast.api.views.snapshots import checkpoint_file_view

    topic = workspace.contents
    listed = (
        (path, entry)
        for path, entry in topic.entries(found, directory)
        if isinstance(entry, FileEntry)
    )
    if cursor is not None:
        last = from_text(cursor).split(b"/")
        listed = (one for one in listed if one[0].split(b"/") > last)
    taken = list(islice(listed, limit + 1)) if limit else []
    views: list[CheckpointFileView] = []
    room = _MOST_CONTENT
    for path, entry in taken[:limit]:
        view = checkpoint_file_view(path, entry)
        if contents:
            room -= _add_content(topic, found, path, entry, view, room)
        views.append(view)
    more = len(taken) > limit if limit else found.files > 0
    return {
        "checkpoint": found.id,
        "files": views,
        "next": (views[-1]["path"] if views else cursor) if more else None,
    }


def _add_content(
    topic: Contents,
    found: Checkpoint,
    path: bytes,
    entry: FileEntry,
    view: CheckpointFileView,
    room: int,
) -> int:
    """Add a file's content, and return its size. Ignored and too large files have none."""
    view["content"], view["encoding"] = None, "utf-8"
    if entry.size > min(_LARGEST_CONTENT, room):
        return 0
    try:
        topic.require_shown(path, found)
        content = b"".join(topic.read(entry))
    except HoldfastError:
        return 0  # an unreadable file must not hide the others
    try:
        view["content"] = content.decode("utf-8")
    except UnicodeDecodeError:
        view["content"], view["encoding"] = b64encode(content).decode(), "base64"
    return len(content)


def file_in(workspace: Workspace, found: Checkpoint, path: bytes) -> FileEntry:
    """A file of a checkpoint whose content may be shown."""
    require_safe_path(path)
    entry = workspace.contents.entry(found, path)
    if not isinstance(entry, FileEntry):
        raise NotFound(
            f"{to_text(path)} is not a file in checkpoint {short(found.id)}",
            hint="list the files of the checkpoint",
        )
    workspace.contents.require_shown(path, found)
    return entry


def _newest_annotations(workspace: Workspace, session_id: SessionId) -> dict[str, Annotation]:
    notes: Sequence[Annotation]
    try:
        notes = workspace.conversation.annotations(session_id)
    except HoldfastError:
        return {}  # an unreadable conversation must not hide the checkpoints
    return {note.checkpoint_id: note for note in sorted(notes, key=lambda note: note.sequence)}


def _sequence(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise UsageError("the cursor is not valid", hint="pass the cursor of the last page")
    return int(cursor)
