"""A server whose every request has the local token: for programs that cannot send one.

    python -m tests.support.open_mcp_server WORKSPACE

It prints its address, and serves until it is ended. Everything but the token is as `holdfast mcp
--http` does it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.bootstrap.locations import holdfast_home
from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.connection_limits import listen
from holdfast.interfaces.mcp.http import PATH, HttpPlace, make_app
from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            header = (b"authorization", f"Bearer {token}".encode())
            scope = {**scope, "headers": [*scope["headers"], header]}
        await app(scope, receive, send)

    return call


def main() -> None:
    home = holdfast_home(os.environ)
    sessions = ServedSessions([Path(sys.argv[1])], "agent", lambda opened: SessionId("agent"))
    place = HttpPlace("127.0.0.1", 0)
    with listen(place.host, place.port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
        server = make_server(sessions, Admission(time.monotonic_ns))
        app, token_file = make_app(server, place, address, home, time.monotonic_ns)
        assert token_file is not None
        print(address, flush=True)
        config = uvicorn.Config(with_token(app, token_file.read_text().strip()), log_config=None)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
