"""Workspace events as a numbered stream.

An event says what happened, but holds no content. A subscriber looks up the message, the diff or
the annotation by the keys in `about`, and gets its current version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.story import Activity, Annotation, Message
from holdfast.values.classes import dataclass, field

About: TypeAlias = Mapping[str, str | int | None]


class EventType(StrEnum):
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    UNDO = "undo"
    REDO = "redo"
    APPROVAL = "approval"
    RESET = "reset"
    ACCEPT = "accept"
    DELETION = "deletion"
    IMPORT = "import"
    REPAIR = "repair"
    MESSAGE = "message"
    FILE_EDIT = "file_edit"
    ANNOTATION = "annotation"
    SETTINGS = "settings"
    STATUS = "status"


_OF_OPERATIONS = {
    OperationKind.CHECKPOINT: EventType.CHECKPOINT,
    OperationKind.RESTORE: EventType.RESTORE,
    OperationKind.UNDO: EventType.UNDO,
    OperationKind.REDO: EventType.REDO,
    OperationKind.APPROVE: EventType.APPROVAL,
    OperationKind.RESET: EventType.RESET,
    OperationKind.ABANDON: EventType.RESET,
    OperationKind.ACCEPT: EventType.ACCEPT,
    OperationKind.DELETE: EventType.DELETION,
    OperationKind.PRUNE: EventType.DELETION,
    OperationKind.PURGE: EventType.DELETION,
    OperationKind.LOST: EventType.DELETION,
    OperationKind.IMPORT: EventType.IMPORT,
    OperationKind.REPAIR: EventType.REPAIR,
    OperationKind.ARCHIVE: EventType.STATUS,
}


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before it has a number. `key` is unique, so an event is recorded once, however often
    its source is read."""

    key: str
    type: EventType
    at_ns: int
    session_id: SessionId | None = None
    checkpoint: CheckpointId | None = None
    about: About = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Numbers increase and are never reused."""

    number: int
    type: EventType
    at_ns: int
    session_id: SessionId | None
    checkpoint: CheckpointId | None
    about: About


def of_operation(done: Operation) -> NewEvent:
    about: dict[str, str | int | None] = {"operation": done.sequence, "kind": done.kind.value}
    if done.safety is not None:
        about["safety"] = done.safety
    if done.reverses is not None:
        about["reverses"] = done.reverses
    if done.kind is OperationKind.ARCHIVE:
        about["status"] = "archived"
    return NewEvent(
        _key("operation", done.sequence, done.at_ns, done.checkpoint),
        _OF_OPERATIONS[done.kind],
        done.at_ns,
        done.session_id,
        done.checkpoint,
        about,
    )


def of_message(said: Message) -> NewEvent:
    return NewEvent(
        _key("message", said.session_id, said.index, said.at_ns),
        EventType.MESSAGE,
        said.at_ns,
        said.session_id,
        about={"message": said.index, "role": said.role.value},
    )


def of_annotation(note: Annotation) -> NewEvent:
    return NewEvent(
        _key("annotation", note.session_id, note.checkpoint_id, note.number, note.revision),
        EventType.ANNOTATION,
        note.at_ns,
        note.session_id,
        note.checkpoint_id,
        {"annotation": note.number, "revision": note.revision},
    )


def of_edit(edit: Activity) -> NewEvent:
    """For a finished edit of files."""
    return NewEvent(
        _key("edit", edit.session_id, edit.checkpoint, edit.started_at_ns),
        EventType.FILE_EDIT,
        edit.started_at_ns if edit.ended_at_ns is None else edit.ended_at_ns,
        edit.session_id,
        edit.checkpoint,
        {"edit": edit.number, "status": edit.status.value},
    )


def of_setting(setting: str, at_ns: int) -> NewEvent:
    return NewEvent(
        _key("setting", setting, at_ns), EventType.SETTINGS, at_ns, about={"setting": setting}
    )


def of_status(session_id: SessionId, status: str, at_ns: int) -> NewEvent:
    """`status` is the session's new status, `deleted` if it is gone."""
    return NewEvent(
        _key("status", session_id, status, at_ns),
        EventType.STATUS,
        at_ns,
        session_id,
        about={"status": status},
    )


def _key(*parts: str | int | None) -> str:
    return json.dumps(parts)
