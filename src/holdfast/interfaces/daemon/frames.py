"""What goes over the socket: a length of four bytes, then one JSON object, or the fields of a hook.

Guarantees: a frame is read whole or not at all; a length beyond the limit is refused before
anything is read; a peer that stops in the middle is given up when the time is over.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from holdfast.interfaces.daemon import hook_client

PROTOCOL = 1
LARGEST_BYTES = hook_client.LARGEST_BYTES
_LENGTH = struct.Struct(">I")


class BadFrame(Exception):
    """The peer does not speak this protocol, or too much at once."""


def encode(message: dict[str, Any]) -> bytes:
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) > LARGEST_BYTES:
        raise BadFrame(f"a message of {len(data)} bytes; at most {LARGEST_BYTES} are taken")
    return _LENGTH.pack(len(data)) + data


def send(connection: socket.socket, message: dict[str, Any], timeout_s: float) -> None:
    connection.settimeout(timeout_s)
    connection.sendall(encode(message))


def receive(connection: socket.socket, timeout_s: float) -> dict[str, Any] | None:
    """The next message; None when the peer has ended the connection between two of them."""
    deadline = time.monotonic() + timeout_s
    header = _exactly(connection, _LENGTH.size, deadline, may_end=True)
    if header is None:
        return None
    length = _LENGTH.unpack(header)[0]
    if length > LARGEST_BYTES:
        raise BadFrame(f"a message of {length} bytes; at most {LARGEST_BYTES} are taken")
    data = _exactly(connection, length, deadline, may_end=False) or b""
    if data[:1] == hook_client.MARK:
        return _from_fields(data)
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise BadFrame("a message that is not JSON") from None
    if not isinstance(message, dict):
        raise BadFrame("a message that is not an object")
    return message


def _from_fields(data: bytes) -> dict[str, Any]:
    """A hook's message in the shape that all requests have; the answer has to be packed as well."""
    try:
        protocol, version, told, request, *arguments = hook_client.unpack(data)
        return {
            "protocol": int(protocol),
            "version": version.decode(),
            "surroundings": {
                os.fsdecode(name): os.fsdecode(value)
                for name, value in unpack_variables(told).items()
            },
            "request": request.decode(),
            "arguments": {"fields": arguments},
            "packed": True,
        }
    except ValueError:
        raise BadFrame("a message that is cut off") from None


def _exactly(
    connection: socket.socket, size: int, deadline: float, *, may_end: bool
) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the peer stopped in the middle of a message")
        connection.settimeout(left)
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            if may_end and not parts:
                return None
            raise BadFrame("the connection ended in the middle of a message")
        parts += part
    return bytes(parts)


def pack_answer(answer: Mapping[str, Any]) -> bytes:
    """The answer to a hook. With `settle` in it, the hook has to confirm the delivery."""
    result = answer.get("answer")
    if isinstance(result, dict):
        word = hook_client.DONE if result.get("settle") is None else hook_client.DELIVER
        return hook_client.pack(word, str(result["text"]).encode())
    reason = str(answer.get("refused") or answer.get("error"))
    if answer.get("retired"):
        reason = f"retired: {reason}"
    return hook_client.pack(hook_client.NOT_DONE, reason.encode("utf-8", "replace"))


def receive_confirmation(connection: socket.socket) -> bool:
    """Whether the hook says that the agent has the text; otherwise it ends without a word."""
    expected, said = hook_client.pack(hook_client.DELIVERED, b""), b""
    with contextlib.suppress(OSError):
        while len(said) < len(expected) and (part := connection.recv(len(expected) - len(said))):
            said += part
    return said == expected


def unpack_variables(data: bytes) -> dict[bytes, bytes]:
    pairs = [entry.partition(b"=") for entry in data.split(b"\0") if entry]
    return {name: value for name, _, value in pairs}
