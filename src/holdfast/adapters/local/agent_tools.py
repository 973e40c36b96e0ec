"""Which tool calls of agents are running, and when tools ran.

**Running tools.** A small file for each call, from the hook before it to the one after.

    before a tool → a file named by the digest of the call: start, owner process, tool
    after it, or when the agent's turn ends → the file is deleted

Hints: they only affect how long a checkpoint waits, and its message then. A tool that a save has
waited for without success is renamed, and not waited for again.

**Tool log.** A line when a tool begins, a line when it ends, in one small file.

    B KEY SESSION TIME {"session", "tool", "at", "names"}   a tool begins, at a checkpoint
    E KEY TIME                                              it has ended
    S SESSION TIME                                          all calls of the session have ended
    L TIME CHECKPOINT                                       the state matched this checkpoint

A checkpoint that would change nothing is not made, so only this file records every call. Sessions,
and the files that an edit names, are stored as digests, so nothing can be read from them after a
purge. In an encrypted store, each line is sealed and written in base64, and so is the content of a
running tool's file, without the base64. A line or file that the key does not open is left out.

Hints: not synced, and the older half is dropped when the file has grown. Without it, two agents
that worked at the same time are not noticed, and `undo` may name an earlier call as the cause. Its
effect is the same.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.adapters.local.layout import RUNNING_TOOLS, TOOL_LOG
from holdfast.adapters.local.store_files import read_own_file
from holdfast.adapters.local.system import is_alive, own_line
from holdfast.ports.agent_tools import (
    LONGEST_CALL_NS,
    LoggedCall,
    RunningTool,
    id_digest,
    name_digest,
)

if TYPE_CHECKING:
    from holdfast.adapters.local.store_notes import StoreNotes

_WAITED = ".waited"
_MOST = 64
_LARGEST_NOTE = 1_000
_LONGEST_NAME = 60


class LocalRunningTools:
    """The running tools of one store; see `holdfast.ports.agent_tools.RunningTools` for the
    contract."""

    def __init__(self, store: Path, notes: StoreNotes) -> None:
        """`notes` encrypts the hints of an encrypted store."""
        self._directory = os.path.join(store, RUNNING_TOOLS)
        self._notes = notes

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None:
        shown = "".join(c if c.isprintable() else "?" for c in tool)[:_LONGEST_NAME]
        content = "\n".join((str(now_ns), owner, session, shown)).encode("utf-8", "replace")
        sealed = self._notes.sealed(key, content)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._directory, 0o700)
            if len(os.listdir(self._directory)) >= _MOST:
                return
            fd = os.open(os.path.join(self._directory, key), flags, 0o600)
            try:
                os.write(fd, sealed)
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
                sealed = read_own_file(Path(self._directory, name), _LARGEST_NOTE)
                key = name.removesuffix(_WAITED)
                content = self._notes.opened(key, sealed) or b""
                since, owner, session, tool = content.decode().split("\n")
                yield RunningTool(key, int(since), owner, session, tool, name != key)


_LARGEST_LOG = 1 << 20


class LocalToolLog:
    """The tool log of one store; see `holdfast.ports.agent_tools.ToolLog` for the contract."""

    def __init__(self, store: Path, notes: StoreNotes) -> None:
        self._path = os.path.join(store, TOOL_LOG)
        self._notes = notes

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
        digests = None if names is None else [name_digest(name) for name in names]
        session = id_digest(session_id.encode())
        noted = {"session": session, "tool": tool[:60], "at": at, "names": digests}
        self._add(f"B {key} {session_key} {now_ns} {json.dumps(noted)}")

    def end(self, key: str, now_ns: int) -> None:
        self._add(f"E {key} {now_ns}")

    def end_all_of(self, session_key: str, now_ns: int) -> None:
        self._add(f"S {session_key} {now_ns}")

    def unchanged(self, at: str, now_ns: int) -> None:
        self._add(f"L {now_ns} {at}")

    def looks(self) -> list[tuple[int, str]]:
        found = []
        for line in self._lines():
            with contextlib.suppress(ValueError):
                kind, at_ns, at = line.split(" ")
                if kind == "L":
                    found.append((int(at_ns), at))
        return found

    def calls(self) -> list[LoggedCall]:
        open_ones: dict[str, int] = {}
        sessions: dict[str, str] = {}
        found: list[LoggedCall] = []
        for line in self._lines():
            with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
                kind, rest = line.split(" ", 1)
                if kind == "B":
                    key, session_key, begun_ns, noted = rest.split(" ", 3)
                    open_ones[key], sessions[key] = len(found), session_key
                    found.append(_call(int(begun_ns), json.loads(noted)))
                elif kind == "E":
                    key, ended_ns = rest.split(" ")
                    _close(found, open_ones.pop(key), int(ended_ns), is_end_reported=True)
                elif kind == "S":
                    session_key, ended_ns = rest.split(" ")
                    for key in [k for k in open_ones if sessions[k] == session_key]:
                        _close(found, open_ones.pop(key), int(ended_ns))
        return found

    def _lines(self) -> Iterator[str]:
        for path in (self._path + ".1", self._path):
            with contextlib.suppress(OSError):
                lines = read_own_file(Path(path), 2 * _LARGEST_LOG).split(b"\n")
                for line in lines:
                    yield self._opened(line).decode("utf-8", "replace")

    def _opened(self, line: bytes) -> bytes:
        if not self._notes.is_sealed():
            return line
        with contextlib.suppress(binascii.Error):
            return self._notes.opened(TOOL_LOG, binascii.a2b_base64(line)) or b""
        return b""

    def _add(self, line: str) -> None:
        data = line.encode("utf-8", "replace")
        if self._notes.is_sealed():
            data = binascii.b2a_base64(self._notes.sealed(TOOL_LOG, data), newline=False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            fd = os.open(self._path, flags, 0o600)
            try:
                os.write(fd, data + b"\n")
                is_large = os.fstat(fd).st_size > _LARGEST_LOG
            finally:
                os.close(fd)
            if is_large:
                os.replace(self._path, self._path + ".1")


def _call(begun_ns: int, noted: Any) -> LoggedCall:
    session, tool, at = (str(noted[key]) for key in ("session", "tool", "at"))
    names = None if noted["names"] is None else tuple(map(str, noted["names"]))
    return LoggedCall(session, tool, at, begun_ns, None, names)


def _close(
    found: list[LoggedCall], at: int, ended_ns: int, *, is_end_reported: bool = False
) -> None:
    found[at] = found[at]._replace(ended_ns=ended_ns, is_end_reported=is_end_reported)
