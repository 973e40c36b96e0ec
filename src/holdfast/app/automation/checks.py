"""The user's own check of what a tool left: a command, run after it, within a time limit.

It runs in the workspace with what the agent's environment has, without a shell unless the setting
names one, without a terminal, and as a group of processes that ends with it when the time is over.
Only a command that ran and failed counts as a failure. One that could not be started, or did not
finish, says nothing about the work: that is told, and nothing is taken back.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from holdfast.bootstrap.locations import holdfast_home
from holdfast.domain.agent_events import AgentEvent, EventKind
from holdfast.domain.masking import masked

FLAG = "check-commands"
_TAIL_BYTES = 2_000
_MOST_SHOWN = 200
_PATIENCE_S = 5.0


class CheckNotRun(Exception):
    """The check said nothing, for the reason given."""

    code = "check_not_run"


class CheckResult(NamedTuple):
    """`status` is 0 for a pass; `tail` the end of what it printed, without known secrets."""

    status: int
    tail: str

    @property
    def failure(self) -> str:
        if self.status < 0:
            return f"ended by signal {-self.status}"
        return f"exit status {self.status}"


def may_be_checked(event: AgentEvent, environment: Mapping[str, str]) -> bool:
    """Whether the answer to an event may have to wait for a check: some workspace of the user's
    has one. Which, is not known without opening it."""
    if event.kind is not EventKind.AFTER_TOOL:
        return False
    return (holdfast_home(environment) / FLAG).exists()


def remember_checks(environment: Mapping[str, str]) -> None:
    """Noted before a tool runs, for the event after it."""
    flag = holdfast_home(environment) / FLAG
    if not flag.exists():
        with contextlib.suppress(OSError):
            os.close(os.open(flag, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def shown(command: Sequence[str]) -> str:
    text = masked(" ".join(command))
    return "".join(c if c.isprintable() else "?" for c in text)[:_MOST_SHOWN]


def run_check(command: Sequence[str], directory: Path, timeout_s: float) -> CheckResult:
    """`CheckNotRun` when it could not be started or did not finish."""
    process: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as output, _sign_of_life() as (alive, held):
        try:
            with _signals_wait():
                process = subprocess.Popen(
                    list(command),
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(held,),
                )
            status = process.wait(timeout_s)
        except BaseException as error:  # a signal to us too: nothing of it may go on alone
            if process is not None:
                _end(process, alive, held)
            if isinstance(error, subprocess.TimeoutExpired):
                why = f"did not finish within {timeout_s:g} seconds"
            elif isinstance(error, (OSError, ValueError)):
                why = f"cannot be run: {error}"
            else:
                raise
            text = f"the check {shown(command)} {why}; nothing was taken back"
            raise CheckNotRun(text) from None
        return CheckResult(status, _tail(output))


def _end(process: subprocess.Popen[bytes], alive: int, held: int) -> None:
    """And wait for what it had started: the same signal ends that, but a moment later, and until
    then it may still write. Who has left the group is not waited for without end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.dup2(alive, held)  # our own hold on it goes; nothing is ever written
    ended = select.poll()  # a daemon may have more handles than `select` can count
    ended.register(alive, select.POLLIN)
    ended.poll(_PATIENCE_S * 1000)


@contextmanager
def _sign_of_life() -> Iterator[tuple[int, int]]:
    """A pipe of which each process of a check holds one end, and we the other."""
    ours, theirs = os.pipe()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """One that would unwind between the start of a process and its being known waits until then."""
    waiting: list[int] = []
    taken = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if callable(signal.getsignal(number)):
                taken[number] = signal.signal(number, lambda came, _: waiting.append(came))
    try:
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
        for got in waiting:
            signal.raise_signal(got)


def _tail(output: BinaryIO) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _TAIL_BYTES, 0))
    text = masked(output.read(_TAIL_BYTES).decode("utf-8", "replace"))
    return "".join(c for c in text if c.isprintable() or c in "\n\t").strip()
