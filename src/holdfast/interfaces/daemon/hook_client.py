"""Handing an agent's event to the daemon, with next to nothing imported: an agent waits for it.

    connect → send the event as it came → the daemon says that it is at work → its answer
    an answer that the agent must not miss → handed on → told so

Guarantees: talks to the user's own daemon only; waits for a sign of life for a moment, and for the
answer no longer than the agent would; whatever goes wrong, the caller learns that the work is its
own. Not guaranteed: that the daemon did nothing then. An event that was dealt with twice counts
once, because both would note it in the store.
"""

from __future__ import annotations

import os
import sys
import time

try:  # `socket` is written on top of this, and takes longer to import than all the rest
    import _socket as sockets
except ImportError:  # a Python that keeps it elsewhere
    import socket as sockets  # type: ignore[no-redef]

from holdfast import __version__
from holdfast.interfaces.daemon.address import candidates, is_private, surroundings
from holdfast.interfaces.daemon.hook_messages import (
    ACCEPTED,
    DELIVER,
    DELIVERED,
    DONE,
    LARGEST_BYTES,
    pack,
    pack_variables,
    unpack,
)

PROTOCOL = b"1"
REQUEST = b"hook"
SIGN_OF_LIFE_S = 0.5
ANSWER_S = 30.0
MOST_SENT_BYTES = 8 << 20
SWITCH = "HOLDFAST_DAEMON"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class NoAnswer(Exception):
    """The daemon did not do it. `missing`: because there is none, or none of this version."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


def ask_about(
    arguments: Sequence[str],
    payload: bytes,
    began_ns: int,
    tell: Callable[[bytes], bool],
    *,
    version: str = __version__,
) -> None:
    """Have it dealt with; `tell` is given the text for the agent, and says whether it was taken.
    `NoAnswer` before that only."""
    if os.environ.get(SWITCH) == "off":
        raise NoAnswer("it is switched off")
    if len(payload) > MOST_SENT_BYTES:
        raise NoAnswer("the event is too large")
    try:
        message = _message(arguments, payload, began_ns, version)
        connection = _connect()
        try:
            connection.sendall(message)
            must_know, text = _answer(connection)
        except BaseException:
            connection.close()
            raise
    except (OSError, ValueError) as error:
        raise NoAnswer(f"it did not answer: {error}") from None
    try:
        if tell(text) and must_know:
            connection.sendall(pack(DELIVERED, b""))
    except OSError:
        return  # it is told again, rather twice than never
    finally:
        connection.close()


def _message(arguments: Sequence[str], payload: bytes, began_ns: int, version: str) -> bytes:
    told = {os.fsencode(k): os.fsencode(v) for k, v in surroundings(os.environ).items()}
    return pack(
        PROTOCOL,
        version.encode(),
        pack_variables(told),
        REQUEST,
        b"\0".join(os.fsencode(word) for word in arguments),
        os.getcwdb(),
        seen_from_here(os.curdir),
        b"%d" % began_ns,
        pack_variables(dict(os.environb)),
        payload,
    )


def seen_from_here(directory: str | bytes) -> bytes:
    """Which mounts, which root and which directory this process sees. One in a container, or in a
    mount namespace of its own, may know other directories under the same names, and below them."""
    root, here = os.stat("/"), os.stat(directory)
    try:
        mounts = os.readlink(b"/proc/self/ns/mnt")
    except OSError:  # a system without them
        mounts = b"-"
    told = (root.st_dev, root.st_ino, here.st_dev, here.st_ino)
    return b"%s %d %d %d %d" % (mounts, *told)


def _connect() -> sockets.socket:
    for path in candidates(os.environ):
        if not is_private(os.path.dirname(path)):
            continue
        connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        connection.settimeout(SIGN_OF_LIFE_S)
        try:
            connection.connect(path)
            if _peer_user(connection) == os.geteuid():
                return connection
        except OSError:
            pass
        connection.close()
    raise NoAnswer("none is running", missing=True)


def _peer_user(connection: sockets.socket) -> int | None:
    if hasattr(sockets, "SO_PEERCRED"):
        told = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12)
    elif sys.platform == "darwin":
        told = connection.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: version, user, groups
    else:
        return None
    return int.from_bytes(told[4:8], sys.byteorder)


def _answer(connection: sockets.socket) -> tuple[bool, bytes]:
    word, said = _receive(connection, SIGN_OF_LIFE_S)
    if word == ACCEPTED:
        word, said = _receive(connection, ANSWER_S)
    if word not in (DONE, DELIVER):
        raise NoAnswer(said.decode("utf-8", "replace"), missing=said.startswith(b"retired"))
    return word == DELIVER, said


def _receive(connection: sockets.socket, timeout_s: float) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + timeout_s
    length = int.from_bytes(_exactly(connection, 4, deadline), "big")
    if length > LARGEST_BYTES:
        raise ValueError("more than any answer has")
    word, said = unpack(_exactly(connection, length, deadline))
    return word, said


def _exactly(connection: sockets.socket, size: int, deadline: float) -> bytes:
    parts = b""
    while len(parts) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("nothing came in time")
        connection.settimeout(left)
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ConnectionResetError("it ended without an answer")
        parts += part
    return parts
