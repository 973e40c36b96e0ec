"""Agents' tool calls: which are running, and when each one ran.

Both are hints. Nothing waits for a lock, nothing is synced, and no method raises. Anything
unreadable or unwritable is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from holdfast.values.classes import NamedTuple

LONGEST_CALL_NS = 600 * 1_000_000_000
"""A call without a reported end counts as running for ten minutes."""


class RunningTool(NamedTuple):
    """One call. `owner` is the agent's process, `session` a `session_digest`. `waited`: a save has
    already waited for it without success."""

    key: str
    since_ns: int
    owner: str
    session: str
    tool: str
    waited: bool


class LoggedCall(NamedTuple):
    """`session` is a digest of its id. `at` is the checkpoint with the state before the call.
    `ended_ns` is None for a call without an end. `names` are digests of the paths that an edit
    names; None if the tool may write anything. `is_end_reported`: the agent reported the end of
    this call."""

    session: str
    tool: str
    at: str
    begun_ns: int
    ended_ns: int | None
    names: tuple[str, ...] | None
    is_end_reported: bool = False


class RunningTools(Protocol):
    """The calls that are running.

    A call no longer counts if its agent's process is gone, or after `LONGEST_CALL_NS`."""

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None: ...

    def end(self, key: str) -> None: ...

    def end_all_of(self, session: str) -> None: ...

    def give_up(self, key: str) -> None:
        """From now on, no save waits for this call. It still counts as running."""

    def of_others(self, now_ns: int) -> list[RunningTool]:
        """Running calls of other agents. A process that an agent or one of its tools started
        belongs to that agent."""


class ToolLog(Protocol):
    """When calls began and ended.

    A checkpoint that would change nothing is not made, so only this log records every call. When
    the log grows too long, its older half is dropped."""

    def begin(
        self,
        key: str,
        session_key: str,
        *,
        now_ns: int,
        session_id: str,
        tool: str,
        at: str,
        names: Iterable[bytes] | None,
    ) -> None: ...

    def end(self, key: str, now_ns: int) -> None: ...

    def end_all_of(self, session_key: str, now_ns: int) -> None: ...

    def unchanged(self, at: str, now_ns: int) -> None:
        """Record that after a call the state matched the checkpoint `at`."""

    def looks(self) -> list[tuple[int, str]]:
        """When the state was found unchanged after a call, and which checkpoint it matched."""

    def calls(self) -> list[LoggedCall]:
        """Every known call, in the order in which they began."""


def session_digest(*parts: str) -> str:
    """A digest of an agent and its session; with a third part, of one tool call."""
    import hashlib  # late: most saves meet no tool

    joined = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(joined).hexdigest()[:32]


def name_digest(path: bytes) -> str:
    """A digest of a path's last part."""
    return id_digest(os.path.basename(path))


def id_digest(identifier: bytes) -> str:
    """A digest of a session id."""
    import hashlib

    return hashlib.sha256(identifier).hexdigest()[:16]
