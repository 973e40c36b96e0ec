"""The token of the local server: random, in a file that only its owner can read.

It lies beside the stores and stays the same, so that a client is configured once; removing the
file makes a new one. A file that others can read, that is a link or somebody else's is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path

from mcp.server.auth.provider import AccessToken

from holdfast.adapters.local.private_files import read_own_file
from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import Refused
from holdfast.interfaces.mcp.scopes import SCOPES

TOKEN_FILE = "mcp-token"
_TOKEN_BYTES = 32
_LARGEST_FILE = 1000
_OTHERS = 0o077


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


def local_token(home: Path) -> tuple[str, Path]:
    """The token and the file that it is in, which is made if there is none."""
    path = home / TOKEN_FILE
    hint = f"remove it and start again: rm {path}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(path, flags, 0o600)
        except FileExistsError:
            return _read(path, hint), path
        with os.fdopen(fd, "wb") as file:
            token = random_bytes(_TOKEN_BYTES).hex()
            file.write(token.encode() + b"\n")
            file.flush()
            os.fsync(fd)
        return token, path
    except OSError as error:
        raise Refused(
            f"the token file {path} cannot be used: {error.strerror}", hint=hint
        ) from None


def _read(path: Path, hint: str) -> str:
    status = path.lstat()
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & _OTHERS:
        raise Refused(f"the token file {path} is not private to you", hint=hint)
    token = read_own_file(path, _LARGEST_FILE).decode("ascii", "replace").strip()
    if len(token) < _TOKEN_BYTES:
        raise Refused(f"the token file {path} holds no token", hint=hint)
    return token
