"""`holdfast daemon`: run the daemon in the foreground."""

from __future__ import annotations

import argparse
import os
import signal
from contextlib import suppress
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.cli.arguments import Parser, number_option
from holdfast.interfaces.cli.invocation import Invocation

ANSWERS = True
AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast daemon [--idle MINUTES]"
    parser.description = """\
Run the daemon in the foreground. The daemon keeps workspaces open and watched, which makes saving
faster. Agent hooks start it automatically, and it exits when it has been idle for a while. There is
one daemon per user. Everything works without it, only slower.

Ctrl-C shuts it down cleanly."""
    parser.epilog = """\
examples:
  $ holdfast daemon
  $ holdfast daemon --idle 0"""
    parser.add_argument(
        "--idle",
        metavar="MINUTES",
        help="exit after this many idle minutes, 0 for never (default: the setting daemon_idle)",
    )
    parser.add_argument("--detached", metavar="FD", help=argparse.SUPPRESS)


def run(invocation: Invocation) -> int:
    invocation.at_most(0)
    from holdfast.api.automation import open_watcher
    from holdfast.interfaces.daemon.address import NoPlace
    from holdfast.interfaces.daemon.instance import AlreadyRunning, bound_log, listen
    from holdfast.interfaces.daemon.server import Daemon

    options = invocation.options
    ready = None if options.detached is None else int(options.detached)
    if ready is not None:
        _close_all_but(ready)
    idle_s = _idle_s(options.idle)
    try:
        listener = listen(os.environ)
    except AlreadyRunning as error:
        if ready is not None:
            return 0  # another process was faster; its daemon is as good
        raise Refused(
            f"a daemon is already running: {error}", hint="use that one, or stop it first with kill"
        ) from None
    except NoPlace as error:
        raise Refused(
            f"cannot create the daemon's socket: {error}",
            hint="set XDG_RUNTIME_DIR to a directory that you own and whose path is short",
        ) from None
    daemon = Daemon(listener, open_watcher(), os.environ, idle_s=idle_s)
    if ready is not None:
        bound_log()
        _detach(ready)
    elif invocation.json:
        from holdfast.api.views.setup import DaemonView

        invocation.emit(DaemonView(socket=str(listener.path), pid=os.getpid()))
    else:
        invocation.terminal.line(f"Listening on {listener.path}. Press Ctrl-C to stop.")
    invocation.terminal.flush()
    with suppress(KeyboardInterrupt):
        daemon.run()
    return 0


def _idle_s(text: str | None) -> float:
    if text is not None:
        hint = "0 means never"
        return number_option("--idle", text, 100_000, of="of minutes ", hint=hint) * 60
    from holdfast.api.settings import gather_settings
    from holdfast.domain.settings.schema import make_settings

    # There is one daemon for all workspaces, so only the user's file counts.
    found = gather_settings({}, Path(os.devnull), os.environ)
    return make_settings(found.values).daemon_idle * 60


def _close_all_but(ready: int) -> None:
    """Close files inherited from the client. Another process may be waiting for the other end of
    one."""
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, ready)
    os.closerange(max(ready + 1, 3), most if 0 < most < 1 << 20 else 1 << 20)


def _detach(ready: int) -> None:
    """Detach from the terminal and the directory, and report that the socket is ready."""
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(ready, b".")
    os.close(ready)
