"""The server over standard input and output, as agents start it.

The two streams belong to the protocol while it runs: what programs started here read is empty and
what they print goes to standard error. A line longer than a request may be is passed over, so that
memory stays bounded; its sender gets the answer that it was no request.
"""

from __future__ import annotations

import os
from io import BufferedReader
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

LONGEST_LINE = 4 * 1024 * 1024
_TOO_LONG = '{"jsonrpc": "2.0", "error": "the line is longer than a request may be"}\n'


class BoundedLines:
    """Lines of a stream as text, none longer than may be."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream

    def readline(self) -> str:
        line = self._stream.readline(LONGEST_LINE)
        if len(line) < LONGEST_LINE or line.endswith(b"\n"):
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(LONGEST_LINE)
        return _TOO_LONG


def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve until the client closes its end."""
    anyio.run(_serve, server)


async def _serve(server: MCPServer[Any]) -> None:
    incoming, outgoing = _claim_streams()
    lines: Any = BoundedLines(os.fdopen(incoming, "rb", closefd=False))
    answers = os.fdopen(outgoing, "w", encoding="utf-8", closefd=False)
    low_level = server._lowlevel_server  # its own method takes no streams
    async with stdio_server(anyio.wrap_file(lines), anyio.wrap_file(answers)) as (read, write):
        await low_level.run(read, write, low_level.create_initialization_options())


def _claim_streams() -> tuple[int, int]:
    """Private ends of the two streams; the public ones lead to nowhere and to standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return incoming, outgoing
