"""The conversation of a session: recorded, read from transcripts, and kept in step with restores.

    a save notes the index of the last message → a restore returns to that position: later messages
    are kept, and marked rolled back → an undo removes the marks

Marks are derived from the operation log: every reader of the conversation first reads the log to
its end. This repairs a crash between a restore and its marks. Nothing here waits for the store's
lock, except the first message of an ended session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import BudgetReached, HoldfastError, StoreDamaged, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import ToolCall, storable, storable_call
from holdfast.domain.operations import RESTORING_KINDS, Operation
from holdfast.domain.sessions import SessionStatus
from holdfast.domain.story import MOST_CHARACTERS, Annotation, Message, Role, Rollback, roll_back
from holdfast.engine.sessions.lifecycle import require_open_session, resume
from holdfast.engine.vault import Vault
from holdfast.ports.story import NewMessage, StoryReader
from holdfast.values.classes import replace

SHARE_OF_BUDGET = 4
"""Conversations may use one part in this many of the budget, so that saves have room."""

_LONGEST_CALLS = 1_000_000
_NO_TIME_NS = 1 << 63
_LARGEST_INDEX = 1 << 62
_MESSAGES_AT_ONCE = 50


def add_message(
    vault: Vault,
    session_id: SessionId,
    role: str,
    content: str,
    *,
    tool_calls: Iterable[ToolCall] = (),
    at: datetime | None = None,
) -> Message:
    """Durable on return. The message gets the session's next index, and resumes an ended
    session."""
    session = require_open_session(vault, session_id)
    new = NewMessage(
        _role(role), checked_content(content), _nanoseconds(vault, at), _calls(tool_calls)
    )
    require_room(vault)
    if session is not None and session.status is SessionStatus.ENDED:
        resume(vault, session_id)
    return vault.story.add_messages(session_id, [new])[0]


def messages(
    vault: Vault, session_id: SessionId, *, first: int = 0, limit: int | None = None
) -> Sequence[Message]:
    """By index, with the marks of all restores so far."""
    for bound in (first, 0 if limit is None else limit):
        if (
            isinstance(bound, bool)
            or not isinstance(bound, int)
            or not 0 <= bound <= _LARGEST_INDEX
        ):
            raise UsageError(f"{bound!r:.40} is not a message index or a number of messages")
    if not vault.has_story():
        return ()
    follow(vault, session_id)
    return vault.story.messages(session_id, first=first, limit=limit)


def require_room(vault: Vault, more_bytes: int = 0) -> None:
    """`BudgetReached` if conversations use too much of the budget, or would with `more_bytes`."""
    most = vault.settings.budget // SHARE_OF_BUDGET
    taken = vault.story.size_bytes() if vault.has_story() else 0
    if taken + more_bytes > most:
        raise BudgetReached(
            f"the conversations of this store use more than {most} bytes, a quarter of its budget",
            hint="raise it: holdfast config set budget 10GB; checkpoints still work",
        )


def follow_restore(vault: Vault, session_id: SessionId) -> None:
    """Called right after a restore, so that later readers rarely have to do it. If this fails, the
    next reader of the conversation does it."""
    if vault.has_story():
        with contextlib.suppress(HoldfastError):
            follow(vault, session_id)


def follow(vault: Vault, session_id: SessionId) -> None:
    """Update the marks from the restores in the log; several processes may share the work."""
    story = vault.story
    if story.message_count(session_id) == 0:
        return
    earlier = list(story.rollbacks(session_id))
    while True:
        followed = earlier[-1].operation if earlier else 0
        left = vault.catalog.operations(session_id, kinds=RESTORING_KINDS, after=followed)
        if not left:
            return
        earlier = _of_this_log(vault, session_id, earlier)
        for operation in left:
            done = _followed(vault, earlier, operation)
            if not story.add_rollback(session_id, done):
                earlier = list(story.rollbacks(session_id))  # another process was faster
                break
            earlier.append(done)


def _of_this_log(
    vault: Vault, session_id: SessionId, earlier: Sequence[Rollback]
) -> list[Rollback]:
    """Ignores marks of a lost log. After the repair of a lost catalog, checkpoints count from one
    again, so marks from the old log come before every present checkpoint."""
    known = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
    numbers = {operation.sequence for operation in known}
    return [r if r.operation in numbers else replace(r, record=0) for r in earlier]


def _followed(vault: Vault, earlier: list[Rollback], operation: Operation) -> Rollback:
    session_id, target = operation.session_id, None
    record = vault.catalog.checkpoint(session_id, operation.checkpoint)
    # A restore of some paths does not change the position.
    if record is not None and record.parent == record.restores_from:
        target = vault.catalog.checkpoint(session_id, record.restores_from)
    return roll_back(
        earlier,
        operation=operation.sequence,
        record=record.sequence if record is not None else 0,
        target=target.sequence if target is not None else None,
        keeps=_index(record),
        through=_index(vault.catalog.checkpoint(session_id, operation.safety)),
    )


def _index(checkpoint: Checkpoint | None) -> int:
    """-1 for a checkpoint that is older than the conversation."""
    if checkpoint is None or checkpoint.message_index is None:
        return -1
    return checkpoint.message_index


def _role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        known = ", ".join(known.value for known in Role)
        raise UsageError(f"unknown role: {role!r}", hint=f"roles are: {known}") from None


def checked_content(content: str) -> str:
    """The content in storable form; `UsageError` if it is invalid."""
    if not isinstance(content, str):
        raise UsageError("the content of a message must be a string")
    content = storable(content)
    if len(content) > MOST_CHARACTERS:
        raise UsageError(
            f"the message has {len(content)} characters; the limit is {MOST_CHARACTERS}",
            hint="shorten it, or put long text in a file of the workspace",
        )
    return content


def _calls(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    if isinstance(calls, (str, Mapping)):
        raise UsageError(
            "tool_calls must be a list, but one call was given", hint=f"use ({calls!r:.60},)"
        )
    checked = tuple(storable_call(call) for call in calls)
    if sum(len(str(call)) for call in checked) > _LONGEST_CALLS:
        raise UsageError(
            f"the tool calls of the message take more than {_LONGEST_CALLS} characters",
            hint="shorten their arguments",
        )
    return checked


def _nanoseconds(vault: Vault, at: Any) -> int:
    if at is None:
        return vault.clock.now_ns()
    if not isinstance(at, datetime):
        raise UsageError("the time of a message must be a datetime")
    try:
        at_ns = int(at.timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError, OSError):  # depends on the platform's clock
        at_ns = _NO_TIME_NS
    if abs(at_ns) >= _NO_TIME_NS:
        raise UsageError(
            f"the time {at} is out of range", hint="leave it out to use the current time"
        )
    return at_ns


T = TypeVar("T")


class BestEffortStory:
    """Reads the story; empty if there is none. `trouble` says why it could not be read; it is not
    tried again then."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.trouble: str | None = None

    def __call__(self, ask: Callable[[StoryReader], Sequence[T]]) -> Sequence[T]:
        if self.trouble is not None or not self._vault.has_story():
            return ()
        try:
            return ask(self._vault.story)
        except StoreDamaged as error:
            self.trouble = error.message
            return ()

    def generation(self) -> str:
        """Changes if the story was recreated; empty without one."""
        return "".join(self(lambda story: (story.generation(),)))

    def message(self, session_id: SessionId, index: int) -> Message | None:
        found = self(lambda story: story.messages(session_id, first=index, limit=1))
        return found[0] if found and found[0].index == index else None

    def spoken(self, session_id: SessionId, index: int) -> Message | None:
        """The message at an index. If that is a tool's result or has no text, the user's message
        before it."""
        found = self.message(session_id, index)
        if found is None or (found.role is not Role.TOOL and found.content):
            return found
        end = index
        while end > 0:
            first = max(0, end - _MESSAGES_AT_ONCE)
            earlier = self._between(session_id, first, end)
            for one in reversed(earlier):
                if one.role is Role.USER:
                    return one
            end = first
        return None

    def _between(self, session_id: SessionId, first: int, end: int) -> Sequence[Message]:
        return self(lambda story: story.messages(session_id, first=first, limit=end - first))

    def notes(self, checkpoint: Checkpoint) -> Sequence[Annotation]:
        """The current annotations of a checkpoint."""
        return self(lambda story: story.annotations(checkpoint.session_id, checkpoint.id))
