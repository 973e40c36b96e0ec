"""What hooks could not do: a log beside the stores that `holdfast status` reads.

    beside the stores → else on standard error, and where the daemon's socket is

What keeps a checkpoint from being stored often keeps a log beside the stores from being written,
too: a full disk, a home that is read-only. The second place is on another file system, as a rule.

One JSON object a line, appended in one write. The files are private, and bounded: a full one
becomes `….1`, in the place of the one before. Nothing here raises.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from holdfast.domain.agent_events import AgentEvent
from holdfast.values.classes import dataclass

NAME = "hooks.log"
MOST_BYTES = 512 << 10
_MOST_TEXT = 1_000
_AGAIN_AFTER = timedelta(hours=1)
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


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
    if not _is_known(code, message, event.session):
        _note(event.agent, event, code, message, saved=True)


def note_missed(workspace: Path, session: str, error: BaseException) -> None:
    """An automatic checkpoint that nobody waits for could not be made; once an hour, too."""
    code, message = _code(error), _message(error)
    if not _is_known(code, message, session):
        entry = {"session": session, "workspace": _real(str(workspace))}
        entry |= {"agent": "daemon", "event": "automatic checkpoint", "tool": ""}
        _write(entry | {"cwd": entry["workspace"]}, code, message, saved=False)


def _is_known(code: str, message: str, session: str) -> bool:
    since = datetime.now(UTC) - _AGAIN_AFTER
    return any(
        (old.code, old.message, old.session) == (code, message[:_MOST_TEXT], session)
        for old in _read_all()
        if old.at >= since
    )


def _code(error: BaseException) -> str:
    return str(getattr(error, "code", type(error).__name__))


def _message(error: BaseException) -> str:
    return str(getattr(error, "message", None) or str(error) or type(error).__name__)


def _note(agent: str, event: AgentEvent | None, code: str, message: str, *, saved: bool) -> None:
    entry = {
        "agent": agent,
        "event": event.name if event else "",
        "tool": event.tool if event else "",
        "session": event.session if event else "",
        "workspace": _real((event.project or event.cwd or "") if event else ""),
        "cwd": _real((event.cwd if event else None) or _here()),
    }
    _write(entry, code, message, saved=saved)


def _write(entry: dict[str, str], code: str, message: str, *, saved: bool) -> None:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = {"at": at, **entry, "code": code, "message": message}
    cut = {key: text[:_MOST_TEXT] for key, text in entry.items()}
    line = json.dumps(cut | ({"saved": True} if saved else {})) + "\n"
    failures = []
    for place in (log_file, _second_log_file):
        try:
            _append(place(), line.encode())
            break
        except Exception as failed:  # whatever it is, the agent goes on
            failures.append(str(failed))
    if failures:
        _complain(f"holdfast: not protected: {message} (and no log: {'; '.join(failures)})")


def _here() -> str:
    """Where the hook runs: of an event that nobody could read that is all there is to know."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _real(path: str) -> str:
    """The path that the workspace goes by, whatever links the agent came along."""
    try:
        return os.path.realpath(path) if path else ""
    except (OSError, ValueError):
        return path


def problems_of(workspace: Path, since: datetime) -> list[Problem]:
    """What was noted about a workspace since then, oldest first."""
    root = _real(str(workspace))
    found = [
        problem
        for problem in _read_all()
        if problem.at >= since
        and (problem.workspace == root or problem.workspace.startswith(root.rstrip("/") + "/"))
    ]
    return sorted(found, key=lambda problem: problem.at)


def log_file() -> Path:
    from holdfast.bootstrap.locations import holdfast_home

    return holdfast_home(os.environ) / NAME


def log_files() -> list[Path]:
    """The logs that there are: as a rule one, beside the stores."""
    places = (log_file(), *(directory / _second_name() for directory in _second_places()))
    return [place for place in places if place.is_file()]


def _second_places() -> list[Path]:
    from holdfast.interfaces.daemon.address import candidate_directories

    return [Path(directory) for directory in candidate_directories(os.environ)]


def _second_name() -> str:
    """Another `HOLDFAST_HOME` has another log, as it has another daemon."""
    from holdfast.interfaces.daemon.address import socket_name

    return f"{socket_name(os.environ).removesuffix('.sock')}.{NAME}"


def _second_log_file() -> Path:
    """In a directory that nobody else can enter; `NoPlace` when there is none."""
    from holdfast.interfaces.daemon.address import NoPlace, require_private

    reasons = []
    for directory in _second_places():
        try:
            require_private(str(directory))
        except (NoPlace, OSError) as error:
            reasons.append(str(error))
            continue
        return directory / _second_name()
    raise NoPlace("; ".join(reasons))


def _append(path: Path, data: bytes) -> None:
    """The whole line, or OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, _FLAGS, 0o600)
    try:
        size = os.fstat(fd).st_size
        if size > MOST_BYTES:
            os.replace(path, path.with_name(path.name + ".1"))
            os.close(fd)
            fd = os.open(path, _FLAGS, 0o600)
            size = 0
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # the line before was cut off by a full disk
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(fd)


def _read_all() -> Iterator[Problem]:
    from holdfast.interfaces.daemon.address import is_private

    second = [place / _second_name() for place in _second_places() if is_private(str(place))]
    logs = [log_file(), *second]
    for path in (each for log in logs for each in (log.with_name(log.name + ".1"), log)):
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
