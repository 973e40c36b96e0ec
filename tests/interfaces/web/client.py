"""A real server on a free port of this machine, and a small client that speaks HTTP to it."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.api.stores import holdfast_home
from holdfast.interfaces.web.server import Clocks, Place, WebServer

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> Any:
        """The problem details of a request that failed."""
        assert self.headers["content-type"] == "application/problem+json", self
        found = self.json
        assert found["status"] == self.status
        assert found["type"] == f"urn:holdfast:problem:{found['code']}"
        assert found["title"]
        assert found["detail"]
        return found


class Client:
    """Speaks to one server. Without other `headers` it is a program that has the token."""

    def __init__(self, server: WebServer, trust: ssl.SSLContext | None = None) -> None:
        self.server, self._trust = server, trust
        self.host = urlsplit(server.url).netloc

    @property
    def token_header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.server.token}"}

    def connection(self) -> http.client.HTTPConnection:
        if self._trust is not None:
            return http.client.HTTPSConnection(self.host, timeout=PATIENCE_S, context=self._trust)
        return http.client.HTTPConnection(self.host, timeout=PATIENCE_S)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: bool = True,
    ) -> Reply:
        sent = {**(self.token_header if token else {}), **(headers or {})}
        content = body if isinstance(body, bytes) else None
        if body is not None and content is None:
            content = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = self.connection()
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            head = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, head, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Any:
        """The answer of a request that has to succeed, as data."""
        reply = self("GET", path, headers=headers)
        assert reply.status == 200, reply
        return reply.json

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        reply = self("POST", path, body)
        assert reply.status == status, reply
        return reply.json

    def put(self, path: str, body: Any) -> Any:
        reply = self("PUT", path, body)
        assert reply.status == 200, reply
        return reply.json


@contextmanager
def running(
    workspace: Path,
    *,
    port: int = 0,
    log: Callable[[str], None] | None = None,
    place: Place | None = None,
    trust: ssl.SSLContext | None = None,
) -> Iterator[Client]:
    """A server of a workspace, which ends with the block. `trust` is for one with a certificate."""
    clocks = Clocks(time.time_ns, time.monotonic_ns)
    server = WebServer(
        place or Place("127.0.0.1", port),
        workspace.resolve(),
        holdfast_home(os.environ),
        clocks,
        log=log,
    )
    server.operations.patience_s = PATIENCE_S  # a busy machine is no reason for other answers
    thread = threading.Thread(target=server.run, name="web server")
    thread.start()
    try:
        yield Client(server, trust)
    finally:
        server.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
