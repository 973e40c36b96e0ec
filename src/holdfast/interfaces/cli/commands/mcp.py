"""`holdfast mcp`: run the MCP server for agents."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.agents import every_agent
from holdfast.interfaces.cli.arguments import Parser, port_option
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.interfaces.mcp.http import HttpPlace

ANSWERS = True
AGENT_WARNING = False
_HOST = "127.0.0.1"
_PORT = "7347"


def _workspace_variables() -> list[str]:
    own = [agent.server_project_variable for agent in every_agent()]
    return ["HOLDFAST_WORKSPACE", *filter(None, own)]


def _session_variables() -> list[str]:
    own = [agent.server_session_variable for agent in every_agent()]
    return ["HOLDFAST_SESSION", *filter(None, own)]


def configure(parser: Parser) -> None:
    parser.usage = "holdfast mcp [DIR ...] [--http [--host HOST] [--port N] [--issuer URL ...]]"
    parser.description = f"""\
Run the MCP server for agents, over standard input and output or, with --http, over streamable HTTP.
DIRs are the workspaces to serve; calls use the first one unless they name another. The default is
{", ".join(_workspace_variables())} or the current directory. The session comes from --session, from
{", from ".join(_session_variables())}, or is the workspace's current one.

Over HTTP, every request needs a token. By default, the token is in the file mcp-token next to the
stores, which only you can read. With --issuer, it is an access token from that authorization
server, issued for --url, with the scopes holdfast:read, holdfast:write, holdfast:restore and
holdfast:admin."""
    parser.epilog = """\
examples:
  $ claude mcp add holdfast -- holdfast mcp
  $ holdfast mcp ~/shop ~/api --http --port 7347
  $ holdfast mcp --http --issuer https://login.example.com --url https://hf.example.com/mcp"""
    parser.add_argument("words", nargs="*", metavar="DIR", help="workspaces to serve")
    parser.add_argument("--http", action="store_true", help="serve over HTTP")
    parser.add_argument(
        "--host", metavar="HOST", help=f"the address to listen on (default {_HOST})"
    )
    parser.add_argument("--port", metavar="N", help=f"the port (default {_PORT}; 0: any free port)")
    parser.add_argument("--issuer", metavar="URL", help="the authorization server to trust")
    parser.add_argument("--url", metavar="URL", help="the URL that its tokens are issued for")
    parser.add_argument(
        "--jwks-url", metavar="URL", help="the URL of its keys, if it does not publish one"
    )


def run(invocation: Invocation) -> int:
    place = _place(invocation)
    workspaces = _workspaces(invocation)
    _require_package()
    # Importing the library creates so many objects that garbage collection would take a fifth of
    # the time to the first answer.
    import gc

    gc.disable()
    import time

    from holdfast.interfaces.mcp.automatic_checkpoints import AutomaticCheckpoints
    from holdfast.interfaces.mcp.server import Admission, make_server
    from holdfast.interfaces.mcp.sessions import ServedSessions
    from holdfast.interfaces.mcp.stdio import AnswerQueue, serve_stdio

    sessions = ServedSessions(
        workspaces, _session(invocation), lambda opened: invocation.fresh_id(opened, "mcp")
    )
    queue = AnswerQueue() if place is None else None
    server = make_server(sessions, Admission(time.monotonic_ns), queue)
    automatic = AutomaticCheckpoints(
        sessions, os.environ, lambda: datetime.now().astimezone(), _note_missed
    )
    gc.freeze()  # existing objects stay, so exclude them from later collections
    gc.enable()
    automatic.start()
    try:
        if queue is not None:
            serve_stdio(server, queue)
        elif place is not None:
            from holdfast.api.stores import holdfast_home
            from holdfast.interfaces.mcp.http import serve_http

            ready = partial(_announce, invocation)
            serve_http(server, place, holdfast_home(os.environ), time.monotonic_ns, ready)
    finally:
        automatic.end()
        sessions.close()
    return 0


def _note_missed(workspace: Path, session: str, error: Exception) -> None:
    """Record it for `holdfast status`, because calls do not wait for automatic checkpoints."""
    from holdfast.interfaces.hooks.runtime_files import problem_log

    problem_log(os.environ).note_missed(workspace, session, error)


def _place(invocation: Invocation) -> HttpPlace | None:
    options = invocation.options
    if not options.http:
        for name in ("host", "port", "issuer", "url", "jwks_url"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} requires --http")
        return None
    port = port_option(_PORT if options.port is None else options.port)
    _require_package()
    from holdfast.interfaces.mcp.http import HttpPlace

    host = _HOST if options.host is None else options.host
    place = HttpPlace(host, port, options.issuer, options.url, options.jwks_url)
    place.check()
    return place


def _workspaces(invocation: Invocation) -> list[Path]:
    """The named workspaces, else the one in the environment, else that of the directory."""
    from holdfast.api.stores import holdfast_home, require_project, workspace_for

    named = [invocation.directory / word for word in invocation.all_words]
    if not named and invocation.options.directory is None:
        set_ones = (os.environ.get(name) for name in _workspace_variables())
        named = [Path(value) for value in set_ones if value][:1]
    if not named:
        named = [invocation.directory]
    home = holdfast_home(os.environ)
    chosen = [require_project(path, home, force=False) for path in named]
    return list(dict.fromkeys(workspace_for(path, opened_on=True) for path in chosen))


def _session(invocation: Invocation) -> str | None:
    if invocation.options.session is not None:
        return str(invocation.options.session)
    return next((os.environ[name] for name in _session_variables() if os.environ.get(name)), None)


def _require_package() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise Refused(
            "the MCP server needs a package that is not installed",
            hint="install it: pip install mcp",
        )


def _announce(invocation: Invocation, address: str, token_file: Path | None) -> None:
    if invocation.json:
        from holdfast.api.views.setup import McpServerView

        token = None if token_file is None else str(token_file)
        invocation.emit(McpServerView(url=address, token_file=token))
    else:
        invocation.terminal.line(f"Serving on {address}")
        if token_file is not None:
            invocation.terminal.line(f"Clients need the token in {token_file}")
    invocation.terminal.flush()
