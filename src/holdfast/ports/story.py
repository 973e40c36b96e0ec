"""The record around the checkpoints: messages, annotations, edits, notices.

    StoryReader ← Story

Reading is a separate port, so that rows can be read from a replica. The story is separate from the
catalog and has its own lock: recording a message never waits for a save, and damage to the story
affects no checkpoint. Every write is durable when it returns. Reads need no lock. A story that does
not exist yet reads as empty; the first write creates it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from holdfast.domain.errors import NotFound
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.purges import TextReplacement
from holdfast.domain.story import (
    Activity,
    ActivityStatus,
    Annotation,
    Message,
    NewActivity,
    Role,
    Rollback,
)
from holdfast.values.classes import dataclass


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that has no index yet."""

    role: Role
    content: str
    at_ns: int
    tool_calls: tuple[ToolCall, ...] = ()
    source_key: str | None = None


class StoryReader(Protocol):
    """Read access to the story."""

    def message_count(self, session_id: SessionId) -> int:
        """The number of messages, which is the index of the next one."""

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """Messages by index, starting at `first`."""

    def messages_after(self, sequence: int, limit: int) -> Sequence[tuple[int, Message]]:
        """Messages of all sessions, in the order in which they were added, each with its number.
        Indexes use it to catch up."""

    def has_source(self, session_id: SessionId, source_key: str) -> bool:
        """Whether the session has a message with that key."""

    def annotations(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId | None = None,
        *,
        revisions: bool = False,
    ) -> Sequence[Annotation]:
        """The newest revision of each annotation, in order of creation; or all revisions."""

    def annotations_after(self, sequence: int, limit: int) -> Sequence[Annotation]:
        """Later revisions of all sessions, in order."""

    def rollbacks(self, session_id: SessionId) -> Sequence[Rollback]:
        """How restores affected the conversation, in the order of operations."""

    def fact(self, session_id: SessionId, name: str) -> str | None:
        """A small value noted about a session."""

    def activity(self, number: int) -> Activity | None: ...

    def activities(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Activity]:
        """Activities, in order of their start."""

    def activities_after(self, number: int, limit: int) -> Sequence[Activity]:
        """Activities of all sessions, in order of their start."""

    def open_activities(self, session_id: SessionId | None = None) -> Sequence[Activity]:
        """Open activities of one session or all, in order of their start."""

    def diff_of(self, number: int) -> bytes | None:
        """An activity's diff, as passed to `settle`."""

    def generation(self) -> str:
        """Changes whenever earlier results may be invalid: rows were removed permanently, or the
        story was rebuilt. Indexes are then rebuilt."""

    def close(self) -> None: ...


class Story(StoryReader, Protocol):
    """Read and write access to the story."""

    def add_messages(
        self,
        session_id: SessionId,
        new: Sequence[NewMessage],
        *,
        fact: tuple[str, str] | None = None,
    ) -> Sequence[Message]:
        """Add all messages, in this order, or none. A message whose `source_key` the session
        already has is skipped and not in the result. `fact` (name, value) is recorded in the same
        transaction."""

    def annotate(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId,
        text: str,
        *,
        author: str | None,
        at_ns: int,
        number: int | None = None,
    ) -> Annotation:
        """Add an annotation or, with `number`, a new revision of that one (`NotFound` if there is
        none). The author stays the same unless another one is given."""

    def add_rollback(self, session_id: SessionId, rollback: Rollback) -> bool:
        """Record a rollback. False, without adding it, if one of that operation or a later one
        exists."""

    def set_fact(
        self, session_id: SessionId, name: str, value: str, *, expected: str | None
    ) -> bool:
        """Set the value if it is still `expected`. Of several concurrent callers, one succeeds."""

    def begin(self, new: NewActivity) -> Activity:
        """Record an activity, which is open until `settle`."""

    def settle(
        self,
        number: int,
        status: ActivityStatus,
        *,
        at_ns: int,
        outcome: str | None = None,
        diff: bytes | None = None,
    ) -> Activity | None:
        """Close an activity and return it; None if it is not open."""

    def record_edit(self, new: NewActivity, *, at_ns: int, diff: bytes) -> Activity:
        """Record a finished, kept edit in one write."""

    def import_rows(self, messages: Sequence[Message], annotations: Sequence[Annotation]) -> int:
        """Add rows from another story, with their index, number and revision. Returns the number of
        added rows. Existing rows stay. A message that would leave a gap is skipped.
        `rolled_back_by` and `sequence` are not imported."""

    def named_checkpoints(self) -> set[CheckpointId]:
        """Every checkpoint that an annotation or an activity refers to."""

    def forget_checkpoints(self, checkpoint_ids: Sequence[CheckpointId]) -> int:
        """Remove the annotations and activities of checkpoints. Returns the number of rows."""

    def forget_session(self, session_id: SessionId) -> int:
        """Remove everything recorded in a session. Returns the number of rows."""

    def forget_paths(self, paths: Sequence[bytes]) -> int:
        """Remove every edit of these paths or anything below."""

    def replace_text(
        self, replacement: TextReplacement, diff: Callable[[bytes], bytes]
    ) -> Mapping[str, int]:
        """Replace a text everywhere. Returns how many messages, annotations and edits contained it,
        leaving out zero counts. `diff` does the replacement in diffs passed to `settle`."""

    def erase_traces(self) -> None:
        """Remove all traces of deleted rows from the disk; `Busy` if a reader prevents it."""

    def size_bytes(self) -> int:
        """The size on disk."""

    def check(self) -> Iterator[str]:
        """Problems in the story's own structure."""


def no_annotation(checkpoint_id: CheckpointId, number: int) -> NotFound:
    return NotFound(
        f"checkpoint {checkpoint_id} has no annotation {number}",
        hint=f"list its notes: holdfast show {checkpoint_id}",
    )
