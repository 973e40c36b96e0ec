"""Checkpoints: list, show, make, annotate, name and delete; and their files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.requests import Request

from holdfast.api.pages import (
    checkpoint_detail,
    checkpoint_files,
    checkpoint_page,
    checkpoint_summary,
)
from holdfast.api.views.checkpoints import (
    AnnotationView,
    DeletedView,
    annotation_view,
    deleted_view,
)
from holdfast.api.views.snapshots import (
    CheckpointDetailView,
    CheckpointFilesView,
    CheckpointSummaryView,
)
from holdfast.api.workspace import Workspace
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.intent import DEFAULT_CONFIDENCE, make_intent
from holdfast.interfaces.web.operations import LATER, run_long
from holdfast.interfaces.web.parameters import (
    Cursor,
    Limit,
    PathQuery,
    Reference,
    RequestBody,
    SessionParameter,
)
from holdfast.interfaces.web.routing import (
    Answer,
    Route,
    address,
    known_session,
    link_next,
    path_parameter,
    raw_parameter,
    served,
    served_checkpoint,
    server_of,
)

_AUTHOR = "web"


class NewCheckpoint(RequestBody):
    """A checkpoint to make. `annotation` becomes its first note."""

    reasoning: str = Field(default="", max_length=100_000)
    name: str | None = Field(default=None, max_length=200)
    annotation: str | None = Field(default=None, max_length=100_000)
    goal_id: str | None = Field(default=None, max_length=1000)
    task_id: str | None = Field(default=None, max_length=1000)
    tool_calls: list[str | dict[str, Any]] = Field(default=[], max_length=1000)
    confidence: float = Field(default=DEFAULT_CONFIDENCE, ge=0, le=1, strict=False)
    tags: list[str] = Field(default=[], max_length=100)


class CheckpointChange(RequestBody):
    """Changes to a checkpoint: its name (null removes it), its tags, and a note. `annotation`
    replaces the newest note, or the one with that `number`."""

    annotation: str | None = Field(default=None, min_length=1, max_length=100_000)
    author: str | None = Field(default=None, max_length=200)
    number: int | None = Field(default=None, ge=1)
    name: str | None = Field(default=None, max_length=200)
    add_tags: list[str] = Field(default=[], max_length=100)
    remove_tags: list[str] = Field(default=[], max_length=100)


class NewAnnotation(RequestBody):
    """A note; `number` is the note that it replaces."""

    text: str = Field(min_length=1, max_length=100_000)
    author: str | None = Field(default=None, max_length=200)
    number: int | None = Field(default=None, ge=1)


def list_checkpoints(
    request: Request,
    session_id: SessionParameter,
    limit: Limit = 100,
    cursor: Cursor = None,
    records: Annotated[bool, Query(description="Include restore records.")] = False,
) -> Answer:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        page = checkpoint_page(workspace, wanted, limit=limit, cursor=cursor, records=records)
    return Answer(page.checkpoints, headers=link_next(request, page.next))


def create_checkpoint(
    request: Request, session_id: SessionParameter, body: NewCheckpoint
) -> Answer:
    wanted = valid_session_id(session_id)

    def work(workspace: Workspace) -> Answer:
        reason = body.reasoning or body.annotation or workspace.restores.generated_reason()
        intent = make_intent(
            reason,
            goal_id=body.goal_id,
            task_id=body.task_id,
            tool_calls=body.tool_calls,
            confidence=body.confidence,
            name=body.name,
            tags=body.tags,
        )
        with server_of(request).telemetry.save(wanted) as span:
            made = workspace.save(wanted, intent).checkpoint
            span.update(checkpoint=made.id, files=made.files, size_bytes=made.size_bytes)
        if body.annotation:
            workspace.conversation.annotate(wanted, made.id, body.annotation, _AUTHOR)
        view = checkpoint_detail(workspace, made, files=0)
        place = address(request, "sessions", wanted, "checkpoints", made.id)
        return Answer(view, 201, {"location": place})

    return run_long(request, "checkpoint", work, create=True)


def show_checkpoint(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    files: Annotated[int, Query(ge=0, le=10_000, description="How many files to list.")] = 1000,
    content: Annotated[bool, Query(description="Include the contents of files.")] = True,
) -> CheckpointDetailView:
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        return checkpoint_detail(workspace, found, files=files, contents=content)


def list_files(
    request: Request,
    session_id: SessionParameter,
    checkpoint_id: Reference,
    limit: Limit = 1000,
    cursor: Cursor = None,
    path: PathQuery = None,
    content: Annotated[bool, Query(description="Include the contents of files.")] = False,
) -> Answer:
    directory, last = path_parameter(request) or b"", raw_parameter(request, "cursor")
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        page = checkpoint_files(
            workspace, found, limit=limit, cursor=last, directory=directory, contents=content
        )
    return Answer(page)


def change_checkpoint(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, body: CheckpointChange
) -> CheckpointSummaryView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        found = workspace.resolve(wanted, checkpoint_id)
        if "name" in body.model_fields_set or body.add_tags or body.remove_tags:
            removes = "name" in body.model_fields_set and not body.name
            found = workspace.history.name(
                found,
                name=body.name or None,
                unname=removes and found.name is not None,
                tags=body.add_tags,
                untags=body.remove_tags,
            )
        if body.annotation is not None:
            notes = workspace.conversation.annotations(wanted, found.id)
            number = body.number or (notes[-1].number if notes else None)
            workspace.conversation.annotate(
                wanted, found.id, body.annotation, body.author or _AUTHOR, number=number
            )
        return checkpoint_summary(workspace, found)


def delete_checkpoint(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference
) -> DeletedView:
    with served_checkpoint(request, session_id, checkpoint_id) as (workspace, found):
        return deleted_view(found, workspace.history.delete(found))


def list_annotations(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference
) -> list[AnnotationView]:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        found = workspace.resolve(wanted, checkpoint_id)
        notes = workspace.conversation.annotations(wanted, found.id)
        return [annotation_view(note) for note in notes]


def annotate(
    request: Request, session_id: SessionParameter, checkpoint_id: Reference, body: NewAnnotation
) -> AnnotationView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        found = workspace.resolve(wanted, checkpoint_id)
        author = body.author or _AUTHOR
        return annotation_view(
            workspace.conversation.annotate(wanted, found.id, body.text, author, number=body.number)
        )


_ALL = "/api/sessions/{session_id}/checkpoints"
_ONE = f"{_ALL}/{{checkpoint_id}}"
ROUTES = (
    Route("GET", _ALL, list_checkpoints, list[CheckpointSummaryView], "List checkpoints"),
    Route(
        "POST",
        _ALL,
        create_checkpoint,
        CheckpointDetailView,
        "Make a checkpoint",
        "write",
        201,
        other_answers=LATER,
    ),
    Route("GET", _ONE, show_checkpoint, CheckpointDetailView, "Show a checkpoint"),
    Route("PUT", _ONE, change_checkpoint, CheckpointSummaryView, "Annotate, name or tag", "write"),
    Route("DELETE", _ONE, delete_checkpoint, DeletedView, "Delete a checkpoint", "admin"),
    Route("GET", f"{_ONE}/files", list_files, CheckpointFilesView, "List files of a checkpoint"),
    Route("GET", f"{_ONE}/annotations", list_annotations, list[AnnotationView], "List notes"),
    Route("POST", f"{_ONE}/annotations", annotate, AnnotationView, "Add a note", "write", 201),
)
