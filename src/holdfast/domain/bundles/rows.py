"""The rows of a bundle: where it comes from, its sessions and its checkpoints.

Each is one JSON object. Unknown keys are ignored, so that later versions can add some. A missing
key, a value of the wrong type or one that no store would accept raises `ValueError`. Every id, name
and text passes the same checks as when it is first stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn, TypeVar

from holdfast.domain.checkpoints import ChangeCounts, Kind, NewCheckpoint
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import (
    CHECKPOINT_ID_LENGTH,
    CheckpointId,
    SessionId,
    parse_digest,
    session_id,
)
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.sessions import Session, SessionStatus

T = TypeVar("T")

_ID = re.compile(rf"[0-9a-f]{{{CHECKPOINT_ID_LENGTH}}}\Z")
_LARGEST_NUMBER = (1 << 63) - 1
_LONGEST_TEXT = 10_000


@dataclass(frozen=True, slots=True)
class Origin:
    """The bundle header: its source and how much follows.

    `latest` is the checkpoint to restore by default. `content_bytes` is the size of all objects
    before compression.
    """

    workspace_id: str
    workspace: str
    made_at_ns: int
    latest: CheckpointId
    sessions: int
    checkpoints: int
    objects: int
    content_bytes: int


def encode_origin(origin: Origin) -> bytes:
    return _encode(asdict(origin))


def decode_origin(data: bytes) -> Origin:
    fields = decoded_object(data)
    return Origin(
        workspace_id=bundled_checkpoint_id(fields["workspace_id"]),
        workspace=_text(fields["workspace"]),
        made_at_ns=bundled_number(fields["made_at_ns"], signed=True),
        latest=bundled_checkpoint_id(fields["latest"]),
        sessions=bundled_number(fields["sessions"]),
        checkpoints=bundled_number(fields["checkpoints"]),
        objects=bundled_number(fields["objects"]),
        content_bytes=bundled_number(fields["content_bytes"]),
    )


def encode_session(session: Session, rounds: Sequence[dict[str, Any]] = ()) -> bytes:
    return _encode(
        {
            "id": session.id,
            "created_at_ns": session.created_at_ns,
            "status": session.status.value,
            "title": session.title,
            "agent": session.agent,
            "head": session.head,
            "approved": session.approved,
            "round": session.round,
            "rounds": list(rounds),
        }
    )


def decode_session(data: bytes) -> Session:
    fields = decoded_object(data)
    return Session(
        id=bundled_session_id(fields["id"]),
        created_at_ns=bundled_number(fields["created_at_ns"], signed=True),
        status=SessionStatus(fields["status"]),
        title=optional(fields["title"], _text),
        agent=optional(fields["agent"], _text),
        head=optional(fields["head"], bundled_checkpoint_id),
        approved=optional(fields["approved"], bundled_checkpoint_id),
        round=bundled_number(fields.get("round", 1)),
    )


def encode_checkpoint(row: NewCheckpoint) -> bytes:
    return _encode(
        {
            "id": row.id,
            "session_id": row.session_id,
            "parent": row.parent,
            "kind": row.kind.value,
            "created_at_ns": row.created_at_ns,
            "tree": row.tree.hex(),
            "intent": row.intent.to_dict(),
            "files": row.files,
            "size_bytes": row.size_bytes,
            "changed": row.changed.to_dict(),
            "report": None if row.report is None else row.report.hex(),
            "restores_from": row.restores_from,
            "partial": row.partial,
            "message_index": row.message_index,
            "tool_use_id": row.tool_use_id,
            "round": row.round,
            "components": None if row.components is None else row.components.hex(),
        }
    )


def decode_checkpoint(data: bytes) -> NewCheckpoint:
    fields = decoded_object(data)
    changed = bundled_object(fields["changed"])
    return NewCheckpoint(
        id=bundled_checkpoint_id(fields["id"]),
        session_id=bundled_session_id(fields["session_id"]),
        parent=optional(fields["parent"], bundled_checkpoint_id),
        kind=Kind(fields["kind"]),
        created_at_ns=bundled_number(fields["created_at_ns"], signed=True),
        tree=parse_digest(fields["tree"]),
        intent=_intent(bundled_object(fields["intent"])),
        files=bundled_number(fields["files"]),
        size_bytes=bundled_number(fields["size_bytes"]),
        changed=ChangeCounts(
            bundled_number(changed["added"]),
            bundled_number(changed["modified"]),
            bundled_number(changed["removed"]),
        ),
        report=optional(fields["report"], parse_digest),
        restores_from=optional(fields["restores_from"], bundled_checkpoint_id),
        partial=_flag(fields["partial"]),
        message_index=optional(fields.get("message_index"), bundled_number),
        tool_use_id=optional(fields.get("tool_use_id"), _text),
        round=bundled_number(fields.get("round", 1)),
        components=optional(fields.get("components"), parse_digest),
    )


def _intent(fields: dict[str, Any]) -> SnapshotIntent:
    for key in ("goal_id", "task_id"):
        if fields[key] is not None and not isinstance(fields[key], str):
            raise ValueError(f"{key} is not text")
    for key in ("tool_calls", "tags"):
        if not isinstance(fields[key], list):
            raise ValueError(f"{key} is not a list")
    return make_intent(
        fields["reasoning"],
        goal_id=fields["goal_id"],
        task_id=fields["task_id"],
        tool_calls=fields["tool_calls"],
        confidence=fields["confidence"],
        name=fields["checkpoint_name"],
        tags=fields["tags"],
    )


def _encode(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def decoded_object(data: bytes) -> dict[str, Any]:
    try:
        return bundled_object(json.loads(data, parse_constant=_refuse_constant))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that can be stored")


def bundled_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    return value


def optional(value: Any, check: Callable[[Any], T]) -> T | None:
    return None if value is None else check(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "\0" in value:
        raise ValueError("expected text")
    return value


def bundled_number(value: Any, *, signed: bool = False) -> int:
    lowest = -_LARGEST_NUMBER if signed else 0
    if type(value) is not int or not lowest <= value <= _LARGEST_NUMBER:
        raise ValueError("expected a number")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def bundled_checkpoint_id(value: Any) -> CheckpointId:
    if not isinstance(value, str) or not _ID.match(value):
        raise ValueError(f"{value!r:.60} is not an id")
    return CheckpointId(value)


def bundled_session_id(value: Any) -> SessionId:
    if not isinstance(value, str):
        raise ValueError("a session has no name")
    try:
        value.encode()
        return session_id(value)
    except (UsageError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None
