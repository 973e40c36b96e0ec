"""The access token of local servers: random, in a file that only its owner can read.

The file is beside the stores, and the token stays the same, so that a client is configured once;
deleting the file makes a new one. Guarantee: a file that others can read, a symbolic link, or a
file of another user is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.adapters.local.small_files import read_own_file
from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import Refused

TOKEN_FILE = "mcp-token"
_TOKEN_BYTES = 32
_LARGEST_FILE = 1000
_OTHERS = 0o077


def local_token(home: Path) -> tuple[str, Path]:
    """The token and its file, which is created if there is none."""
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
