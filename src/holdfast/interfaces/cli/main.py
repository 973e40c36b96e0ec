"""The entry point of the command line: find the verb, run it, turn errors into exit statuses.

Guarantees: an error leaves standard output empty, except for lines already shown to people, and
prints the problem and a hint to standard error. Ctrl-C, SIGTERM and SIGHUP unwind the running
operation, which rolls back unfinished work. A closed pipe ends the command quietly.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.interfaces.cli.failures import (
    BROKEN_PIPE,
    Declined,
    EndRequest,
    to_holdfast_error,
    wants_traceback,
)
from holdfast.interfaces.cli.terminal import OutputFailed, Terminal
from holdfast.interfaces.cli.verbs import TOPICS, command_module, full_overview, overview

if TYPE_CHECKING:
    import signal

    from holdfast.interfaces.cli.invocation import Invocation
else:
    import _signal as signal  # built in; `signal` turns its numbers into an enum while it loads

_GARBAGE_THRESHOLD = 50_000
_TOOL_NUMBERS = range(6)
_WARN_AGAIN_S = 24 * 3600
_WARNED_FILE = "unprotected.told"


def main(argv: Sequence[str] | None = None, *, ready: Callable[[], object] | None = None) -> int:
    """`ready` is called as soon as Ctrl-C may raise an exception."""
    if argv is None:
        _prepare_process()
    tokens = list(sys.argv[1:] if argv is None else argv)
    if "hook" in tokens[:1] and not {"-h", "--help", "--version"} & set(tokens):
        return _answer_hook(tokens[1:], own_process=argv is None)
    terminal = Terminal()
    if any(token.startswith("--color") for token in tokens):
        from holdfast.interfaces.cli.arguments import colour_choice

        terminal.colour(colour_choice(tokens))
    try:
        with _signals_as_ctrl_c():
            if ready is not None:
                ready()
            status = _dispatch(tokens, terminal)
            terminal.flush()
            return status
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except BaseException as error:
        return _report(error, tokens, terminal)


def _answer_hook(arguments: list[str], *, own_process: bool) -> int:
    """An agent is waiting, and treats any status but 0 as a refusal. So this loads only what it
    needs, and lets no exception out."""
    try:
        with _signals_as_ctrl_c():
            from holdfast.interfaces.hooks.in_process import answer

            return answer(arguments, own_process=own_process)
    except BaseException:  # a signal between two lines
        return 0


def _prepare_process() -> None:
    """Set up the process, if it belongs to the command."""
    # The process is short, so garbage collection while modules load is wasted time.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    sys.unraisablehook = _raise_signal_again
    # If a standard stream is closed, the next opened file would get its number, and terminal output
    # would be written into it.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _dispatch(tokens: list[str], terminal: Terminal) -> int:
    from holdfast.interfaces.cli.arguments import has_flag, no_verb, require_verb, split_verb

    verb, rest = split_verb(tokens)
    if verb == "help":
        verb, _ = split_verb(rest)
        rest = ["--help"]
        if verb in TOPICS or verb == "all":
            terminal.write(full_overview() if verb == "all" else TOPICS[verb])
            return 0
    if verb is not None and verb != "help":
        return _run_verb(require_verb(verb, tokens), rest, terminal)
    if has_flag(tokens, "--version"):
        terminal.line(f"holdfast {__version__}")
        return 0
    if has_flag(rest, "-h", "--help"):
        terminal.write(overview())
        return 0
    if tokens:
        raise no_verb(tokens)
    terminal.err.write(overview())
    return 2


def _run_verb(verb: str, tokens: list[str], terminal: Terminal) -> int:
    from holdfast.interfaces.cli.arguments import HelpWanted, has_flag, parse

    if has_flag(tokens, "--version"):
        terminal.line(f"holdfast {__version__}")
        return 0
    module = command_module(verb)
    try:
        options, literal = parse(verb, module.configure, tokens, width=terminal.width)
    except HelpWanted as wanted:
        terminal.write(wanted.page)
        return 0
    from holdfast.interfaces.cli.invocation import Invocation

    if options.quiet and not options.json:
        terminal.quieten(answers=not getattr(module, "ANSWERS", False))
    invocation = Invocation(verb, options, literal, terminal)
    status = _run(module.run, invocation)
    if terminal.for_people and not invocation.json and getattr(module, "AGENT_WARNING", True):
        _warn_of_unprotected_agents(invocation)
    return status


def _warn_of_unprotected_agents(invocation: Invocation) -> None:
    """On a terminal, warn once a day for each reason if an agent's hooks do not run. Errors here
    must not affect the command."""
    with suppress(Exception):
        import hashlib

        from holdfast.api.stores import holdfast_home, workspace_around
        from holdfast.interfaces.agent_setup.protection import protections, unprotected

        workspace = workspace_around(invocation.directory)
        found = unprotected(protections(workspace)) if workspace is not None else []
        if not found:
            return
        said = "\0".join(f"{workspace} {one.agent} {one.finding}" for one in found)
        digest = hashlib.sha256(os.fsencode(said)).hexdigest()
        place = holdfast_home(os.environ) / _WARNED_FILE
        age_s = (
            invocation.now.timestamp() - place.stat().st_mtime if place.exists() else _WARN_AGAIN_S
        )
        if place.exists() and place.read_text() == digest and age_s < _WARN_AGAIN_S:
            return
        place.write_text(digest)  # if this cannot be recorded, `status` still shows it
        for one in found:
            invocation.terminal.warn(f"{one.agent} is not protected: {one.finding}")
            if one.cure is not None:
                invocation.terminal.note(f"  {one.cure}")


def _run(command: Callable[[Invocation], int], invocation: Invocation) -> int:
    if getattr(invocation.options, "restores", False):
        invocation.cancel_note = "the restore had not begun"
    try:
        return command(invocation)
    except KeyboardInterrupt as error:
        if invocation.cancel_note is not None and not getattr(error, "__notes__", ()):
            error.add_note(invocation.cancel_note)
        raise


def _report(error: BaseException, tokens: list[str], terminal: Terminal) -> int:
    known = to_holdfast_error(error)
    if isinstance(error, OutputFailed):
        _discard_output()
    if wants_traceback(known, os.environ):
        import traceback

        traceback.print_exception(error, file=terminal.err)
    try:
        from holdfast.interfaces.cli.arguments import has_flag

        if has_flag(tokens, "--json"):
            import json

            terminal.err.write(json.dumps({"error": known.to_dict()}) + "\n")
        elif isinstance(known, Declined):
            terminal.note(known.message)
        else:
            terminal.fail(known.message, known.hint)
        terminal.flush()
    except OSError:
        _discard_output()
    return known.exit_status


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C, unless the parent process changed them."""
    taken: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        wanted = (signal.SIGTERM, signal.SIGHUP)
        taken = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise EndRequest(number)


def _raise_signal_again(lost: sys.UnraisableHookArgs) -> None:
    """Raise a signal again at the next call or return if it came where Python drops exceptions,
    such as in a callback while a module is loaded. It is then neither lost nor shown with a
    traceback.

    Why `sys.setprofile`: the exception has to be raised in a frame outside the place that drops it.
    A signal sent again from here (`signal.raise_signal`, `os.kill`) is handled before this function
    returns, in this frame, and dropped again. A timer or a thread would have to guess when this
    function has returned. Python calls a profile function at the next call or return in any frame,
    and this one skips the frame of the hook.
    """
    error = lost.exc_value
    if not isinstance(error, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    again = EndRequest(error.number) if isinstance(error, EndRequest) else KeyboardInterrupt()

    def raise_it(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code is not _raise_signal_again.__code__:
            sys.setprofile(None)
            raise again

    sys.setprofile(raise_it)


def _discard_output() -> None:
    """The reader is gone, so buffered output must not cause an error when Python exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def may_leave_at_once() -> bool:
    """Whether Python would only unload its modules, which takes as long as many a command.

    The command has closed its files and written its output by now. A running thread, an exit
    function, a debugger or profiler, or unwritable output each require the normal exit.
    """
    import atexit  # late: only a finished command needs it

    if threading.active_count() > 1 or atexit._ncallbacks() or sys.flags.inspect:
        return False
    if sys.gettrace() is not None or sys.getprofile() is not None or _is_monitored():
        return False
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def _is_monitored() -> bool:
    """Since Python 3.12, profilers and debuggers have a second API."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, _TOOL_NUMBERS))
