"""Tool calls of agents: which run now, and when each one ran.

Both are hints. Nothing waits for a lock, nothing is synced, and anything that cannot be read or
written is left out: no method raises for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from holdfast.values.classes import NamedTuple

LONGEST_CALL_NS = 600 * 1_000_000_000
"""A call without a reported end counts as running for ten minutes."""


class RunningTool(NamedTuple):
    """One call. `owner` is the agent's process, `session` a `session_digest`; `waited` tells that
    a save has waited for it in vain."""

    key: str
    since_ns: int
    owner: str
    session: str
    tool: str
    waited: bool


class LoggedCall(NamedTuple):
    """`session` is a digest of its id, `at` the checkpoint that holds what there was when it began,
    `ended_ns` None for a call without an end. `names` are digests of what an edit names, None where
    the tool may write anything. `is_end_reported`: the agent reported the end of this call."""

    session: str
    tool: str
    at: str
    begun_ns: int
    ended_ns: int | None
    names: tuple[str, ...] | None
    is_end_reported: bool = False


class RunningTools(Protocol):
    """The calls that run now. A call no longer counts when its agent's process is gone, or after
    `LONGEST_CALL_NS`."""

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None: ...

    def end(self, key: str) -> None: ...

    def end_all_of(self, session: str) -> None: ...

    def give_up(self, key: str) -> None:
        """No save waits for it from then on; it still counts as running."""

    def of_others(self, now_ns: int) -> list[RunningTool]:
        """Those that run now and that this process is no part of. A process that an agent or one of
        its tools started belongs to that agent."""


class ToolLog(Protocol):
    """When calls began and ended. A checkpoint that would change nothing is not made, so only this
    log knows of each call. The older half goes when it has grown."""

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
        """After a call everything was found as in the checkpoint `at`."""

    def looks(self) -> list[tuple[int, str]]:
        """When everything was found unchanged after a call, and as in which checkpoint."""

    def calls(self) -> list[LoggedCall]:
        """Every call that is known, in the order in which they began."""


def session_digest(*parts: str) -> str:
    """Of an agent and its session, and with a third part of one use of a tool."""
    import hashlib  # late: most saves meet no tool

    joined = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(joined).hexdigest()[:32]


def name_digest(name: bytes) -> str:
    """Of the last part of a path, or of a session's id."""
    import hashlib

    return hashlib.sha256(os.path.basename(name)).hexdigest()[:16]
