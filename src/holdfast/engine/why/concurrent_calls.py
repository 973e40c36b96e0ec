"""Which agents were in the middle of a tool call when a line was written.

    two checkpoints of one session bracket the change → those of other sessions in between, by what
    the file was in each, narrow the moment down → calls of any session that were running then, and
    that can have written the file

All sessions share the workspace: where calls of two of them were running, nothing tells which one
wrote the line, so both are named. A call whose end nobody told counts for ten minutes. Times are
those of the clock: what one of them tells is who may have been at work, and never the order of
checkpoints (I7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.diff.line_origins import LineOrigin, OtherAgent
from holdfast.domain.ids import Digest
from holdfast.domain.sessions import Session
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LONGEST_CALL_NS, LoggedCall, name_digest

_MOST_BETWEEN = 1_000


class RunningCall(NamedTuple):
    """A call, the checkpoint that holds what there was when it began, and when it ended, if
    somebody noted that."""

    agent: OtherAgent
    at: str
    ended_ns: int | None


class ConcurrentCalls:
    """Looks at other sessions; the log of tools is read once."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls: list[LoggedCall] | None = None
        self._looks: list[tuple[int, str]] = []
        self._sessions: dict[str, Session] = {}
        self._contents: dict[tuple[Digest, bytes], Digest | None] = {}

    def named(self, origin: LineOrigin, before: Checkpoint, first: Checkpoint) -> LineOrigin:
        """The origin with the agents of other sessions that may have written the line. What the
        session itself did is told only if it may have, too."""
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
        """The calls of all sessions that may have written a file between two checkpoints, in the
        order in which they began; None where the log of tools does not go back that far."""
        if self._calls is None:
            log = self._vault.tool_log
            self._calls, self._looks = log.calls(), log.looks()
            known = self._vault.catalog.sessions() if self._calls else ()
            self._sessions = {name_digest(one.id.encode()): one for one in known}
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
        """Whether the file was last written when all of these had ended, by its own time."""
        entry = entry_at(self._vault.load_tree, first.tree, path)
        written_ns = entry.mtime_ns if isinstance(entry, FileEntry) else 0
        return all(one.ended_ns is not None and one.ended_ns < written_ns for one in calls)

    def _moment(self, path: bytes, before: Checkpoint, first: Checkpoint) -> tuple[int, int]:
        """When the file was last seen as it was, and first as it became, by any session: in its
        checkpoints, and in those that held everything when a call began or had changed nothing."""
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
