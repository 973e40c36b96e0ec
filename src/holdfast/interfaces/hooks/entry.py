"""`holdfast hook AGENT`: one event on standard input, one answer on standard output, status 0.

    read → normalise → deliver (and wait, if the agent is about to change something) → answer

Guarantees: whatever happens, the agent gets an answer it takes for a yes, and status 0. What went
wrong is in the log. An event after the fact is answered at once and dealt with in a process of its
own, unless a check of the user's may have to run on what a tool left.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

from holdfast.domain.agent_events import AgentEvent, Reply
from holdfast.interfaces.agents.agent import Agent
from holdfast.interfaces.hooks.calls import event_of, plain_answer, read_call
from holdfast.interfaces.hooks.payloads import parse_payload, read_payload


def answer(
    arguments: Sequence[str],
    *,
    own_process: bool,
    taken: bytes = b"",
    begin_daemon: bool = False,
) -> int:
    """Run the hook; always 0. In its own process it may go on after it has answered. `taken` is the
    beginning of the input, if somebody has read it. With `begin_daemon` there is one the next
    time, unless the settings say otherwise."""
    call = read_call(arguments)
    agent = call.agent
    event: AgentEvent | None = None
    known: Agent | None = None
    answered = False
    try:
        payload = read_payload(_Rest(taken, _input()))
        event, known = event_of(call, payload, os.environ, time.time_ns())
        agent = event.agent
        if not event.is_known:
            reply = Reply()
        elif not own_process or _must_wait(event):
            reply = _deliver(event, begin_daemon)
        else:
            reply = _deliver(event.only_asking()) if event.carries else Reply()
            answered = True
            _tell(event, known, reply, own_process)
            _go_on_alone(event, begin_daemon)
        if not answered:
            answered = True
            _tell(event, known, reply, own_process)
    except BaseException as error:  # the agent goes on, whatever it is
        _note(agent, event, error)
        if not answered:
            _tell_of_failure(event, known, agent, error, own_process)
    return 0


def _must_wait(event: AgentEvent) -> bool:
    if event.must_wait:
        return True
    from holdfast.app.automation.checks import may_be_checked

    return may_be_checked(event, os.environ)


def answer_without_work(arguments: Sequence[str], taken: bytes, error: BaseException) -> None:
    """Say yes to the agent, and write down that nothing was done, and why."""
    call = read_call(arguments)
    agent = call.agent
    event: AgentEvent | None = None
    known: Agent | None = None
    try:
        event, known = event_of(call, parse_payload(taken), os.environ, time.time_ns())
        agent = event.agent
    except Exception:  # what the event was about stays unknown
        event = None
    if event is None or event.is_known:
        _note(agent, event, error)
    _tell_of_failure(event, known, agent, error, own_process=True)


def _deliver(event: AgentEvent, begin_daemon: bool = False) -> Reply:
    from holdfast.interfaces.hooks.delivery import deliver

    return deliver(event, begin_daemon=begin_daemon)


def _note(agent: str, event: AgentEvent | None, error: BaseException) -> None:
    from holdfast.interfaces.hooks.problems import note_problem  # hardly ever needed

    note_problem(agent, event, error)


def _go_on_alone(event: AgentEvent, begin_daemon: bool) -> None:
    """Deal with an event in a process that the agent does not wait for."""
    try:
        child = os.fork()
    except OSError:
        child = 0  # no further process: do it in this one
    else:
        if child:
            return
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
    try:
        _deliver(event, begin_daemon)
    except BaseException as error:
        _note(event.agent, event, error)
    finally:
        os._exit(0)


class _Rest:
    """An input whose beginning was read already."""

    def __init__(self, taken: bytes, stream: BinaryIO) -> None:
        self._taken = taken
        self._stream = stream

    def read(self, size: int) -> bytes:
        taken, self._taken = self._taken[:size], self._taken[size:]
        return taken + self._stream.read(size - len(taken)) if len(taken) < size else taken


def _input() -> BinaryIO:
    stream = sys.stdin
    if stream is None:
        return io.BytesIO()
    if hasattr(stream, "buffer"):
        return stream.buffer
    return io.BytesIO(stream.read().encode("utf-8", "surrogateescape"))


def _tell(event: AgentEvent, known: Agent, reply: Reply, own_process: bool) -> None:
    told = _say(known.render(event, reply), own_process)
    if reply.claim is not None:
        from holdfast.bootstrap.event_workspace import workspace_of
        from holdfast.interfaces.hooks.telling import settle_in

        settle_in(event, workspace_of(event), reply.claim, told=told)
    if reply.notices and told:
        from holdfast.interfaces.hooks.protection_notices import settle

        settle(event, reply.notices)


def _tell_of_failure(
    event: AgentEvent | None,
    known: Agent | None,
    agent: str,
    error: BaseException,
    own_process: bool,
) -> None:
    """The agent goes on, and is told that nothing was saved."""
    try:
        if event is not None and known is not None and event.is_known:
            from holdfast.interfaces.hooks.protection_notices import of_failure

            _tell(event, known, of_failure(event, error), own_process)
            return
    except Exception as failed:
        _note(agent, event, failed)
    _say(plain_answer(known, agent, event), own_process)


def _say(text: str, own_process: bool) -> bool:
    """An answer that nobody takes is no reason to fail; whether it was taken."""
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
