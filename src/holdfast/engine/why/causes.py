"""Explains a file's change between two checkpoints: the call, the reason, the message, the agents.

Evidence, strongest first:

1. the checkpoint after a command, with the same tool use as the one before it
2. a call that names the file, for which the earlier checkpoint was made, or from the conversation
3. the later checkpoint's own text
4. an attempt or edit that began at the earlier one

A save right after another one of the same state is not made, so its call is known only from the
conversation. Unknown causes are left out, not guessed.

All sessions share the workspace. `ConcurrentCalls` narrows down the moment of a change by other
sessions' checkpoints, and names every agent with a call in progress that could have written the
file. A call that never reported its end counts for ten minutes. Times only tell who may have been
working, never the order of checkpoints (I7).

Not guaranteed: if several calls name the file, that the last one wrote a given line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from holdfast.domain.agent_events import EDIT_TOOLS
from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Checkpoint, Kind
from holdfast.domain.diff.line_origins import LineOrigin, OtherAgent
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import AFTER_CALL, ToolCall
from holdfast.domain.sessions import Session
from holdfast.domain.story import Activity, Message, Role
from holdfast.domain.tool_calls import Likelihood, likelihood
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LONGEST_CALL_NS, LoggedCall, id_digest, name_digest
from holdfast.ports.catalog import all_operations
from holdfast.values.classes import NamedTuple

_MOST_MESSAGES = 500
_EARLIER_MESSAGES = 200
_MOST_BETWEEN = 1_000


class Causes:
    """Explains changes; reads the log and the story once."""

    def __init__(self, vault: Vault, session_id: SessionId, story: BestEffortStory) -> None:
        self._vault = vault
        self._session_id = session_id
        self.story = story
        self._made_after: dict[CheckpointId, CheckpointId | None] | None = None
        self._activities: Sequence[Activity] | None = None

    def explain(self, origin: LineOrigin, before: Checkpoint, first: Checkpoint) -> LineOrigin:
        """The origin with the cause of the change between two checkpoints."""
        calls = first.intent.tool_calls
        others = _edits_others(calls, origin.path)
        said = replace(
            origin,
            session_id=self._session_id,
            reasoning=first.intent.reasoning,
            tool_calls=() if others or _describes_no_past_call(first) else calls,
            tool_use_id=None if others or _is_before_a_call(first) else first.tool_use_id,
        )
        speaks = first.kind not in AUTOMATIC_KINDS and not first.kind.is_record
        by_hook = self._call_of(before, first, origin.path)
        if by_hook is not None:
            said = replace(said, tool_calls=by_hook, tool_use_id=before.tool_use_id)
            said = said if speaks else replace(said, reasoning=before.intent.reasoning)
            return self._with_messages(said, self._message(before))
        if not said.tool_calls and (found := self._call_in_messages(before, first, origin.path)):
            message, call = found
            own_id = call.get("id") if not isinstance(call, str) else None
            said = replace(said, tool_calls=(call,), tool_use_id=own_id or said.tool_use_id)
            if not speaks and message.content.strip():
                said = replace(said, reasoning=message.content)
            return self._with_messages(said, message)
        activity = self._activity(before, origin.path)
        if activity is not None and not speaks:
            said = replace(said, reasoning=activity.reason)
        return self._with_messages(said, self._message(first))

    def edit_begun_at(self, origin: LineOrigin, at: Checkpoint) -> LineOrigin | None:
        """The origin with the edit of the file that a checkpoint was made for, if any."""
        calls = at.intent.tool_calls
        if not _is_before_a_call(at) or not any(_edits(call, origin.path) for call in calls):
            return None
        said = replace(
            origin,
            session_id=self._session_id,
            reasoning=at.intent.reasoning,
            tool_calls=calls,
            tool_use_id=at.tool_use_id,
        )
        return self._with_messages(said, self._message(at))

    def asked_at(self, origin: LineOrigin, at: Checkpoint) -> LineOrigin:
        """The origin with the message at which a call began, if nothing else is known of it."""
        return self._with_messages(replace(origin, session_id=self._session_id), self._message(at))

    def _call_of(
        self, before: Checkpoint, first: Checkpoint, path: bytes
    ) -> tuple[ToolCall, ...] | None:
        """The call that the earlier checkpoint was made for, if it made the change."""
        calls = before.intent.tool_calls
        if not _is_before_a_call(before) or not calls or not self._are_neighbours(before, first):
            return None
        if _is_after_a_call(first):
            if first.tool_use_id != before.tool_use_id or _edits_others(calls, path):
                return None
            tools = [str(call.get("tool")) for call in calls if not isinstance(call, str)]
            named = any(first.intent.reasoning.startswith(f"After {tool}") for tool in tools)
            return calls if first.tool_use_id is not None or named else None
        return calls if any(_edits(call, path) for call in calls) else None

    def _are_neighbours(self, before: Checkpoint, first: Checkpoint) -> bool:
        """Whether one was made directly after the other, with no deleted one in between."""
        if self._made_after is None:
            log = all_operations(self._vault.catalog, self._session_id)
            self._made_after = {
                one.checkpoint: one.head_before for one in log if one.checkpoint is not None
            }
        # The log has no entries for imported checkpoints.
        return self._made_after.get(first.id, before.id) == before.id

    def _call_in_messages(
        self, before: Checkpoint, first: Checkpoint, path: bytes
    ) -> tuple[Message, ToolCall] | None:
        """The checkpoint's own call in the messages between, or else the most likely one."""
        if first.message_index is None:
            return None
        end = first.message_index + 1
        begin = max(before.message_index or 0, end - _MOST_MESSAGES, 0)
        between = self.story(
            lambda story: story.messages(first.session_id, first=begin, limit=end - begin)
        )
        to_come = first.tool_use_id if _is_before_a_call(first) else None
        best: tuple[Likelihood, Message, ToolCall] | None = None
        for message in between:
            for call in message.tool_calls:
                own_id = call.get("id") if not isinstance(call, str) else None
                if own_id is not None and own_id == to_come:
                    continue
                if own_id is not None and own_id == first.tool_use_id:
                    return message, call
                grade = likelihood(call, path)
                if grade and (best is None or grade >= best[0]):
                    best = (grade, message, call)
        return best[1:] if best else None

    def _activity(self, before: Checkpoint, path: bytes) -> Activity | None:
        """The last attempt, or edit of this file, that began at a checkpoint."""
        if self._activities is None:
            self._activities = self.story(lambda story: story.activities(self._session_id))
        begun = [one for one in self._activities if one.checkpoint == before.id]
        fitting = [one for one in begun if not one.paths or path in one.paths]
        return fitting[-1] if fitting else None

    def _message(self, checkpoint: Checkpoint) -> Message | None:
        if checkpoint.message_index is None:
            return None
        return self.story.message(checkpoint.session_id, checkpoint.message_index)

    def _with_messages(self, origin: LineOrigin, message: Message | None) -> LineOrigin:
        """With the message, and with the user's last message up to it."""
        prompt = message
        if message is not None and message.role is not Role.USER:
            begin = max(message.index - _EARLIER_MESSAGES, 0)
            earlier = self.story(
                lambda story: story.messages(
                    message.session_id, first=begin, limit=message.index - begin
                )
            )
            prompt = next((one for one in reversed(earlier) if one.role is Role.USER), None)
        return replace(origin, message=message, prompt=prompt)


def _edits(call: ToolCall, path: bytes) -> bool:
    return likelihood(call, path) is Likelihood.EDIT


def _edits_others(calls: Sequence[ToolCall], path: bytes) -> bool:
    """Whether a hook's calls are edits of other files. Edits may run in parallel, and the first one
    that ends gets a checkpoint with the changes of all."""
    named = [call for call in calls if isinstance(call, Mapping) and call.get("paths")]
    edits = [call for call in named if call.get("kind") in EDIT_TOOLS]
    return bool(edits) and len(edits) == len(calls) and not any(_edits(c, path) for c in edits)


def _describes_no_past_call(checkpoint: Checkpoint) -> bool:
    """Whether its calls do not describe a completed action: they follow it, or it is a restore
    record, whose call lists the selected paths."""
    return checkpoint.kind.is_record or _is_before_a_call(checkpoint)


def _is_before_a_call(checkpoint: Checkpoint) -> bool:
    """Such a checkpoint announces a call; its changes were made before."""
    return checkpoint.kind in (Kind.TOOL, Kind.RISKY) and not _is_after_a_call(checkpoint)


def _is_after_a_call(checkpoint: Checkpoint) -> bool:
    return checkpoint.kind is Kind.TOOL and checkpoint.intent.reasoning.startswith(AFTER_CALL)


class RunningCall(NamedTuple):
    """A call, the checkpoint with the state when it began, and its end, if recorded."""

    agent: OtherAgent
    at: str
    ended_ns: int | None


class ConcurrentCalls:
    """Looks at other sessions; reads the tool log once."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls: list[LoggedCall] | None = None
        self._looks: list[tuple[int, str]] = []
        self._sessions: dict[str, Session] = {}
        self._contents: dict[tuple[Digest, bytes], Digest | None] = {}

    def named(self, origin: LineOrigin, before: Checkpoint, first: Checkpoint) -> LineOrigin:
        """The origin with other sessions' agents that may have written the line. The session's own
        work is kept only if it may have written the line, too."""
        found = None if first.kind.is_record else self.running(origin.path, before, first)
        others = [one.agent for one in found or () if one.agent.session_id != first.session_id]
        if not others:
            return origin
        own = self._vault.catalog.session(first.session_id)
        if own is not None and own.agent is not None and len(others) == len(found or ()):
            origin = replace(
                origin,
                reasoning=None,
                tool_calls=(),
                tool_use_id=None,
                message=None,
                prompt=None,
                own=False,
            )
        return replace(origin, others=tuple(dict.fromkeys(others)))

    def running(
        self, path: bytes, before: Checkpoint, first: Checkpoint
    ) -> list[RunningCall] | None:
        """The calls of all sessions that may have written a file between two checkpoints, by start
        time; None if the tool log does not go back that far."""
        if self._calls is None:
            log = self._vault.tool_log
            self._calls, self._looks = log.calls(), log.looks()
            known = self._vault.catalog.sessions() if self._calls else ()
            self._sessions = {id_digest(one.id.encode()): one for one in known}
        if not self._calls or self._calls[0].begun_ns > first.created_at_ns:
            return None
        begin_ns, end_ns = self._moment(path, before, first)
        name = name_digest(path)
        return [
            RunningCall(OtherAgent(session.id, session.agent, one.tool), one.at, one.ended_ns)
            for one in self._calls
            if _may_have_written(one, begin_ns, end_ns, name)
            and (session := self._sessions.get(one.session)) is not None
        ]

    def was_written_after(self, calls: list[RunningCall], path: bytes, first: Checkpoint) -> bool:
        """Whether the file's own time is after the end of all these calls."""
        entry = entry_at(self._vault.load_tree, first.tree, path)
        written_ns = entry.mtime_ns if isinstance(entry, FileEntry) else 0
        return all(one.ended_ns is not None and one.ended_ns < written_ns for one in calls)

    def _moment(self, path: bytes, before: Checkpoint, first: Checkpoint) -> tuple[int, int]:
        """When the old content was last seen and the new one first, in any session: in its
        checkpoints, and in those known to match when a call began or had changed nothing."""
        old, new = self._content(before, path), self._content(first, path)
        begin_ns, end_ns = before.created_at_ns, first.created_at_ns
        for at_ns, seen in sorted(self._seen(before, first), key=lambda one: one[0]):
            content = self._content(seen, path)
            if content == new:
                return begin_ns, min(at_ns, end_ns)
            if content == old:
                begin_ns = max(at_ns, begin_ns)
        return begin_ns, end_ns

    def _seen(self, before: Checkpoint, first: Checkpoint) -> Iterator[tuple[int, Checkpoint]]:
        for one in self._vault.catalog.checkpoints_after(before.sequence, _MOST_BETWEEN):
            if one.sequence >= first.sequence:
                break
            yield one.created_at_ns, one
        for at_ns, at in [*((one.begun_ns, one.at) for one in self._calls or ()), *self._looks]:
            if before.created_at_ns <= at_ns < first.created_at_ns:
                found = self._vault.catalog.checkpoint(None, at)
                if found is not None:
                    yield at_ns, found

    def _content(self, checkpoint: Checkpoint, path: bytes) -> Digest | None:
        if (checkpoint.tree, path) not in self._contents:
            entry = entry_at(self._vault.load_tree, checkpoint.tree, path)
            digest = entry.digest if isinstance(entry, FileEntry) else None
            self._contents[checkpoint.tree, path] = digest
        return self._contents[checkpoint.tree, path]


def _may_have_written(call: LoggedCall, begin_ns: int, end_ns: int, name: str) -> bool:
    if call.begun_ns >= end_ns or (call.names is not None and name not in call.names):
        return False
    if call.ended_ns is None:
        return end_ns - call.begun_ns < LONGEST_CALL_NS
    return call.ended_ns > begin_ns
