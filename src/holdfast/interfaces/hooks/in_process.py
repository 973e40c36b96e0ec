"""`holdfast hook AGENT` without a daemon: an event on standard input, an answer on standard output.

    read → translate → handle → answer

Guarantees: the agent always gets an answer that lets it continue, and status 0. Failures are
logged. An exiting agent waits only briefly for its hooks, so the end of a session is answered
immediately and handled in another process.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply
from holdfast.interfaces.agents.agent import Agent
from holdfast.interfaces.hooks.payloads import parse_payload, read_payload
from holdfast.interfaces.hooks.runtime_files import event_handler, problem_log
from holdfast.interfaces.hooks.translation import Call, event_of, plain_answer, read_call

if TYPE_CHECKING:
    from holdfast.api.automation import EventHandler, OpenedForEvent


def answer(
    arguments: Sequence[str],
    *,
    own_process: bool,
    taken: bytes = b"",
    begin_daemon: bool = False,
) -> int:
    """Run the hook; always returns 0. In its own process it may continue after the answer. `taken`
    is the beginning of the input, if it was read already. `begin_daemon` starts a daemon for the
    next event, unless the settings forbid it."""
    call = read_call(arguments)
    event: AgentEvent | None = None
    known: Agent | None = None
    answered = False
    try:
        payload = read_payload(_input(), taken)
        event, known = event_of(call, payload, os.environ, time.time_ns())
        if not event.is_known:
            answered = True
            _write(known.render(event, Reply()), own_process)
            return 0
        handler = event_handler(os.environ)
        workspace = handler.workspace_for(event)
        if event.kind is EventKind.SESSION_END and own_process:
            answered = True
            _write(known.render(event, Reply()), own_process)
            _finish_in_child(handler, workspace, event, begin_daemon)
            return 0
        reply = handler.handle_event(event, workspace)
        if begin_daemon and workspace.allows_daemon:
            _begin_daemon()
        answered = True
        delivered = _write(known.render(event, reply), own_process)
        handler.settle(event, workspace, reply, delivered=delivered)
    except BaseException as error:  # the agent continues, whatever the error is
        if answered:
            _note(event.agent if event else call.agent, event, error)
        else:
            _answer_failure(call, event, known, error, own_process)
    return 0


def answer_without_work(arguments: Sequence[str], taken: bytes, error: BaseException) -> None:
    """Answer yes to the agent, and log why nothing was done."""
    call = read_call(arguments)
    event: AgentEvent | None = None
    known: Agent | None = None
    try:
        event, known = event_of(call, parse_payload(taken), os.environ, time.time_ns())
    except Exception:  # the content of the event stays unknown
        event = None
    _answer_failure(call, event, known, error, own_process=True)


def _answer_failure(
    call: Call,
    event: AgentEvent | None,
    known: Agent | None,
    error: BaseException,
    own_process: bool,
) -> None:
    """Let the agent continue, and notify it that nothing was saved."""
    agent = event.agent if event is not None else call.agent
    if event is None or known is None or not event.is_known:
        if event is None or event.is_known:
            _note(agent, event, error)
        _write(plain_answer(known, agent, event), own_process)
        return
    answered = False
    try:
        handler = event_handler(os.environ)
        reply = handler.failed(event, error)
        text = known.render(event, reply)
        answered = True
        delivered = _write(text, own_process)
        handler.settle(event, handler.workspace_for(event), reply, delivered=delivered)
    except Exception as failed:
        _note(agent, event, failed)
        if not answered:
            _write(plain_answer(known, agent, event), own_process)


def _note(agent: str, event: AgentEvent | None, error: BaseException) -> None:
    problem_log(os.environ).note_problem(agent, event, error)


def _begin_daemon() -> None:
    """Start it for the next event: an agent never waits for a daemon to start."""
    from holdfast.interfaces.daemon.client import begin_daemon

    begin_daemon(os.environ)


def _finish_in_child(
    handler: EventHandler,
    workspace: OpenedForEvent,
    event: AgentEvent,
    begin_daemon: bool,
) -> None:
    """Finish the event in a process that the agent does not wait for."""
    try:
        child = os.fork()
    except OSError:
        child = 0  # cannot fork: do it in this process
    else:
        if child:
            return
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
    try:
        handler.handle_event(event, workspace)
        if begin_daemon and workspace.allows_daemon:
            _begin_daemon()
    except BaseException as error:
        handler.problems.note_problem(event.agent, event, error)
    finally:
        os._exit(0)


def _input() -> BinaryIO:
    stream = sys.stdin
    if stream is None:
        return io.BytesIO()
    if hasattr(stream, "buffer"):
        return stream.buffer
    return io.BytesIO(stream.read().encode("utf-8", "surrogateescape"))


def _write(text: str, own_process: bool) -> bool:
    """Returns whether the agent read the answer. A closed pipe is not an error."""
    data = (text + "\n" if text else "").encode()
    try:
        if not own_process:
            sys.stdout.write(data.decode())
            sys.stdout.flush()
            return True
        while data:
            data = data[os.write(1, data) :]
    except (OSError, ValueError):
        return False
    return True
