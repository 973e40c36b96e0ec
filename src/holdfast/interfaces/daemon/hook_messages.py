"""Messages between a hook and the daemon: fields with their lengths, so that nothing is parsed.

    four bytes of length, then a zero byte, then each field: four bytes of length, and its bytes

The other requests are JSON, which takes longer to import than a hook may take. The zero byte tells
the two apart.
"""

from __future__ import annotations

MARK = b"\0"
LARGEST_BYTES = 16 << 20

ACCEPTED = b"accepted"
"""The daemon is alive and at work on it; the answer follows."""
DONE = b"done"
"""With the text for the agent."""
DELIVER = b"tell"
"""Done, with a text that the agent must not miss: the hook confirms it with `DELIVERED`."""
DELIVERED = b"told"
NOT_DONE = b"not done"
"""With the reason; the hook does the work itself."""


def pack(*fields: bytes) -> bytes:
    """One message, with its length."""
    body = [MARK]
    for field in fields:
        body += (len(field).to_bytes(4, "big"), field)
    data = b"".join(body)
    return len(data).to_bytes(4, "big") + data


def unpack(data: bytes) -> list[bytes]:
    """The fields of a message, without its length; `ValueError` for anything else."""
    if data[:1] != MARK:
        raise ValueError("not a message of this form")
    fields, at = [], 1
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if at + 4 > len(data) or end > len(data):
            raise ValueError("a field that is cut off")
        fields.append(data[at + 4 : end])
        at = end
    return fields


def pack_variables(variables: dict[bytes, bytes]) -> bytes:
    return b"\0".join(b"%s=%s" % item for item in sorted(variables.items()))


def unpack_variables(data: bytes) -> dict[bytes, bytes]:
    pairs = [entry.partition(b"=") for entry in data.split(b"\0") if entry]
    return {name: value for name, _, value in pairs}
