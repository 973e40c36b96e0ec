"""Restores after a tool call that failed, or that the user's own check rejects (AU-5).

The check is a command. It runs in the workspace with the agent's environment, without a terminal,
and without a shell unless the setting names one. Its process group is killed on timeout. Only a
command that ran and failed counts as a failure. A command that could not start or finish says
nothing about the work. This is reported, and nothing is restored.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from holdfast.app.automation.agent_sessions import find_session
from holdfast.app.automation.event_dedupe import EventDedupe
from holdfast.domain.agent_events import AgentEvent, Reply
from holdfast.domain.tool_calls import masked
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    import subprocess

    from holdfast.app.automation.problem_log import ProblemLog
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.sessions import Session

_TAIL_BYTES = 2_000
_MOST_SHOWN = 200
_PATIENCE_S = 5.0
_LOOK_FOR_SIGNALS_S = 0.2


def restore_after_failure(
    opened: OpenWorkspace, event: AgentEvent, session: Session, dedupe: EventDedupe
) -> Reply:
    """Called with the lock held, after an event that reports a failed call."""
    why = f"to before {event.tool} failed ({event.failure})"
    target = dedupe.checkpoint_before(event)
    if target is None or opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        target = checkpoint_by_intent(opened, event, session) or target
    if target is None:
        # A call that saves nothing has nothing to roll back either.
        return _not_restored(why) if event.tool_kind.changes_files else Reply()
    reply = restore_to(opened, session, target, why)
    dedupe.note(event, target, before=False)
    return reply


def restore_to(opened: OpenWorkspace, session: Session, target: str, why: str) -> Reply:
    """Called with the lock held; the reply reports the result to the agent."""
    if opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        return _not_restored(why)
    request = opened.engine.restore_request(session.id, target, only_changes=True)
    outcome = opened.engine.restore(request)
    if not outcome.steps:
        return Reply(target)
    one = outcome.files_changed == 1
    files = "1 file was" if one else f"{outcome.files_changed:,} files were"
    text = (
        f"Holdfast rolled the workspace back {why}: {files} restored to checkpoint "
        f"{target[:10]}. Read files again before you edit them. To get the failed state back: "
        "holdfast undo"
    )
    return Reply(target, context=(text,))


def checkpoint_by_intent(opened: OpenWorkspace, event: AgentEvent, session: Session) -> str | None:
    """If the notes are lost: the checkpoint whose reason says that it was made before this call."""
    for found in opened.engine.vault.catalog.history(session.id, limit=20):
        same = event.tool_use_id is not None and found.tool_use_id == event.tool_use_id
        if same and found.intent.reasoning.startswith("Before "):
            return found.id
    return None


def _not_restored(why: str) -> Reply:
    text = (
        f"Holdfast could not roll the workspace back {why}: that checkpoint no longer exists. "
        "Nothing was changed. Check the files, or choose another checkpoint: holdfast log"
    )
    return Reply(context=(text,))


class CheckNotRun(Exception):
    """The check gave no result, for the given reason."""

    code = "check_not_run"


class CheckResult(NamedTuple):
    """`status` is 0 for a pass; `tail` is the end of its output, without known secrets."""

    status: int
    tail: str

    @property
    def failure(self) -> str:
        if self.status < 0:
            return f"ended by signal {-self.status}"
        return f"exit status {self.status}"


def check_after_tool(
    opened: OpenWorkspace, event: AgentEvent, reply: Reply, before: str, problems: ProblemLog
) -> Reply:
    """Run the check, without the lock. A failure is reported or, if the settings say so, the
    checkpoint `before` the call is restored."""
    settings = opened.engine.vault.settings
    command = settings.check_command
    try:
        result = run_check(command, opened.engine.vault.workspace, settings.check_timeout)
    except CheckNotRun as error:
        problems.note_problem(event.agent, event, error)
        return reply._replace(context=(*reply.context, f"{error}."))
    if result.status == 0:
        return reply
    failed = f"the check {quoted_command(command)} failed after {event.tool} ({result.failure})"
    text = f"{failed[0].upper()}{failed[1:]}."
    if settings.restore_on_failure == "on":
        with opened.engine.vault.lock.hold():
            session = find_session(opened, event)
            if session is None or EventDedupe.of(opened).is_superseded(event):
                text += " Nothing was rolled back, because other work has happened since."
            else:
                why = f"to before {event.tool}, because {failed}"
                text = restore_to(opened, session, before, why).text or text
    ended = (f"Its last output:\n{result.tail}",) if result.tail else ()
    return reply._replace(context=(*reply.context, text, *ended))


def quoted_command(command: Sequence[str]) -> str:
    text = masked(" ".join(command))
    return "".join(c if c.isprintable() else "?" for c in text)[:_MOST_SHOWN]


def run_check(command: Sequence[str], directory: Path, timeout_s: float) -> CheckResult:
    """Raises `CheckNotRun` if it could not start or did not finish."""
    import subprocess  # late: most hooks run no check
    import tempfile

    with tempfile.TemporaryFile() as output, _liveness_pipe() as (alive, held):
        why = f"did not finish within {timeout_s:g} seconds"
        with _deferred_signals() as arrived:
            try:
                process = subprocess.Popen(
                    list(command),
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(held,),
                )
            except (OSError, ValueError) as error:
                status, why = None, f"cannot be run: {error}"
            else:
                status = _wait(process, timeout_s, arrived)
                if status is None:
                    _end(process, alive, held)
        if status is None:
            text = f"the check {quoted_command(command)} {why}; nothing was rolled back"
            raise CheckNotRun(text)
        return CheckResult(status, _tail(output))


def _wait(process: subprocess.Popen[bytes], timeout_s: float, arrived: Sequence[int]) -> int | None:
    """The exit status; None on timeout, or if a signal asks this process to exit."""
    from subprocess import TimeoutExpired

    while not arrived and timeout_s > 0:
        with contextlib.suppress(TimeoutExpired):
            return process.wait(min(timeout_s, _LOOK_FOR_SIGNALS_S))
        timeout_s -= _LOOK_FOR_SIGNALS_S
    return None


def _end(process: subprocess.Popen[bytes], alive: int, held: int) -> None:
    """Kill the process and wait for its children. The same signal kills them, but slightly later,
    and until then they may still write. Processes that left the group are waited for up to a
    limit."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.dup2(alive, held)  # closes our writing end; nothing is ever written
    ended = select.poll()  # a daemon may have more handles than `select` can count
    ended.register(alive, select.POLLIN)
    ended.poll(_PATIENCE_S * 1000)


@contextmanager
def _liveness_pipe() -> Iterator[tuple[int, int]]:
    """A pipe: the check's processes hold the writing end, and this process reads."""
    ours, theirs = os.pipe()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def _deferred_signals() -> Iterator[Sequence[int]]:
    """Collects signals and raises them again at the end. Python could raise at any instruction:
    before a started process is known, or inside `subprocess` while it holds its lock, and the next
    wait for that process would never end."""
    arrived: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda came, _: arrived.append(came))
    try:
        yield arrived
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in arrived:
            signal.raise_signal(came)


def _tail(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _TAIL_BYTES, 0))
    text = masked(output.read(_TAIL_BYTES).decode("utf-8", "replace"))
    return "".join(c for c in text if c.isprintable() or c in "\n\t").strip()
