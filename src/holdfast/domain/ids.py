"""Distinct types for distinct ids, so that one cannot be passed for another."""

from __future__ import annotations

import re
from typing import NewType

from holdfast.domain.errors import UsageError

Digest = NewType("Digest", bytes)
"""The BLAKE3-256 digest that names an object."""

CheckpointId = NewType("CheckpointId", str)
SessionId = NewType("SessionId", str)
WorkspaceId = NewType("WorkspaceId", str)

DIGEST_BYTES = 32
CHECKPOINT_ID_LENGTH = 20
SESSION_ID_MAX_LENGTH = 200
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def session_id(text: str) -> SessionId:
    """Validate a session id once, at the border: printable, no surrounding space, bounded."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError("the session id is empty", hint="use a name such as 'refactor-auth'")
    if len(text) > SESSION_ID_MAX_LENGTH:
        raise UsageError(
            f"the session id has {len(text)} characters; the limit is {SESSION_ID_MAX_LENGTH}",
            hint="use a shorter name, such as 'refactor-auth'",
        )
    if text != text.strip() or not text.isprintable():
        raise UsageError(
            f"the session id {text!r} contains control characters or surrounding spaces",
            hint="use printable characters only",
        )
    return SessionId(str.__str__(text))  # an enum member becomes a plain string


def parse_digest(value: object) -> Digest:
    """A digest from its hexadecimal form; `ValueError` for anything else."""
    if not isinstance(value, str) or not _DIGEST.match(value):
        raise ValueError(f"{value!r:.80} is not a digest")
    return Digest(bytes.fromhex(value))


def short(identifier: str) -> str:
    """The form people see. Any unique prefix is accepted as input."""
    return identifier[:10]
