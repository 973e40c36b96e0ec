"""What hooks could not do: a log beside the stores that `holdfast status` reads.

One JSON object a line, appended in one write. The file is private, and bounded: a full one becomes
`hooks.log.1`, in the place of the one before. Nothing here raises.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.interfaces.hooks.events import AgentEvent

NAME = "hooks.log"
MOST_BYTES = 512 << 10
_MOST_TEXT = 1_000
_AGAIN_AFTER = timedelta(hours=1)
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Problem:
    """One event that was not dealt with, and why. `saved`: the state is safe, and something beside
    it went wrong, such as the conversation that was not recorded."""

    at: datetime
    agent: str
    event: str
    tool: str
    session: str
    workspace: str
    code: str
    message: str
    saved: bool = False


def note_problem(agent: str, event: AgentEvent | None, error: BaseException) -> None:
    """Write it down; on standard error if there is no way to."""
    _note(agent, event, _code(error), _message(error), saved=False)


def note_trouble(event: AgentEvent, what: str, error: BaseException) -> None:
    """The state was saved, and something beside it went wrong. What goes wrong with each event of
    a session is written down once an hour, so that it does not push everything else out."""
    code, message = _code(error), f"{what}: {_message(error)}"
    since = datetime.now(UTC) - _AGAIN_AFTER
    known = any(
        (old.code, old.message, old.session) == (code, message[:_MOST_TEXT], event.session)
        for old in _read_all()
        if old.at >= since
    )
    if not known:
        _note(event.agent, event, code, message, saved=True)


def _code(error: BaseException) -> str:
    return str(getattr(error, "code", type(error).__name__))


def _message(error: BaseException) -> str:
    return str(getattr(error, "message", None) or str(error) or type(error).__name__)


def _note(agent: str, event: AgentEvent | None, code: str, message: str, *, saved: bool) -> None:
    entry: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "agent": agent,
        "event": event.name if event else "",
        "tool": event.tool if event else "",
        "session": event.session if event else "",
        "workspace": (event.project or event.cwd or "") if event else "",
        "cwd": (event.cwd if event else None) or _here(),
        "code": code,
        "message": message,
    }
    cut = {key: text[:_MOST_TEXT] for key, text in entry.items()}
    line = json.dumps(cut | ({"saved": True} if saved else {})) + "\n"
    try:
        _append(line.encode())
    except Exception as failed:  # whatever it is, the agent goes on
        _complain(f"holdfast: not protected: {message} (and no log: {failed})")


def _here() -> str:
    """Where the hook runs: of an event that nobody could read that is all there is to know."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def problems_of(workspace: Path, since: datetime) -> list[Problem]:
    """What was noted about a workspace since then, oldest first."""
    root = str(workspace)
    return [
        problem
        for problem in _read_all()
        if problem.at >= since
        and (problem.workspace == root or problem.workspace.startswith(root + "/"))
    ]


def log_file() -> Path:
    from holdfast.bootstrap import holdfast_home

    return holdfast_home(os.environ) / NAME


def _append(data: bytes) -> None:
    path = log_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, _FLAGS, 0o600)
    try:
        if os.fstat(fd).st_size > MOST_BYTES:
            os.replace(path, path.with_name(NAME + ".1"))
            os.close(fd)
            fd = os.open(path, _FLAGS, 0o600)
        os.write(fd, data)
    finally:
        os.close(fd)


def _read_all() -> Iterator[Problem]:
    for path in (log_file().with_name(NAME + ".1"), log_file()):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            for line in file.read(2 * MOST_BYTES).splitlines():
                problem = _parse(line)
                if problem is not None:
                    yield problem


def _parse(line: bytes) -> Problem | None:
    """A line that was cut off says nothing."""
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


def _complain(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except Exception:  # nobody listens there either
        return
