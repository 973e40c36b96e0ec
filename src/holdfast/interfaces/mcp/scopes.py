"""What a client may do: scopes of its token, and the one that each request needs.

Without a token (stdio, where the client is the user's own process) everything is allowed. A wider
scope does not bring the narrower ones: a token names each scope that it grants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import Refused
from holdfast.interfaces.tools.definitions import TOOLS
from holdfast.interfaces.tools.tool import Scope

SCOPES: Mapping[Scope, str] = {
    "read": "holdfast:read",
    "write": "holdfast:write",
    "restore": "holdfast:restore",
    "admin": "holdfast:admin",
}


class InsufficientScope(Refused):
    """A token that does not grant what the request needs."""

    code = "insufficient_scope"


def scope_needed(method: str, params: Mapping[str, Any] | None) -> str:
    """What a request needs; looking around is reading."""
    name = (params or {}).get("name")
    if method == "tools/call" and isinstance(name, str) and name in TOOLS:
        return SCOPES[TOOLS[name].scope]
    return SCOPES["read"]


def require_scope(granted: list[str] | None, needed: str) -> None:
    if granted is not None and needed not in granted:
        raise InsufficientScope(
            f"the access token does not grant {needed}",
            hint=f"ask for a token with the scope {needed}",
        )
