"""`holdfast ui`: serve the web page and open it in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.commands.serve import add_place_options, run_server
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.interfaces.web.server import WebServer

ANSWERS = True
AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast ui [--no-open] [--host HOST] [--port N]"
    parser.description = """\
Serve the web page and open it in your browser, with a link that signs the browser in. The link
works once, for two minutes. Ctrl-C stops the server. It needs the extra holdfast[web]. If that is
missing, the error names the command that installs it."""
    parser.epilog = """\
examples:
  $ holdfast ui
  $ holdfast ui --no-open"""
    add_place_options(parser, port=0)
    parser.add_argument(
        "--no-open", dest="no_open", action="store_true", help="print the link, open no browser"
    )


def run(invocation: Invocation) -> int:
    invocation.at_most(0)

    def ready(server: WebServer) -> None:
        terminal, link = invocation.terminal, server.new_link()
        if invocation.json:
            from holdfast.api.views.setup import WebLinkView

            invocation.emit(WebLinkView(url=server.url, link=link))
        elif invocation.options.no_open:
            terminal.line(link)
            terminal.note("The link works once, for two minutes. Press Ctrl-C to stop the server.")
        else:
            import webbrowser

            terminal.line(f"Serving on {server.url}. Press Ctrl-C to stop.")
            if not webbrowser.open(link):
                terminal.line(f"Open this link in your browser: {link}")
        terminal.flush()

    return run_server(invocation, ready)
