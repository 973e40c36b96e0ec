"""A log of events that hooks could not handle, next to the stores; `holdfast status` reads it.

    beside the stores → else in the fallback directory, with a complaint

On a full disk or a read-only home, the log next to the stores often cannot be written either.

One JSON object per line, appended in one write. The files are private and bounded: a full one is
renamed to `….1`, replacing the previous one. Nothing here raises.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.agent_events import AgentEvent
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.app.automation.host import Host

NAME = "hooks.log"
MOST_BYTES = 512 << 10
_MOST_TEXT = 1_000
_AGAIN_AFTER = timedelta(hours=1)
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Problem:
    """One event that was not handled, and why. `saved`: the state was saved, but something else
    failed, such as recording the conversation."""

    at: datetime
    agent: str
    event: str
    tool: str
    session: str
    workspace: str
    code: str
    message: str
    saved: bool = False


class ProblemLog:
    """The log of one user."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def note_problem(self, agent: str, event: AgentEvent | None, error: BaseException) -> None:
        """No checkpoint was made for the event."""
        self._note(agent, event, _code(error), _message(error), saved=False)

    def note_trouble(self, event: AgentEvent, what: str, error: BaseException) -> None:
        """The state was saved, but something else failed. A failure that repeats with each event of
        a session is logged once an hour, so that it does not displace other entries."""
        code, message = _code(error), f"{what}: {_message(error)}"
        if not self._is_known(code, message, event.session):
            self._note(event.agent, event, code, message, saved=True)

    def note_missed(self, workspace: Path, session: str, error: BaseException) -> None:
        """An automatic checkpoint in the background failed; also logged once an hour."""
        code, message = _code(error), _message(error)
        if not self._is_known(code, message, session):
            entry = {"session": session, "workspace": _real(str(workspace))}
            entry |= {"agent": "daemon", "event": "automatic checkpoint", "tool": ""}
            self._write(entry | {"cwd": entry["workspace"]}, code, message, saved=False)

    def problems_of(self, workspace: Path, since: datetime) -> list[Problem]:
        """A workspace's problems since then, oldest first."""
        root = _real(str(workspace))
        found = [
            problem
            for problem in self._read_all()
            if problem.at >= since
            and (problem.workspace == root or problem.workspace.startswith(root.rstrip("/") + "/"))
        ]
        return sorted(found, key=lambda problem: problem.at)

    def files(self) -> list[Path]:
        """The existing logs; usually one, beside the stores."""
        places = (self._host.home / NAME, *self._host.fallback.files(NAME))
        return [place for place in places if place.is_file()]

    def _is_known(self, code: str, message: str, session: str) -> bool:
        since = self._now() - _AGAIN_AFTER
        return any(
            (old.code, old.message, old.session) == (code, message[:_MOST_TEXT], session)
            for old in self._read_all()
            if old.at >= since
        )

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._host.clock.now_ns() / 1e9, UTC)

    def _note(
        self, agent: str, event: AgentEvent | None, code: str, message: str, *, saved: bool
    ) -> None:
        entry = {
            "agent": agent,
            "event": event.name if event else "",
            "tool": event.tool if event else "",
            "session": event.session if event else "",
            "workspace": _real((event.project or event.cwd or "") if event else ""),
            # For an unreadable event, the hook's directory is all that is known.
            "cwd": _real((event.cwd if event else None) or self._host.working_directory()),
        }
        self._write(entry, code, message, saved=saved)

    def _write(self, entry: dict[str, str], code: str, message: str, *, saved: bool) -> None:
        at = self._now().isoformat(timespec="milliseconds")
        entry = {"at": at, **entry, "code": code, "message": message}
        cut = {key: text[:_MOST_TEXT] for key, text in entry.items()}
        line = json.dumps(cut | ({"saved": True} if saved else {})) + "\n"
        try:
            _append(self._host.home / NAME, line.encode())
            return
        except Exception as failed:  # the agent must continue
            failures = [str(failed)]
        fallback = self._host.fallback
        for path in fallback.files(NAME):
            try:
                fallback.require_private(path.parent)
                _append(path, line.encode())
                break
            except Exception as failed:
                failures.append(str(failed))
        fallback.complain(f"holdfast: not protected: {message} (and no log: {'; '.join(failures)})")

    def _read_all(self) -> Iterator[Problem]:
        fallback = self._host.fallback
        second = [path for path in fallback.files(NAME) if fallback.is_private(path.parent)]
        logs = [self._host.home / NAME, *second]
        for path in (each for log in logs for each in (log.with_name(log.name + ".1"), log)):
            try:
                fd = os.open(path, _READ)
            except OSError:
                continue
            with os.fdopen(fd, "rb") as file:
                for line in file.read(2 * MOST_BYTES).splitlines():
                    problem = _parse(line)
                    if problem is not None:
                        yield problem


def _code(error: BaseException) -> str:
    return str(getattr(error, "code", type(error).__name__))


def _message(error: BaseException) -> str:
    return str(getattr(error, "message", None) or str(error) or type(error).__name__)


def _real(path: str) -> str:
    """The workspace's real path, whichever links the agent used."""
    try:
        return os.path.realpath(path) if path else ""
    except (OSError, ValueError):
        return path


def _append(path: Path, data: bytes) -> None:
    """Append the whole line, or raise `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if os.stat(path).st_size > MOST_BYTES:
            os.replace(path, path.with_name(path.name + ".1"))
    fd = os.open(path, _APPEND, 0o600)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # the previous line was truncated by a full disk
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(fd)


def _parse(line: bytes) -> Problem | None:
    """None for a truncated line."""
    try:
        fields = json.loads(line)
        at = datetime.fromisoformat(fields.pop("at"))
        cwd = str(fields.pop("cwd", ""))
        saved = fields.pop("saved", False) is True
        fields["workspace"] = fields.get("workspace") or cwd
        texts = {key: str(value) for key, value in fields.items()}
        return Problem(at=at, **texts, saved=saved)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
