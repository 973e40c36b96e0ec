"""The record around the checkpoints: messages, annotations, edits, notices.

    StoryReader ← Story

Reading is a separate port, so rows can be read from a place that only receives them. The story is
kept apart from the catalog, with its own lock: recording a message never waits for a save, and a
damaged story costs no checkpoint. Every write is durable when it returns. Reads need no lock. A
story that is not there yet reads as an empty one; the first write makes it.
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
    """A message before the story has given it its index."""

    role: Role
    content: str
    at_ns: int
    tool_calls: tuple[ToolCall, ...] = ()
    source_key: str | None = None


class StoryReader(Protocol):
    """What was recorded around the checkpoints."""

    def message_count(self, session_id: SessionId) -> int:
        """How many there are: the index of the next one."""

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        """By index, from `first` on."""

    def messages_after(self, sequence: int, limit: int) -> Sequence[tuple[int, Message]]:
        """Of all sessions, in the order in which they were added, each with its number in that
        order: how an index catches up."""

    def has_source(self, session_id: SessionId, source_key: str) -> bool:
        """Whether the session has a message of that key."""

    def annotations(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId | None = None,
        *,
        revisions: bool = False,
    ) -> Sequence[Annotation]:
        """The newest revision of each, in the order in which they were begun; or all revisions."""

    def annotations_after(self, sequence: int, limit: int) -> Sequence[Annotation]:
        """Of all sessions, every revision that came after, in order."""

    def rollbacks(self, session_id: SessionId) -> Sequence[Rollback]:
        """What restores did to the conversation, in the order of operations."""

    def fact(self, session_id: SessionId, name: str) -> str | None:
        """Something small that was noted about a session."""

    def activity(self, number: int) -> Activity | None: ...

    def activities(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Activity]:
        """In the order in which they were begun."""

    def activities_after(self, number: int, limit: int) -> Sequence[Activity]:
        """Of all sessions, in the order in which they were begun."""

    def open_activities(self, session_id: SessionId | None = None) -> Sequence[Activity]:
        """Of one session or all, in the order in which they were begun."""

    def diff_of(self, number: int) -> bytes | None:
        """What an activity changed, as it was given to `settle`."""

    def generation(self) -> str:
        """Another value whenever earlier answers may no longer hold: rows were removed for good, or
        the story was rebuilt. An index of it is then rebuilt."""

    def close(self) -> None: ...


class Story(StoryReader, Protocol):
    """The place where it becomes durable."""

    def add_messages(
        self,
        session_id: SessionId,
        new: Sequence[NewMessage],
        *,
        fact: tuple[str, str] | None = None,
    ) -> Sequence[Message]:
        """All or none, in this order, after the last one; one whose `source_key` the session has
        already is left out of the result. `fact` (name, value) is noted together with them."""

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
        """A new annotation, or with `number` a new revision of that one (`NotFound` if none), which
        stays that of its author unless another is named."""

    def add_rollback(self, session_id: SessionId, rollback: Rollback) -> bool:
        """False, and nothing is added, when one of that operation or a later one is there."""

    def set_fact(
        self, session_id: SessionId, name: str, value: str, *, expected: str | None
    ) -> bool:
        """Note it if it is still what was `expected`: of several who try, one succeeds."""

    def begin(self, new: NewActivity) -> Activity:
        """Open until `settle`."""

    def settle(
        self,
        number: int,
        status: ActivityStatus,
        *,
        at_ns: int,
        outcome: str | None = None,
        diff: bytes | None = None,
    ) -> Activity | None:
        """The activity as it ended; None when it is not open, or no longer."""

    def record_edit(self, new: NewActivity, *, at_ns: int, diff: bytes) -> Activity:
        """An edit that is over, and kept: never open, in one write."""

    def import_rows(self, messages: Sequence[Message], annotations: Sequence[Annotation]) -> int:
        """Add what comes from another story, with index, number and revision as they are; how many
        rows that were. What is there already stays; a message that would leave a gap is not
        taken. `rolled_back_by` and `sequence` are not taken over."""

    def named_checkpoints(self) -> set[CheckpointId]:
        """Every checkpoint that an annotation or an activity is about."""

    def forget_checkpoints(self, checkpoint_ids: Sequence[CheckpointId]) -> int:
        """Remove the annotations and activities of checkpoints; how many rows that were."""

    def forget_session(self, session_id: SessionId) -> int:
        """Remove everything that was said, done and noted in a session; how many rows."""

    def forget_paths(self, paths: Sequence[bytes]) -> int:
        """Remove every edit that is about one of the paths or something below it."""

    def replace_text(
        self, replacement: TextReplacement, diff: Callable[[bytes], bytes]
    ) -> Mapping[str, int]:
        """Replace a text in everything that was said; how many messages, annotations and edits had
        it, without those that had none. `diff` does it for what was given to `settle`."""

    def erase_traces(self) -> None:
        """Leave nothing of removed rows on the medium; `Busy` when a reader keeps it from that."""

    def size_bytes(self) -> int:
        """What it takes on disk."""

    def check(self) -> Iterator[str]:
        """Problems of the story's own structure."""


def no_annotation(checkpoint_id: CheckpointId, number: int) -> NotFound:
    return NotFound(
        f"checkpoint {checkpoint_id} has no annotation {number}",
        hint=f"list its notes: holdfast show {checkpoint_id}",
    )
