"""`holdfast serve`: serve the HTTP API and the web page to programs and browsers on this
machine."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser, port_option
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.interfaces.web.server import WebServer

ANSWERS = True
AGENT_WARNING = False
PORT = 7348
_PACKAGES = ("fastapi", "opentelemetry", "prometheus_client", "uvicorn")


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast serve [--host HOST] [--port N] [--log]\n"
        "           [--tls-cert FILE --tls-key FILE] [--url URL] [--issuer URL]"
    )
    parser.description = """\
Serve the HTTP API and the web page of this workspace, and of your other workspaces, on this
machine. Programs send the token in the file mcp-token next to the stores, which only you can read,
as Authorization: Bearer. To open the page in a browser, use holdfast ui.

To accept other machines, give --host, --tls-cert and --tls-key. With --issuer, access tokens from
that authorization server are accepted too. They must be issued for --url, with one of the scopes
holdfast:read, holdfast:write, holdfast:restore and holdfast:admin.

With --json, it prints one line with url and token when it is ready. Ctrl-C stops it. It needs the
extra holdfast[web]. If that is missing, the error names the command that installs it."""
    parser.epilog = """\
examples:
  $ holdfast serve
  $ holdfast serve --port 0 --json"""
    add_place_options(parser, port=PORT)
    parser.add_argument(
        "--log",
        action="store_true",
        help="write requests and errors as JSON lines to standard error, without names or contents",
    )
    # `serve` was once the name of the daemon, with this option.
    parser.add_argument("--idle", metavar="MINUTES", help=argparse.SUPPRESS)


def add_place_options(parser: Parser, *, port: int) -> None:
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="the address to listen on (default 127.0.0.1); other machines need TLS",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        default=str(port),
        help=f"the port (default {port}; 0: any free port)" if port else "the port (default: any)",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, in PEM format")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key, in PEM format")
    parser.add_argument("--url", metavar="URL", help="the URL that clients use")
    parser.add_argument("--issuer", metavar="URL", help="an authorization server to trust")
    parser.add_argument(
        "--jwks-url",
        metavar="URL",
        help="the URL of that server's keys, if it does not publish one",
    )


def run(invocation: Invocation) -> int:
    invocation.at_most(0)
    if invocation.options.idle is not None:
        raise UsageError(
            "serve has no --idle: it is the web server",
            hint="the background process is: holdfast daemon --idle MINUTES",
        )

    def ready(server: WebServer) -> None:
        if invocation.json:
            from holdfast.api.views.setup import WebServerView

            invocation.emit(WebServerView(url=server.url, token=server.token))
        else:
            invocation.terminal.line(f"Serving on {server.url}. Press Ctrl-C to stop.")
            invocation.terminal.line(f"Programs need the token in {server.token_file}")
            invocation.terminal.line("To open the page: holdfast ui")
        invocation.terminal.flush()

    return run_server(invocation, ready)


def run_server(invocation: Invocation, ready: Callable[[WebServer], None]) -> int:
    """Serve the workspace of the directory until stopped."""
    port = port_option(invocation.options.port)
    _require_packages()
    import time

    from holdfast.api.stores import holdfast_home
    from holdfast.interfaces.web.server import Clocks, Place, WebServer

    options = invocation.options
    place = Place(
        options.host,
        port,
        None if options.tls_cert is None else invocation.directory / options.tls_cert,
        None if options.tls_key is None else invocation.directory / options.tls_key,
        options.issuer,
        options.url,
        options.jwks_url,
    )
    clocks = Clocks(time.time_ns, time.monotonic_ns)
    server = WebServer(
        place,
        _workspace(invocation),
        holdfast_home(os.environ),
        clocks,
        log=_log if getattr(invocation.options, "log", False) else None,
    )
    ready(server)
    with suppress(KeyboardInterrupt):  # raised after the open requests have finished
        server.run()
    return 0


def _log(line: str) -> None:
    from datetime import UTC, datetime

    at = datetime.now(UTC).isoformat()
    print(f'{{"at": "{at}", {line[1:]}', file=sys.stderr, flush=True)


def _workspace(invocation: Invocation) -> Path:
    """The workspace of the directory; it need not have checkpoints yet."""
    from holdfast.api.stores import holdfast_home, require_project, workspace_for

    home = holdfast_home(os.environ)
    project = require_project(invocation.directory, home, force=invocation.options.force)
    return workspace_for(project, opened_on=True)


def _require_packages() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _PACKAGES):
        raise Refused(
            "the web server needs packages that are not installed",
            hint=f"install them: {_installer()} 'holdfast[web]'",
        )


def _installer() -> str:
    """The command that adds packages here. uv and pipx leave a file in each environment they
    create."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").is_file():
        return "uv tool install"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx install --force"
    return "pip install"
