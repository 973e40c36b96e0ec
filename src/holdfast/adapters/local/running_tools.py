"""Which tools of agents are running: a small file for each, from the hook before to the one after.

    before a tool → a file named by the digest of its use: since when, whose process, which tool
    after it, or when the agent's turn ends → the file goes

Hints: nothing depends on them but how long a checkpoint waits, and what it says then. A tool that a
save has waited for in vain is renamed, and not waited for again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.adapters.local.layout import RUNNING_TOOLS
from holdfast.adapters.local.processes import is_alive, own_line
from holdfast.ports.agent_tools import LONGEST_CALL_NS, RunningTool

_WAITED = ".waited"
_MOST = 64
_LARGEST = 1_000
_LONGEST_NAME = 60


class LocalRunningTools:
    """Those of one store; see `holdfast.ports.agent_tools.RunningTools` for the contract."""

    def __init__(self, store: Path) -> None:
        self._directory = os.path.join(store, RUNNING_TOOLS)

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None:
        shown = "".join(c if c.isprintable() else "?" for c in tool)[:_LONGEST_NAME]
        content = "\n".join((str(now_ns), owner, session, shown)).encode("utf-8", "replace")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._directory, 0o700)
            if len(os.listdir(self._directory)) >= _MOST:
                return
            fd = os.open(os.path.join(self._directory, key), flags, 0o600)
            try:
                os.write(fd, content)
            finally:
                os.close(fd)

    def end(self, key: str) -> None:
        for name in (key, key + _WAITED):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._directory, name))

    def end_all_of(self, session: str) -> None:
        for found in self._all():
            if found.session == session:
                self.end(found.key)

    def give_up(self, key: str) -> None:
        path = os.path.join(self._directory, key)
        with contextlib.suppress(OSError):
            os.rename(path, path + _WAITED)

    def of_others(self, now_ns: int) -> list[RunningTool]:
        found = list(self._all())
        if not found:
            return []
        own = own_line()
        running = []
        for tool in found:
            if not 0 <= now_ns - tool.since_ns < LONGEST_CALL_NS or not is_alive(tool.owner):
                self.end(tool.key)
            elif tool.owner not in own:
                running.append(tool)
        return running

    def _all(self) -> Iterator[RunningTool]:
        try:
            names = os.listdir(self._directory)
        except OSError:
            return
        for name in sorted(names):
            with contextlib.suppress(OSError, ValueError):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                fd = os.open(os.path.join(self._directory, name), flags)
                try:
                    content = os.read(fd, _LARGEST)
                finally:
                    os.close(fd)
                since, owner, session, tool = content.decode().split("\n")
                key = name.removesuffix(_WAITED)
                yield RunningTool(key, int(since), owner, session, tool, name != key)
