"""The address of a user's daemon: a socket in a directory that no other user can enter.

It is in the runtime directory of the login session. If there is none, or its path is too long for a
socket, it is in a Holdfast directory in /tmp. The settings that select stores and keys are part of
the name, so another `HOLDFAST_HOME` has another daemon.

Imports next to nothing, because every hook call begins here.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_PATH_BYTES = 100
"""Some systems limit a socket address to 104 bytes, including the final zero."""

DECISIVE = (
    "HOLDFAST_HOME",
    "HOLDFAST_KEY_FILE",
    "HOLDFAST_PASSPHRASE_FILE",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)
"""Variables that change the meaning of a request; all settings in the environment do too."""

_NO_SETTINGS = (
    "HOLDFAST_DAEMON",
    "HOLDFAST_DEBUG",
    "HOLDFAST_PAGER",
    "HOLDFAST_POSTGRES_URL",
    "HOLDFAST_SESSION",
    "HOLDFAST_WORKSPACE",
)

_SHARED = "/tmp"


class NoPlace(Exception):
    """There is nowhere to put the socket; the message says why."""


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that client and daemon must agree on."""
    settings = [
        name
        for name in environment
        if name.startswith("HOLDFAST_") and name not in DECISIVE and name not in _NO_SETTINGS
    ]
    return {
        name: environment[name] for name in (*DECISIVE, *sorted(settings)) if name in environment
    }


def socket_name(environment: Mapping[str, str]) -> str:
    identity = "\0".join(f"{name}={value}" for name, value in surroundings(environment).items())
    return f"{crc32(identity.encode('utf-8', 'surrogateescape')):08x}.sock"


def candidate_directories(environment: Mapping[str, str]) -> Iterator[str]:
    """Possible directories for the socket, best first; they need not exist."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        yield os.path.join(runtime, "holdfast")
    yield f"{_SHARED}/holdfast-{os.getuid()}"


def candidates(environment: Mapping[str, str]) -> Iterator[str]:
    """Possible addresses of a daemon, best first."""
    name = socket_name(environment)
    for directory in candidate_directories(environment):
        path = os.path.join(directory, name)
        if len(os.fsencode(path)) <= LONGEST_PATH_BYTES:
            yield path


def require_private(directory: str) -> None:
    """Create the directory if it is missing. Raises `NoPlace` unless it belongs to this user
    only."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise NoPlace(f"cannot create {directory}: {error.strerror}") from None
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NoPlace(f"{directory} is not a directory")
    if status.st_uid != os.geteuid():
        raise NoPlace(f"{directory} belongs to another user")
    if status.st_mode & 0o077:
        raise NoPlace(f"other users can access {directory}")


def is_private(directory: str) -> bool:
    """Like `require_private`, for clients: creates nothing."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    mine = status.st_uid == os.geteuid()
    return stat.S_ISDIR(status.st_mode) and mine and not status.st_mode & 0o077
