"""The address of a user's daemon: a socket in a directory that no other user can enter.

The runtime directory of the login session is preferred; where there is none, or where its path is
too long for a socket, a directory of Holdfast in /tmp. The settings that select stores and keys are
part of the name: with another `HOLDFAST_HOME` there is another daemon.

Imports next to nothing, because every call of a hook begins here.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST_PATH_BYTES = 100
"""A socket's address has room for 104 bytes on some systems, and must end with a zero."""

DECISIVE = (
    "HOLDFAST_HOME",
    "HOLDFAST_KEY_FILE",
    "HOLDFAST_PASSPHRASE_FILE",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)
"""What makes the same request mean something else; so does every setting of the environment."""

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
    """There is nowhere to put the socket, for the reason given."""


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
    """Where the directory of the socket may be, the best first; none of them need exist."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        yield os.path.join(runtime, "holdfast")
    yield f"{_SHARED}/holdfast-{os.getuid()}"


def candidates(environment: Mapping[str, str]) -> Iterator[str]:
    """The addresses at which a daemon may be, the best first."""
    name = socket_name(environment)
    for directory in candidate_directories(environment):
        path = os.path.join(directory, name)
        if len(os.fsencode(path)) <= LONGEST_PATH_BYTES:
            yield path


def require_private(directory: str) -> None:
    """Make the directory if it is not there; `NoPlace` unless it is ours and ours alone."""
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
    """The same without making anything, for clients."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    mine = status.st_uid == os.geteuid()
    return stat.S_ISDIR(status.st_mode) and mine and not status.st_mode & 0o077
