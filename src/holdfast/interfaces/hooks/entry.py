"""`holdfast hook AGENT`: one event on standard input, one answer on standard output, status 0.

    read → normalise → deliver (and wait, if the agent is about to change something) → answer

Guarantees: whatever happens, the agent gets an answer it takes for a yes, and status 0. What went
wrong is in the log. An event after the fact is answered at once and dealt with in a process of its
own.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from holdfast.interfaces.hooks.agents import AGENTS, dialect_of, sender
from holdfast.interfaces.hooks.events import AgentEvent, EventKind, Reply
from holdfast.interfaces.hooks.normaliser import Dialect, normalise
from holdfast.interfaces.hooks.payloads import read_payload

_WITH_VALUE = ("-C", "--session")


class UnknownAgent(Exception):
    """No adapter by that name."""


def answer(arguments: Sequence[str], *, own_process: bool) -> int:
    """Run the hook; always 0. In its own process it may go on after it has answered."""
    agent, named, directory = _called(arguments)
    event: AgentEvent | None = None
    dialect: Dialect | None = None
    answered = False
    try:
        payload = read_payload(_input())
        agent = sender(agent, payload)
        if agent not in AGENTS:
            raise UnknownAgent(f"there is no agent {agent!r}; known are: {', '.join(AGENTS)}")
        dialect = dialect_of(agent)
        if named and not any(field in payload for field in ("hook_event_name", "hookEventName")):
            payload = {**payload, "hook_event_name": named}
        event = _event(payload, dialect, directory)
        if not event.is_known:
            reply = Reply()
        elif event.must_wait or not own_process:
            reply = _deliver(event)
        else:
            reply = _deliver(event.only_asking()) if event.carries else Reply()
            _say(dialect.render(event, reply), own_process)
            answered = True
            _go_on_alone(event)
        if not answered:
            _say(dialect.render(event, reply), own_process)
            answered = True
    except BaseException as error:  # the agent goes on, whatever it is
        _note(agent, event, error)
        if not answered:
            _say(_plain_answer(dialect, agent, event), own_process)
    return 0


def _event(payload: dict[str, Any], dialect: Dialect, directory: str | None) -> AgentEvent:
    if directory is not None:
        payload = {**payload, "cwd": directory, "workspace_roots": [], "workspaceRoots": []}
        return normalise(payload, dialect, {}, received_ns=time.time_ns())
    return normalise(payload, dialect, os.environ, received_ns=time.time_ns())


def _deliver(event: AgentEvent) -> Reply:
    from holdfast.interfaces.hooks.delivery import deliver

    return deliver(event)


def _note(agent: str, event: AgentEvent | None, error: BaseException) -> None:
    from holdfast.interfaces.hooks.problems import note_problem  # hardly ever needed

    note_problem(agent, event, error)


def _go_on_alone(event: AgentEvent) -> None:
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
        _deliver(event)
    except BaseException as error:
        _note(event.agent, event, error)
    finally:
        os._exit(0)


def _called(arguments: Sequence[str]) -> tuple[str, str, str | None]:
    """The agent that is named, the event if it is, and the directory of `-C`."""
    directory: str | None = None
    words: list[str] = []
    waiting = iter(arguments)
    for word in waiting:
        if word in _WITH_VALUE:
            value = next(waiting, None)
            directory = value if word == "-C" else directory
        elif not word.startswith("-"):
            words.append(word)
    words += ["", ""]
    return words[0], words[1], directory


def _plain_answer(dialect: Dialect | None, agent: str, event: AgentEvent | None) -> str:
    """What the agent takes for a yes, without anything to say."""
    try:
        known = dialect or dialect_of(agent)
        return known.render(event or AgentEvent(agent, "", EventKind.OTHER), Reply())
    except Exception:  # an agent nobody knows
        return "{}"


def _input() -> BinaryIO:
    stream = sys.stdin
    if stream is None:
        return io.BytesIO()
    if hasattr(stream, "buffer"):
        return stream.buffer
    return io.BytesIO(stream.read().encode("utf-8", "surrogateescape"))


def _say(text: str, own_process: bool) -> None:
    """An answer that nobody takes is no reason to fail."""
    data = (text + "\n" if text else "").encode()
    try:
        if not own_process:
            sys.stdout.write(data.decode())
            sys.stdout.flush()
            return
        while data:
            data = data[os.write(1, data) :]
    except (OSError, ValueError):
        return
