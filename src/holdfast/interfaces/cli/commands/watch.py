"""`holdfast watch`: automatic checkpoints in the foreground, for agents without hooks.

It stops between two saves, not during one:

    a signal while it waits   → it stops
    a signal while it saves   → it stops when the save is done
    a second signal           → interrupts the save, as in any other command

Not guaranteed: signal handling if the command runs in a thread of another program. Signals reach
only the main thread, where that program handles them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING

from holdfast.domain.errors import Busy, NoSpace
from holdfast.interfaces.cli.arguments import Parser, number_option
from holdfast.interfaces.cli.checkpoint_view import change_words, identifier
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible
from holdfast.interfaces.cli.wording import count

if TYPE_CHECKING:
    from holdfast.api.automation import WatchedWorkspace
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.triggers import TriggerRules

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PART_S = 1.0
"""Python notices a signal that arrives while it is going to sleep only when it wakes up."""
_DEBOUNCE_S = 1.0
_MOST = 1_000_000
_OFF = "0 turns that trigger off"


class Stopped(BaseException):
    """A signal requested a stop while nothing was being saved."""


class GracefulStop:
    """Requested by signals; `wait` then raises `Stopped`."""

    def __init__(self) -> None:
        self._asked = False
        self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle signals, except those that are ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        taken = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self._take)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, before[number])

    def wait(self, happened: threading.Event, seconds: float | None) -> None:
        # In this order: a signal between the two lines is either seen here or raised.
        self._waiting = True
        try:
            if self._asked:
                raise Stopped
            _wait_in_parts(happened, seconds)
        finally:
            self._waiting = False

    def _take(self, number: int, frame: FrameType | None) -> None:
        again, self._asked = self._asked, True
        if again:
            raise KeyboardInterrupt
        if self._waiting:
            raise Stopped


def _wait_in_parts(happened: threading.Event, seconds: float | None) -> None:
    while seconds is None or seconds > 0:
        if happened.wait(_PART_S if seconds is None else min(seconds, _PART_S)):
            return
        seconds = None if seconds is None else seconds - _PART_S


def configure(parser: Parser) -> None:
    parser.usage = "holdfast watch [--files N] [--every MINUTES]"
    parser.description = """\
Save automatically while you work, for agents without hooks: after a burst of changes, at regular
intervals, after a merge into the main branch, and at the end of the day. Changes are also saved
when watch starts and when Ctrl-C stops it. If the system cannot report changes, watch scans the
workspace once a minute and says so."""
    parser.epilog = """\
examples:
  $ holdfast watch
  $ holdfast watch --files 1 --every 10 --session aider"""
    parser.add_argument(
        "--files",
        metavar="N",
        help="save after this many changed files, 0 for never (default: the setting auto_files)",
    )
    parser.add_argument(
        "--every",
        metavar="MINUTES",
        help="save changes after this many minutes, 0 for never (default: auto_interval)",
    )


def run(invocation: Invocation) -> int:
    invocation.at_most(0)
    stop = GracefulStop()
    with stop.on_signals():
        return _watch(invocation, stop)


def _watch(invocation: Invocation, stop: GracefulStop) -> int:
    from holdfast.api.automation import open_watcher, trigger_rules

    opened = invocation.open(create=True)
    happened = threading.Event()
    watcher = open_watcher()
    try:
        rules = _with_options(invocation, trigger_rules(opened.settings.effective))
        session = invocation.session(opened, create=True)
        workspace = opened.watch(watcher, listener=happened.set, rules=rules)
    except BaseException:
        opened.close()
        watcher.close()
        raise
    made: list[SaveOutcome] = []
    try:
        with invocation.busy("saving", opened):
            _note(invocation, made, workspace.begin(session))
        _announce(invocation, workspace)
        _save_on_triggers(invocation, workspace, happened, stop, made)
    except Stopped:
        _note(invocation, made, workspace.finish())
    finally:
        workspace.close()
        watcher.close()
    _show_summary(invocation, workspace, made)
    return 0


def _save_on_triggers(
    invocation: Invocation,
    workspace: WatchedWorkspace,
    happened: threading.Event,
    stop: GracefulStop,
    made: list[SaveOutcome],
) -> None:
    """Save on every trigger until stopped."""
    pause = threading.Event()
    while True:
        wait = workspace.wait_ns(_local_now())
        stop.wait(happened, None if wait is None else wait / 1e9)
        happened.clear()
        try:
            _note(invocation, made, workspace.consider(_local_now()))
        except (Busy, NoSpace) as error:
            invocation.terminal.warn(f"not saved: {error.message}")
        stop.wait(pause, _DEBOUNCE_S)


def _with_options(invocation: Invocation, rules: TriggerRules) -> TriggerRules:
    options = invocation.options
    if options.files is not None:
        files = number_option("--files", options.files, _MOST, hint=_OFF)
        rules = replace(rules, files=int(files))
    if options.every is not None:
        minutes = number_option("--every", options.every, _MOST, hint=_OFF)
        rules = replace(rules, interval_ns=int(minutes * 60 * 1e9))
    return rules


def _local_now() -> datetime:
    return datetime.now().astimezone()


def _announce(invocation: Invocation, workspace: WatchedWorkspace) -> None:
    if invocation.json:
        return
    status = workspace.status()
    name = visible(str(workspace.workspace))
    if status.off:
        invocation.terminal.warn(f"{name} is not watched: {status.doubt}")
        how = "Scanning every file once a minute"
    elif status.unproven:
        how = "Watching, and scanning every file once a minute"
    else:
        how = f"Watching {count(status.directories, 'directory', 'directories')}"
    invocation.terminal.line(f"{how} of {name}. Press Ctrl-C to stop.")
    invocation.terminal.flush()


def _note(invocation: Invocation, made: list[SaveOutcome], outcome: SaveOutcome | None) -> None:
    if outcome is None or outcome.deduplicated:
        return
    made.append(outcome)
    if invocation.json:
        return
    terminal, saved = invocation.terminal, outcome.checkpoint
    when = terminal.paint(f"{_local_now():%H:%M:%S}", DIM)
    kind = saved.kind.value
    terminal.line(
        f"{when} {terminal.tick} {identifier(terminal, saved)} {kind}: "
        f"{change_words(saved.changed)}"
    )
    for warning in outcome.warnings:
        terminal.warn_or_note(warning)
    terminal.flush()


def _show_summary(
    invocation: Invocation, workspace: WatchedWorkspace, made: list[SaveOutcome]
) -> None:
    if invocation.json:
        from holdfast.api.views.setup import watched_view

        invocation.emit(watched_view(workspace.workspace, workspace.session, made))
        return
    invocation.terminal.line(f"Stopped: {count(len(made), 'checkpoint')} saved.")
