"""The steps of a replay one after the other: plain for a pipe, as data for a program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.api.views.changes import ChangeView, change_view
from holdfast.api.views.replay import (
    DamagedStepView,
    ReplayStepView,
    component_lines_view,
    damaged_step_view,
    replay_message_view,
    replay_step_view,
)
from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.cli.checkpoint_view import confidence_word, identifier, moment, title
from holdfast.interfaces.cli.diff_views.as_json import change_as_json
from holdfast.interfaces.cli.diff_views.difference import notes
from holdfast.interfaces.cli.diff_views.unified import show_unified
from holdfast.interfaces.cli.terminal import BOLD, DIM, RED, Terminal, visible
from holdfast.interfaces.cli.whole_output import whole_output

if TYPE_CHECKING:
    from holdfast.api.diffs import Diffs
    from holdfast.api.history import Replay


def show_steps(
    terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool, now: datetime
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
            _show_changes(terminal, diffs, replay, patch=patch)
        except HoldfastError as error:
            whole = False
            terminal.line(terminal.paint(f"    damaged: {visible(error.message)}", RED))
    return whole


def _show_changes(terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool) -> None:
    changes = replay.changes()
    if patch:
        step = replay.step
        difference = diffs.of(step.before, step.checkpoint, changes)
        show_unified(terminal, difference, exact=False)
        return
    for change in changes:
        path = terminal.path(change.path) + ("/" if change.is_directory else "")
        if change.old_path is not None:
            path = f"{terminal.path(change.old_path)} → {path}"
        said = terminal.paint(f" ({', '.join(notes(change))})", DIM) if notes(change) else ""
        terminal.line(f"    {change.type.value} {path}{said}")


def write_json(
    terminal: Terminal, diffs: Diffs, replay: Replay, *, patch: bool, head: str | None
) -> bool:
    """The same as one JSON value; whether all of the steps could be read."""
    start, whole = replay.position, True
    begin = {"session_id": replay.session_id, "position": start}
    with whole_output(terminal) as write:
        write(json.dumps(begin)[:-1].encode() + b', "steps": [')
        for index in range(len(replay.steps)):
            told: ReplayStepView | DamagedStepView
            try:
                replay.go_to(index)
                told = _step(diffs, replay, patch=patch, head=head)
            except HoldfastError as error:
                told = damaged_step_view(index, error)
            whole = whole and told["damage"] is None
            write(((", " if index else "") + json.dumps(told)).encode())
        write(b"]}\n")
    return whole


def _step(diffs: Diffs, replay: Replay, *, patch: bool, head: str | None) -> ReplayStepView:
    told = replay_step_view(replay, head=head)
    try:
        told["changes"] = list(_changes(diffs, replay, patch=patch))
        told["components"] = component_lines_view(replay.components())
        told["messages"] = [replay_message_view(message) for message in replay.new_messages()]
    except HoldfastError as error:
        told["damage"] = error.to_dict()
    return told


def _changes(diffs: Diffs, replay: Replay, *, patch: bool) -> Iterator[ChangeView]:
    changes = replay.changes()
    difference = diffs.of(replay.step.before, replay.step.checkpoint, changes)
    for change in changes:
        yield change_as_json(difference, change) if patch else change_view(change)
