"""The server: it listens, creates the application, and runs until it is stopped."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.types import Receive, Scope, Send

from holdfast.api.stores import local_token, new_token
from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.mcp.connection_limits import REFUSAL_HEADERS, ConnectionLimits, listen
from holdfast.interfaces.web.access import (
    LARGEST_HEAD,
    METADATA_PATH,
    OBSERVED_KEY,
    Access,
    IssuedTokens,
    with_security_headers,
)
from holdfast.interfaces.web.app import make_app
from holdfast.interfaces.web.operations import Operations
from holdfast.interfaces.web.problems import problem_response
from holdfast.interfaces.web.routing import Server
from holdfast.interfaces.web.streams import Streams
from holdfast.interfaces.web.telemetry import Telemetry, logged_as_json
from holdfast.interfaces.web.workspaces import ServedWorkspaces

_ANY_ADDRESS = ("0.0.0.0", "::")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_DRAIN_S = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen. Other machines need TLS, with a certificate and its key. Tokens of an
    `issuer` for `public_url` are accepted in addition to the local one."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    issuer: str | None = None
    public_url: str | None = None
    jwks_url: str | None = None

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def check(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("--tls-cert and --tls-key must be used together")
        if self.host not in LOOPBACK and self.certificate is None:
            raise Refused(
                f"listening on {self.host} lets other machines connect, and requires TLS",
                hint="add --tls-cert and --tls-key, or leave out --host",
            )
        if self.host in _ANY_ADDRESS and self.public_url is None:
            raise UsageError(
                f"listening on {self.host} requires --url, the URL that clients use",
                hint="for example: --url https://holdfast.example.com:7348",
            )
        if self.issuer is None and self.jwks_url is not None:
            raise UsageError("--jwks-url requires --issuer")
        if self.issuer is not None and self.public_url is None:
            raise UsageError(
                "--issuer requires --url, the URL that tokens are issued for",
                hint="for example: --url https://holdfast.example.com:7348",
            )

    def origins(self, port: int) -> list[str]:
        """The origins that a browser may use for this server; the first is shown."""
        names = [f"[{self.host}]" if ":" in self.host else self.host]
        if self.host in _ANY_ADDRESS:
            names = []
        if self.host in LOOPBACK:
            names += ["127.0.0.1", "localhost", "[::1]"]
        found = [f"{self.scheme}://{name}:{port}" for name in names]
        if self.public_url is not None:
            parts = urlsplit(self.public_url)
            found.insert(0, f"{parts.scheme}://{parts.netloc}")
        return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Clocks:
    now_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]


class _Uvicorn(uvicorn.Server):
    """Ends streams with the server, without waiting for their readers."""

    def __init__(self, streams: Streams, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.close()
        await super().shutdown(sockets)


class WebServer:
    """A server that accepts connections as soon as it is created, and answers them while it
    runs."""

    def __init__(
        self,
        place: Place,
        workspace: Path,
        home: Path,
        clocks: Clocks,
        *,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """`log` gets one line of JSON per request, and per warning or error."""
        place.check()
        self._log = log
        token, token_file = local_token(home)
        self._listening = listen(place.host, place.port)
        port = self._listening.getsockname()[1]
        access = Access(
            token,
            place.origins(port),
            port=port,
            user=os.geteuid(),
            new_code=new_token,
            now_ns=clocks.now_ns,
            monotonic_ns=clocks.monotonic_ns,
            issued=_issued_tokens(place, clocks.monotonic_ns),
        )
        self.origins = access.origins
        self.url, self.token, self.token_file = access.origins[0], token, token_file
        self.access, self._workspaces = access, ServedWorkspaces(workspace)
        self.operations = operations = Operations(new_token)
        self.streams = Streams(self._workspaces, clocks.monotonic_ns)
        operations.listener = self.streams.report
        self.limits = limits = ConnectionLimits()
        self.telemetry = telemetry = Telemetry(
            self._workspaces, clocks.monotonic_ns, self.streams.readers, limits
        )
        server = Server(
            self._workspaces, access, operations, self.streams, telemetry, clocks.monotonic_ns
        )
        self.waiting, app = server.waiting, make_app(server)
        self._server = _Uvicorn(
            self.streams,
            uvicorn.Config(
                telemetry.observed(limits.guarded(app, _refuse), log),
                http=limits.protocol(),
                log_config=None,
                access_log=False,
                proxy_headers=False,  # do not trust forwarding headers: any client can send them
                server_header=False,
                date_header=False,
                h11_max_incomplete_event_size=LARGEST_HEAD,
                timeout_graceful_shutdown=_DRAIN_S,
                ssl_certfile=place.certificate,
                ssl_keyfile=place.key,
            ),
        )

    def new_link(self) -> str:
        """A link that signs a browser in, once."""
        return self.access.new_link()

    def run(self) -> None:
        """Serve until stopped, by a signal or by `stop`."""
        try:
            with self._listening, logged_as_json(self._log):
                self._server.run(sockets=[self._listening])
        finally:
            self._workspaces.close()

    def stop(self) -> None:
        """From another thread: finish open requests, and exit."""
        self._server.should_exit = True


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer while there are too many connections or unread answers."""
    answer = problem_response(
        503, "overloaded", "the server is overloaded", "try again soon", REFUSAL_HEADERS
    )
    scope[OBSERVED_KEY]["code"] = answer.code
    await answer(scope, receive, with_security_headers(send))


def _issued_tokens(place: Place, monotonic_ns: Callable[[], int]) -> IssuedTokens | None:
    if place.issuer is None or place.public_url is None:
        return None
    # Late: slow to import and seldom needed.
    from holdfast.interfaces.mcp.authorization import (
        SignedTokenVerifier,
        SigningKeys,
        require_safe_url,
    )
    from holdfast.interfaces.mcp.server import SCOPES

    resource = require_safe_url(place.public_url, "--url").rstrip("/")
    issuer = require_safe_url(place.issuer, "--issuer")
    keys = SigningKeys(issuer, place.jwks_url, monotonic_ns)
    verifier = SignedTokenVerifier(issuer, resource, keys)
    names = {granted: name for name, granted in SCOPES.items()}

    async def scopes_of(token: str) -> frozenset[str] | None:
        found = await verifier.verify_token(token)
        if found is None:
            return None
        return frozenset(names[one] for one in found.scopes if one in names)

    metadata = {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": list(SCOPES.values()),
        "bearer_methods_supported": ["header"],
        "resource_name": "Holdfast",
    }
    return IssuedTokens(scopes_of, metadata, f"{resource}{METADATA_PATH}")
