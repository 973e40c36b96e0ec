"""The steps of a replay one after the other: plain for a pipe, as data for a program."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from holdfast.domain.errors import HoldfastError
from holdfast.domain.messages import Message
from holdfast.engine.replay.replay import Replay
from holdfast.engine.vault import Vault
from holdfast.interfaces.cli import json_output
from holdfast.interfaces.cli.checkpoint_view import confidence_word, identifier, moment, title
from holdfast.interfaces.cli.diff_views.as_json import change_as_json
from holdfast.interfaces.cli.diff_views.difference import Difference, notes
from holdfast.interfaces.cli.diff_views.unified import show_unified
from holdfast.interfaces.cli.json_output import dumps
from holdfast.interfaces.cli.terminal import BOLD, DIM, RED, Terminal, visible
from holdfast.interfaces.cli.whole_output import whole_output
from holdfast.interfaces.cli.wording import iso


def show_steps(
    terminal: Terminal, vault: Vault, replay: Replay, *, patch: bool, now: datetime
) -> bool:
    """Each step with what it changed; whether all of them could be read."""
    start, whole = replay.position, True
    for index in range(len(replay.steps)):
        try:
            step = replay.go_to(index)
        except HoldfastError as error:
            whole = False
            said = f"  {index + 1} damaged: {visible(error.message)}"
            terminal.line(terminal.paint(said, RED))
            continue
        found = step.checkpoint
        mark = ">" if step.index == start else " "
        terminal.line(
            f"{mark} {step.index + 1} {terminal.paint(step.action.value, BOLD)} "
            f"{identifier(terminal, found)} {moment(terminal, found, now)} "
            f"{found.kind.value} {confidence_word(found)} {title(found)}"
        )
        try:
            _show_changes(terminal, vault, replay, patch=patch)
        except HoldfastError as error:
            whole = False
            terminal.line(terminal.paint(f"    damaged: {visible(error.message)}", RED))
    return whole


def _show_changes(terminal: Terminal, vault: Vault, replay: Replay, *, patch: bool) -> None:
    changes = replay.changes()
    if patch:
        step = replay.step
        difference = Difference(vault, step.before, step.checkpoint, changes)
        show_unified(terminal, difference, exact=False)
        return
    for change in changes:
        path = terminal.path(change.path) + ("/" if change.is_directory else "")
        if change.old_path is not None:
            path = f"{terminal.path(change.old_path)} → {path}"
        said = terminal.paint(f" ({', '.join(notes(change))})", DIM) if notes(change) else ""
        terminal.line(f"    {change.type.value} {path}{said}")


def write_json(
    terminal: Terminal, vault: Vault, replay: Replay, *, patch: bool, head: str | None
) -> bool:
    """The same as one JSON value; whether all of the steps could be read."""
    start, whole = replay.position, True
    begin = {"session_id": replay.session_id, "position": start}
    with whole_output(terminal) as write:
        write(dumps(begin)[:-1].encode() + b', "steps": [')
        for index in range(len(replay.steps)):
            told: dict[str, Any]
            try:
                replay.go_to(index)
                told = _step(vault, replay, patch=patch, head=head)
            except HoldfastError as error:
                told = {"index": index, "damage": error.to_dict()}
            whole = whole and told["damage"] is None
            write(((", " if index else "") + dumps(told)).encode())
        write(b"]}\n")
    return whole


def _step(vault: Vault, replay: Replay, *, patch: bool, head: str | None) -> dict[str, Any]:
    step = replay.step
    found = step.checkpoint
    state = replay.agent_state()
    told: dict[str, Any] = {"index": step.index, "action": step.action.value}
    told |= json_output.checkpoint_with_intent(found, is_head=found.id == head)
    told |= {
        "tool_calls": found.intent.to_dict()["tool_calls"],
        "before": step.before.id if step.before is not None else None,
        "round": state.round,
        "message_index": state.message_index,
        "tool_use_id": state.tool_use_id,
        "components": None,
        "changes": None,
        "messages": None,
        "damage": None,
    }
    try:
        told["changes"] = list(_changes(vault, replay, patch=patch))
        told["components"] = [{"name": name, "said": said} for name, said in replay.components()]
        told["messages"] = [_message(message) for message in replay.new_messages()]
    except HoldfastError as error:
        told["damage"] = error.to_dict()
    return told


def _changes(vault: Vault, replay: Replay, *, patch: bool) -> Iterator[dict[str, Any]]:
    changes = replay.changes()
    difference = Difference(vault, replay.step.before, replay.step.checkpoint, changes)
    for change in changes:
        yield change_as_json(difference, change) if patch else json_output.change(change)


def _message(message: Message) -> dict[str, Any]:
    return {
        "index": message.index,
        "role": message.role.value,
        "content": message.content,
        "at": iso(datetime.fromtimestamp(message.at_ns / 1e9).astimezone()),
        "tool_calls": list(message.tool_calls),
        "rolled_back": message.rolled_back_by is not None,
    }
