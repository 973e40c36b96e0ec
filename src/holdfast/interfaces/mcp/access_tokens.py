"""Access tokens: the local one, or those of an authorization server.

A token of an authorization server is a JWT, signed with a key of the issuer by an asymmetric
algorithm. `iss`, `aud` and `exp` have to be there and right, `nbf` if it is there. Whatever is
wrong, the answer is the same: no.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import jwt
from mcp.server.auth.provider import AccessToken

from holdfast.interfaces.mcp.scopes import SCOPES
from holdfast.interfaces.mcp.signing_keys import SigningKeys

# Asymmetric ones only: with any other the public key would be the secret.
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
            token="signed",  # the token itself goes no further
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
