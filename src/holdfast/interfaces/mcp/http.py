"""The server over streamable HTTP: on loopback with the local token, elsewhere with an issuer's.

    Host and Origin → bearer token in the Authorization header → scopes → the protocol

A token is accepted only in the header, and never logged. Bodies, unread answers and unfinished
requests are bounded. The protected-resource metadata (RFC 9728) names the authorization server to
clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.api.stores import local_token
from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.mcp.authorization import (
    LOOPBACK,
    LocalTokenVerifier,
    SignedTokenVerifier,
    SigningKeys,
    require_safe_url,
)
from holdfast.interfaces.mcp.connection_limits import ConnectionLimits, listen
from holdfast.interfaces.mcp.server import SCOPES

PATH = "/mcp"
LARGEST_BODY = 4 * 1024 * 1024
_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_DRAIN_S = 5


@dataclass(frozen=True, slots=True)
class HttpPlace:
    """Where to listen, and which tokens to accept: those of an `issuer` for `public_url`, or the
    local token, on loopback only."""

    host: str
    port: int
    issuer: str | None = None
    public_url: str | None = None
    jwks_url: str | None = None

    def check(self) -> None:
        if self.issuer is None:
            if self.public_url is not None or self.jwks_url is not None:
                raise UsageError(
                    "--url and --jwks-url require --issuer",
                    hint="add the authorization server: --issuer https://…",
                )
            if self.host not in LOOPBACK:
                raise Refused(
                    f"listening on {self.host} requires an authorization server",
                    hint="add --issuer and --url, or listen on 127.0.0.1",
                )
            return
        if self.public_url is None:
            raise UsageError(
                "--issuer requires --url, the URL that tokens are issued for",
                hint="for example: --url https://holdfast.example.com/mcp",
            )
        for url, what in ((self.issuer, "--issuer"), (self.public_url, "--url")):
            require_safe_url(url, what)


def serve_http(
    server: MCPServer[Any],
    place: HttpPlace,
    home: Path,
    monotonic_ns: Callable[[], int],
    ready: Callable[[str, Path | None], None],
) -> None:
    """Serve until stopped; `ready` gets the address, and the file of the local token."""
    place.check()
    with listen(place.host, place.port) as listening:
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
        app, token_file = make_app(server, place, address, home, monotonic_ns)
        ready(address, token_file)
        limits = ConnectionLimits()
        config = uvicorn.Config(
            limits.guarded(app),
            http=limits.protocol(),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_DRAIN_S,
        )
        uvicorn.Server(config).run(sockets=[listening])


def make_app(
    server: MCPServer[Any],
    place: HttpPlace,
    address: str,
    home: Path,
    monotonic_ns: Callable[[], int],
) -> tuple[ASGIApp, Path | None]:
    """The application, and the file of the local token if it accepts that."""
    resource = place.public_url or address
    verifier: TokenVerifier
    token_file = metadata_url = None
    if place.issuer is None:
        token, token_file = local_token(home)
        verifier = LocalTokenVerifier(token, resource)
    else:
        keys = SigningKeys(place.issuer, place.jwks_url, monotonic_ns)
        verifier = SignedTokenVerifier(place.issuer, resource, keys)
        metadata_url = build_resource_metadata_url(AnyHttpUrl(resource))
        for route in create_protected_resource_routes(
            AnyHttpUrl(resource),
            [AnyHttpUrl(place.issuer)],
            scopes_supported=list(SCOPES.values()),
            resource_name="Holdfast",
        ):
            server.custom_route(route.path, ["GET", "OPTIONS"])(route.endpoint)
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_BODY,
        transport_security=_transport_security(resource),
    )
    app = _guarded(app, RequireAuthMiddleware(app, [SCOPES["read"]], metadata_url))
    backend = BearerAuthBackend(verifier, resource_server_url=AnyHttpUrl(resource))
    return AuthenticationMiddleware(AuthContextMiddleware(app), backend=backend), token_file


def _guarded(app: ASGIApp, guarded: RequireAuthMiddleware) -> ASGIApp:
    """Everything needs a token, except the metadata that says where to get one."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        is_open = scope["type"] == "lifespan" or scope["path"].startswith(_WELL_KNOWN)
        await (app if is_open else guarded)(scope, receive, send)

    return choose


def _transport_security(resource: str) -> TransportSecuritySettings:
    """Reject browsers that came through another host name or from another page."""
    parts = urlsplit(resource)
    own = ["127.0.0.1", "localhost", "[::1]"]
    hosts = [*own, *(f"{name}:*" for name in own), parts.netloc, f"{parts.hostname}:*"]
    origins = [f"http://{host}" for host in hosts[: 2 * len(own)]]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[*origins, f"{parts.scheme}://{parts.netloc}"],
    )
