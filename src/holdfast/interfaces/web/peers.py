"""The user behind a connection, as the kernel of this machine knows it.

Linux answers for one connection at a time, by its two ends (`sock_diag(7)`), in a few microseconds.
Unknown on other systems, and for connections from other machines and network namespaces.
"""

from __future__ import annotations

import socket
import struct

_Address = tuple[str, int]

_SOCKET_DIAGNOSTICS = 4
"""NETLINK_SOCK_DIAG."""
_BY_FAMILY, _REQUEST = 20, 1
_TCP, _ANY_STATE, _NO_COOKIE = 6, 0xFFFFFFFF, 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_OPTIONS = struct.Struct("=BBBxI")
_ENDS = struct.Struct("!HH16s16s")
_REST = struct.Struct("=III")
_USER = struct.Struct("=I")
_USER_OFFSET = _HEADER.size + 64
_ANSWER_S = 1.0


def user_of(client: _Address, server: _Address) -> int | None:
    """The user who owns the client's end of a TCP connection; None if unknown."""
    try:
        question = _question(client, server)
        with socket.socket(
            socket.AF_NETLINK,  # type: ignore[attr-defined,unused-ignore]
            socket.SOCK_DGRAM,
            _SOCKET_DIAGNOSTICS,
        ) as kernel:
            kernel.settimeout(_ANSWER_S)
            kernel.send(question)
            answer = kernel.recv(4096)
    except (AttributeError, OSError):
        return None
    kind: int = _HEADER.unpack_from(answer)[1]
    if kind != _BY_FAMILY or len(answer) < _USER_OFFSET + _USER.size:
        return None
    user: int = _USER.unpack_from(answer, _USER_OFFSET)[0]
    return user


def _question(client: _Address, server: _Address) -> bytes:
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    source, target = (socket.inet_pton(family, one[0]) for one in (client, server))
    body = (
        _OPTIONS.pack(family, _TCP, 0, _ANY_STATE)
        + _ENDS.pack(client[1], server[1], source, target)
        + _REST.pack(0, _NO_COOKIE, _NO_COOKIE)
    )
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body
