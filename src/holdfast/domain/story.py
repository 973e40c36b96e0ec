"""The record around checkpoints: messages, annotations, and activities.

An activity (an edit of some files, an attempt, a tool call) is open until it is settled. If its
process dies, it stays open and is offered to the next caller.

Which messages still apply after restores and undos:

    each full restore: messages up to the target's position become as they were when the target was
    made; later messages that applied until now are rolled back by this restore

An undo is a restore like any other, to a state with its own valid messages. So the marks follow
from the restores alone, and all processes compute the same ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeAlias

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.values.classes import dataclass

MOST_CHARACTERS = 1_000_000
"""The longest message. Longer text belongs in a file, or is truncated when imported from one."""
MOST_ANNOTATION_BYTES = 100_000


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message; a session's first has index 0. `source_key` is its key in the agent's
    transcript, so that importing a transcript again adds nothing. `rolled_back_by` is the operation
    that restored a state before it. `checkpoint` is the one made before a user's message. It is not
    stored here; see `holdfast.engine.conversation.message_checkpoints`."""

    session_id: SessionId
    index: int
    role: Role
    content: str
    at_ns: int
    tool_calls: tuple[ToolCall, ...] = ()
    source_key: str | None = None
    rolled_back_by: int | None = None
    checkpoint: CheckpointId | None = None


@dataclass(frozen=True, slots=True)
class Annotation:
    """A note about a checkpoint. An edit adds a revision; the newest counts, and all are kept.
    `sequence` increases with every revision in the store."""

    sequence: int
    session_id: SessionId
    checkpoint_id: CheckpointId
    number: int
    revision: int
    text: str
    author: str | None
    at_ns: int


class ActivityKind(StrEnum):
    EDIT = "edit"
    ATTEMPT = "attempt"
    TOOL = "tool"


class ActivityStatus(StrEnum):
    OPEN = "open"
    KEPT = "kept"
    PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class NewActivity:
    """An activity without a number yet. `checkpoint` is the state before it, `paths` are the files
    of an edit, and `owner` identifies the process."""

    session_id: SessionId
    kind: ActivityKind
    reason: str
    checkpoint: CheckpointId
    started_at_ns: int
    owner: str
    paths: tuple[bytes, ...] = ()
    message_index: int | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """One activity. `outcome` describes how it ended. `has_diff`: its changes are kept and can be
    requested."""

    number: int
    session_id: SessionId
    kind: ActivityKind
    reason: str
    checkpoint: CheckpointId
    started_at_ns: int
    owner: str
    paths: tuple[bytes, ...] = ()
    message_index: int | None = None
    status: ActivityStatus = ActivityStatus.OPEN
    ended_at_ns: int | None = None
    outcome: str | None = None
    has_diff: bool = False


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages from `first` to `last` that an operation rolled back."""

    first: int
    last: int
    operation: int


Marks: TypeAlias = tuple[Stretch, ...]
"""Sorted and disjoint. Messages outside all of them still apply."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The effect of one restore on the marks. `record` is the sequence number of its record, and
    `through` the index of the last message at that time."""

    operation: int
    record: int
    through: int
    before: Marks
    after: Marks


def roll_back(
    earlier: Sequence[Rollback],
    *,
    operation: int,
    record: int,
    target: int | None,
    keeps: int,
    through: int,
) -> Rollback:
    """The effect of a restore, after all `earlier` ones. `target` is the sequence number of the
    restored checkpoint, and `keeps` the index of the last message it covers. Without a target, as
    for a partial restore, nothing changes."""
    now = earlier[-1].after if earlier else ()
    if target is None:
        return Rollback(operation, record, through, now, now)
    then = next((r.before for r in earlier if r.record > target), now)
    after = _cut(then, 0, keeps)
    after += _cut(now, keeps + 1, through)
    after += [Stretch(a, b, operation) for a, b in _gaps(now, keeps + 1, through)]
    return Rollback(operation, record, through, now, joined(after))


def rolled_back_by(marks: Marks, index: int) -> int | None:
    """The operation that rolled a message back, or None if it still applies."""
    if not marks:
        return None
    place = bisect_right(marks, index, key=lambda stretch: stretch.first) - 1
    found = marks[place] if place >= 0 else None
    return found.operation if found is not None and index <= found.last else None


def _cut(marks: Marks, first: int, last: int) -> list[Stretch]:
    found = [Stretch(max(s.first, first), min(s.last, last), s.operation) for s in marks]
    return [s for s in found if s.first <= s.last]


def _gaps(marks: Marks, first: int, last: int) -> list[tuple[int, int]]:
    found = []
    for stretch in _cut(marks, first, last):
        if first < stretch.first:
            found.append((first, stretch.first - 1))
        first = stretch.last + 1
    return [*found, (first, last)] if first <= last else found


def joined(stretches: list[Stretch]) -> Marks:
    """Sorted, with adjacent stretches of one operation merged."""
    joined: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda s: s.first):
        last = joined[-1] if joined else None
        if last and last.operation == stretch.operation and last.last + 1 == stretch.first:
            joined[-1] = Stretch(last.first, stretch.last, stretch.operation)
        else:
            joined.append(stretch)
    return tuple(joined)
