"""Access tokens: the local one, or those of an authorization server and its signing keys.

    issuer → its metadata (RFC 8414, else OpenID's) → jwks_uri → keys by id → token checked

A token from an authorization server is a JWT, signed by the issuer with an asymmetric algorithm.
`iss`, `aud` and `exp` are required and checked, and `nbf` if present. Every invalid token gets the
same answer.

Keys are fetched again when they are old or a token names an unknown one, but at most every half
minute. A circuit breaker stops requests to a failing issuer. Known keys are used meanwhile, for up
to a day.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken

from holdfast.domain.errors import UsageError
from holdfast.interfaces.mcp.server import SCOPES

FAILURES = 3
REST_SECONDS = 30
_FRESH_NS = 3600 * 10**9
_USABLE_NS = 24 * 3600 * 10**9
_AGAIN_NS = 30 * 10**9
_LARGEST_ANSWER = 1_000_000
_TIMEOUT_S = 5.0
_LONGEST_S = 15.0
"""For all requests to an issuer in one lookup, however slowly it answers."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Breaker:
    """Stops requests to a failing issuer; thread-safe.

        closed ── failures in a row ──► open ── time ──► one try ── success ──► closed

    While it is open, callers do not wait for a server that does not answer.
    """

    def __init__(
        self,
        monotonic_ns: Callable[[], int],
        *,
        failures: int = FAILURES,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._most = failures
        self._rest_ns = int(rest_seconds * 1e9)
        self._failures = 0
        self._closed_at_ns = 0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Whether to try now. While it is open, one try is allowed after each pause."""
        with self._lock:
            if self._failures < self._most:
                return True
            now = self._monotonic_ns()
            if now < self._closed_at_ns:
                return False
            self._closed_at_ns = now + self._rest_ns
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures == self._most:
                self._closed_at_ns = self._monotonic_ns() + self._rest_ns


class KeysUnavailable(Exception):
    """The issuer did not provide its keys; its answer is not passed on."""


def require_safe_url(url: str, what: str) -> str:
    """Keys must come over TLS, or from this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return url
    raise UsageError(
        f"{what} is {url!r}, not an https URL",
        hint="only addresses of this machine can be used without TLS",
    )


class SigningKeys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, jwks_url: str | None, monotonic_ns: Callable[[], int]) -> None:
        self._issuer = require_safe_url(issuer, "the issuer")
        self._jwks_url = None if jwks_url is None else require_safe_url(jwks_url, "the key set")
        self._monotonic_ns = monotonic_ns
        self._breaker = Breaker(monotonic_ns)
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_ns: int | None = None
        self._tried_ns: int | None = None
        self._lock = anyio.Lock()

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key with that id; the only key, for a token that names none."""
        async with self._lock:
            if self._wants_fetch(key_id):
                await self._fetch()
        age = self._age()
        if age is None or age > _USABLE_NS:
            return None
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _age(self) -> int | None:
        return None if self._fetched_ns is None else self._monotonic_ns() - self._fetched_ns

    def _wants_fetch(self, key_id: str | None) -> bool:
        age = self._age()
        if age is None or age > _FRESH_NS:
            return self._breaker.allows()
        known = key_id is None or key_id in self._keys
        waited = self._tried_ns is None or self._monotonic_ns() - self._tried_ns > _AGAIN_NS
        return not known and waited and self._breaker.allows()

    async def _fetch(self) -> None:
        self._tried_ns = self._monotonic_ns()
        try:
            with anyio.fail_after(_LONGEST_S):
                async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False) as client:
                    url = self._jwks_url or await self._discover(client)
                    keys = _keys(await _get(client, url))
        except Exception:  # any invalid answer counts as a failure of the issuer
            self._breaker.failed()
            return
        self._breaker.succeeded()
        self._keys = keys
        self._fetched_ns = self._monotonic_ns()

    async def _discover(self, client: httpx2.AsyncClient) -> str:
        parts = urlsplit(self._issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for url in (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}{path}/.well-known/openid-configuration",
        ):
            try:
                described = await _get(client, url)
            except KeysUnavailable:
                continue
            if described.get("issuer") == self._issuer and "jwks_uri" in described:
                return require_safe_url(str(described["jwks_uri"]), "the key set")
        raise KeysUnavailable


def _keys(answer: dict[str, Any]) -> dict[str | None, jwt.PyJWK]:
    """Signing keys by id; invalid entries are skipped."""
    return {
        key.key_id: key
        for key in jwt.PyJWKSet.from_dict(answer).keys
        if key.public_key_use != "enc" and (key.key_id is None or isinstance(key.key_id, str))
    }


async def _get(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    content = b""
    async with client.stream("GET", url) as response:
        if response.status_code != 200:
            raise KeysUnavailable
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > _LARGEST_ANSWER:
                raise KeysUnavailable
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise KeysUnavailable from None
    if not isinstance(answer, dict):
        raise KeysUnavailable
    return answer


# Asymmetric algorithms only: with others, the public key would be the secret.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
_LONGEST_TOKEN = 16_000
_LEEWAY_S = 30


class LocalTokenVerifier:
    """Accepts the one token, for everything."""

    def __init__(self, token: str, resource: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()
        self._resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if not hmac.compare_digest(given, self._digest):
            return None
        return AccessToken(
            token="local",
            client_id="local",
            scopes=list(SCOPES.values()),
            resource=self._resource,
        )


class SignedTokenVerifier:
    """Accepts tokens of one issuer for one resource (RFC 8707)."""

    def __init__(self, issuer: str, resource: str, keys: SigningKeys) -> None:
        self._issuer = issuer
        self._resource = resource
        self._keys = keys

    async def verify_token(self, token: str) -> AccessToken | None:
        if len(token) > _LONGEST_TOKEN or not token.isascii():
            return None
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._keys.key(key_id if isinstance(key_id, str) else None)
            if key is None:
                return None
            slash = self._resource.rstrip("/")
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=_ALGORITHMS,
                audience=[slash, slash + "/"],
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        client = claims.get("client_id") or claims.get("azp") or claims.get("sub")
        subject = claims.get("sub")
        return AccessToken(
            token="signed",  # the token itself is not passed on
            client_id=str(client or "unknown")[:200],
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + _LEEWAY_S,
            resource=self._resource,
            subject=str(subject)[:200] if subject else None,
            claims={"iss": self._issuer},
        )


def _scopes(claims: dict[str, Any]) -> list[str]:
    granted = claims.get("scope", claims.get("scp", ""))
    if isinstance(granted, str):
        return granted.split()
    return [one for one in granted if isinstance(one, str)] if isinstance(granted, list) else []
