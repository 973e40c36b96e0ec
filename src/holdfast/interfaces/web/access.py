"""Access control for every request, before anything else reads it.

    user of the connection → Host → Origin and Sec-Fetch-Site → body size and type
    → token or cookie → rate → app → route → scope of the token

A program sends the local token as `Authorization: Bearer`, or a token from an authorization server
with scopes. A browser opens a one-time link, which becomes a cookie. The cookie is signed with a
key derived from the token: it survives a restart of the server, and a new token invalidates it.
Tokens are never in an address that a browser keeps, nor in a log.

Guarantees: a page from another site cannot use the server, whatever name it uses for it (DNS
rebinding) and whatever the browser sends. Each answer has headers that keep browsers from running
or framing it. Another user of this machine gets nothing, even with a link or a cookie, if the
system reports who connects (Linux). Requests without a token do not use up the rate of others. Not
guaranteed: protection against programs of the same user, which can read the token, or against the
administrator.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.interfaces.web.peers import user_of
from holdfast.interfaces.web.problems import ProblemResponse, problem_response

LARGEST_BODY = 1 << 20
LARGEST_HEAD = 32 * 1024
LINK_S = 120
COOKIE_S = 30 * 86_400
LOGIN_PATH = "/login"
METADATA_PATH = "/.well-known/oauth-protected-resource"
OBSERVED_KEY = "holdfast.observed"
"""Scope key: facts about the request for metrics and the log."""
SCOPES_KEY = "holdfast.scopes"
"""Scope key: what the request's token allows."""
LOCAL = "local"
"""The scope of routes that only the local token and a cookie open. A signed-in browser may do
everything until its cookie expires."""
ALL_SCOPES = frozenset({"read", "write", "restore", "admin", LOCAL})
OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
"""For probes, which only report that the server runs."""

_SECOND_NS = 1_000_000_000
_ADMINISTRATOR = 0
_SAFE_METHODS = ("GET", "HEAD")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_FROM_HERE = ("same-origin", "none")
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class RateLimit:
    """A token bucket: `burst` at once, and `per_second` in the long run."""

    def __init__(self, per_second: float, burst: int, monotonic_ns: Callable[[], int]) -> None:
        self._per_ns, self._burst = per_second / _SECOND_NS, float(burst)
        self._monotonic_ns = monotonic_ns
        self._left, self._seen_ns = float(burst), monotonic_ns()
        self._lock = threading.Lock()

    def allows(self) -> bool:
        with self._lock:
            now = self._monotonic_ns()
            self._left = min(self._burst, self._left + (now - self._seen_ns) * self._per_ns)
            self._seen_ns = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


class OneTimeLinks:
    """Codes that sign a browser in, each once and for a short time."""

    _MOST = 100

    def __init__(self, new_code: Callable[[], str], monotonic_ns: Callable[[], int]) -> None:
        self._new_code, self._monotonic_ns = new_code, monotonic_ns
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()

    def offer(self) -> str:
        code = self._new_code()
        with self._lock:
            while len(self._open) >= self._MOST:
                del self._open[next(iter(self._open))]
            self._open[code] = self._monotonic_ns() + LINK_S * _SECOND_NS
        return code

    def take(self, code: str) -> bool:
        """Whether the code is valid; it is then used up."""
        with self._lock:
            until = self._open.pop(code, None)
        return until is not None and self._monotonic_ns() <= until


class Cookies:
    """Signed sign-ins: `EXPIRY.CODE.SIGNATURE`."""

    def __init__(self, token: str, port: int, now_ns: Callable[[], int]) -> None:
        self._key = hashlib.sha256(b"holdfast cookie\0" + token.encode()).digest()
        self._now_ns = now_ns
        # All ports of a host share cookies.
        self.name = f"holdfast_{port}"

    def new(self, code: str) -> str:
        until = self._now_ns() // _SECOND_NS + COOKIE_S
        return f"{until}.{code}.{self._signature(f'{until}.{code}')}"

    def is_valid(self, value: str) -> bool:
        signed, _, signature = value.rpartition(".")
        given = signature.encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(given, self._signature(signed).encode()):
            return False
        return int(signed.partition(".")[0]) > self._now_ns() // _SECOND_NS

    def _signature(self, text: str) -> str:
        signed = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return signed.hexdigest()


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens of an authorization server. `scopes_of` returns what a token allows; None if it is
    invalid. `metadata` names the server that issues them (RFC 9728)."""

    scopes_of: Callable[[str], Awaitable[frozenset[str] | None]]
    metadata: Mapping[str, object]
    metadata_url: str


class Access:
    """What a server accepts. `origins` are its own, such as `http://127.0.0.1:7348`."""

    def __init__(
        self,
        token: str,
        origins: Iterable[str],
        *,
        port: int,
        user: int,
        new_code: Callable[[], str],
        now_ns: Callable[[], int],
        monotonic_ns: Callable[[], int],
        issued: IssuedTokens | None = None,
    ) -> None:
        self.issued, self.user = issued, user
        self._token = hashlib.sha256(token.encode()).digest()
        self.origins = tuple(origins)
        self.hosts = frozenset(origin.partition("://")[2] for origin in self.origins)
        self.is_secure = any(origin.startswith("https://") for origin in self.origins)
        self.links = OneTimeLinks(new_code, monotonic_ns)
        self.cookies = Cookies(token, port, now_ns)
        self.requests = RateLimit(1_000, 2_000, monotonic_ns)
        """The limit for all signed-in clients."""
        self.failures = RateLimit(2, 20, monotonic_ns)
        """The limit for requests without a valid token: few are honest mistakes."""
        self.probes = RateLimit(50, 200, monotonic_ns)
        """The limit for public addresses."""

    def new_link(self) -> str:
        return f"{self.origins[0]}{LOGIN_PATH}?code={self.links.offer()}"

    def is_token(self, value: str) -> bool:
        given = hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(given, self._token)


class Guard:
    """The application behind the checks."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        protected = with_security_headers(send)
        answer = self._refusal(scope)
        if answer is None and scope["path"] not in OPEN_PATHS:
            scopes = await self._scopes(Headers(scope=scope))
            if scopes is None:
                answer = self._not_signed_in()
            elif not self._access.requests.allows():
                answer = _too_many()
            scope = {**scope, SCOPES_KEY: scopes}
        if answer is None:
            body = _Body(receive)
            await self._app(scope, body.receive, body.or_too_large(scope, protected))
            return
        if isinstance(answer, ProblemResponse):
            scope.get(OBSERVED_KEY, {})["code"] = answer.code
        await answer(scope, receive, protected)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a rejected request; None if it may continue."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        foreign = self._another_user(scope) or self._wrong_site(headers)
        if foreign is not None:
            return foreign
        if sum(len(name) + len(value) for name, value in headers.raw) > LARGEST_HEAD:
            return problem_response(431, "headers_too_large", "the headers are too large")
        if method not in _METHODS:
            allowed = {"allow": ", ".join(_METHODS)}
            return problem_response(405, "method", f"{method} is not allowed here", headers=allowed)
        if path == LOGIN_PATH:
            return self._login(scope)
        metadata = None if self._access.issued is None else self._access.issued.metadata
        is_metadata = path == METADATA_PATH and metadata is not None
        if (path in OPEN_PATHS or is_metadata) and not self._access.probes.allows():
            return _too_many()
        if is_metadata:
            return JSONResponse(metadata)
        return None if method in _SAFE_METHODS else _wrong_body(headers)

    def _another_user(self, scope: Scope) -> Response | None:
        """Another user may have seen a link on a command line or received a cookie, which all ports
        of a machine share."""
        client, server = scope.get("client"), scope.get("server")
        user = None if client is None or server is None else user_of(client, server)
        if user in (None, _ADMINISTRATOR, self._access.user):
            return None
        return problem_response(403, "wrong_user", "this server belongs to another user")

    def _wrong_site(self, headers: Headers) -> Response | None:
        """Reject browsers that came through another host name or from another page."""
        if headers.getlist("host") not in ([host] for host in self._access.hosts):
            return problem_response(
                403,
                "wrong_host",
                "this server does not accept that host name",
                f"use {self._access.origins[0]}",
            )
        origins = headers.getlist("origin")
        site = headers.get("sec-fetch-site", "none")
        if any(one not in self._access.origins for one in origins) or site not in _FROM_HERE:
            return problem_response(
                403, "wrong_origin", "requests from other sites are not accepted"
            )
        return None

    def _not_signed_in(self) -> Response:
        """The answer to a request that is not signed in."""
        if not self._access.failures.allows():
            return _too_many()
        challenge = 'Bearer realm="holdfast"'
        if self._access.issued is not None:
            challenge += f', resource_metadata="{self._access.issued.metadata_url}"'
        return problem_response(
            401,
            "not_signed_in",
            "this request has no valid token",
            "open the page with: holdfast ui. Programs send Authorization: Bearer TOKEN",
            {"www-authenticate": challenge},
        )

    async def _scopes(self, headers: Headers) -> frozenset[str] | None:
        """What the request's token or cookie allows; None without a valid one."""
        given = headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            token = token.strip()
            if scheme.lower() != "bearer":
                return None
            if self._access.is_token(token):
                return ALL_SCOPES
            issued = self._access.issued
            return None if issued is None else await issued.scopes_of(token)
        # Other programs on this machine set cookies too, and some are malformed.
        found = cookie_parser("; ".join(headers.getlist("cookie"))).get(self._access.cookies.name)
        return None if found is None or not self._access.cookies.is_valid(found) else ALL_SCOPES

    def _login(self, scope: Scope) -> Response:
        access, request = self._access, Request(scope)
        codes = parse_qs(request.url.query).get("code", [""])
        if request.method != "GET" or not access.links.take(codes[0]):
            if not access.failures.allows():
                return _too_many()
            return problem_response(
                401,
                "link_used",
                "this link was already used, or has expired",
                "for a new one: holdfast ui",
            )
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            access.cookies.name,
            access.cookies.new(codes[0]),
            max_age=COOKIE_S,
            httponly=True,
            samesite="strict",
            secure=access.is_secure,
        )
        return answer


def _too_many() -> Response:
    return problem_response(
        429, "too_many_requests", "too many requests", "wait a moment", {"retry-after": "1"}
    )


def _wrong_body(headers: Headers) -> Response | None:
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return None
    if not length.isdigit() or int(length) > LARGEST_BODY:
        return _too_large()
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return problem_response(
            415, "not_json", "the body is not JSON", "send Content-Type: application/json"
        )
    return None


def _too_large() -> ProblemResponse:
    return problem_response(413, "too_large", f"a request body has at most {LARGEST_BODY:,} bytes")


class _Body:
    """Counts a body without a length while it is read. If it is too large, reading ends and the
    answer is 413, whatever the application answers."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = 0
        self._is_answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        return message if self._read <= LARGEST_BODY else {"type": "http.disconnect"}

    def or_too_large(self, scope: Scope, send: Send) -> Send:
        async def answered(message: Message) -> None:
            if self._read <= LARGEST_BODY:
                await send(message)
            elif not self._is_answered:
                self._is_answered = True
                answer = _too_large()
                scope.get(OBSERVED_KEY, {})["code"] = answer.code
                await answer(scope, self._receive, send)

        return answered


def with_security_headers(send: Send) -> Send:
    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return protected
