"""Tool calls of agents in memory: see `holdfast.ports.agent_tools`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.ports.agent_tools import LONGEST_CALL_NS, LoggedCall, RunningTool, name_digest


class MemoryRunningTools:
    """`is_other` tells whether an owner lives and this process is no part of it."""

    def __init__(self, is_other: Callable[[str], bool] = bool) -> None:
        self._running: dict[str, RunningTool] = {}
        self._is_other = is_other

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None:
        self._running[key] = RunningTool(key, now_ns, owner, session, tool, False)

    def end(self, key: str) -> None:
        self._running.pop(key, None)

    def end_all_of(self, session: str) -> None:
        for key in [key for key, call in self._running.items() if call.session == session]:
            del self._running[key]

    def is_empty(self) -> bool:
        return not self._running

    def give_up(self, key: str) -> None:
        if key in self._running:
            self._running[key] = self._running[key]._replace(waited=True)

    def of_others(self, now_ns: int) -> list[RunningTool]:
        return [
            call
            for call in self._running.values()
            if 0 <= now_ns - call.since_ns < LONGEST_CALL_NS and self._is_other(call.owner)
        ]


class MemoryToolLog:
    def __init__(self) -> None:
        self._calls: list[LoggedCall] = []
        self._open: dict[str, tuple[int, str]] = {}
        self._looks: list[tuple[int, str]] = []

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
    ) -> None:
        self._open[key] = len(self._calls), session_key
        named = None if names is None else tuple(map(name_digest, names))
        session = name_digest(session_id.encode())
        self._calls.append(LoggedCall(session, tool, at, now_ns, None, named))

    def end(self, key: str, now_ns: int) -> None:
        if key in self._open:
            self._close(key, now_ns, is_reported=True)

    def end_all_of(self, session_key: str, now_ns: int) -> None:
        for key in [key for key, (_, session) in self._open.items() if session == session_key]:
            self._close(key, now_ns, is_reported=False)

    def unchanged(self, at: str, now_ns: int) -> None:
        self._looks.append((now_ns, at))

    def looks(self) -> list[tuple[int, str]]:
        return list(self._looks)

    def calls(self) -> list[LoggedCall]:
        return list(self._calls)

    def _close(self, key: str, now_ns: int, *, is_reported: bool) -> None:
        place, _ = self._open.pop(key)
        ended = self._calls[place]._replace(ended_ns=now_ns, is_end_reported=is_reported)
        self._calls[place] = ended
