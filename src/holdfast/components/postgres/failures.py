"""What the server or its tools say when something goes wrong, with the way out and no secret."""

from __future__ import annotations

import re

from holdfast.components.postgres.address import Address
from holdfast.ports.component import ComponentProblem

LOCKED = "55P03"
_SAID = re.compile(r"(?:ERROR|FATAL|PANIC):\s+(?:([0-9A-Z]{5}): )?(.+)")
_LONGEST_SAID = 300

_BY_STATE = {
    "28P01": "the password is refused: correct the URL in {source}",
    "28000": "the server does not let this user in: see its pg_hba.conf, or the URL in {source}",
    "3D000": "there is no such database: correct the URL in {source}",
    "42501": "the user lacks the right: let {source} name the owner of the database",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory or of locks: raise max_locks_per_transaction",
    "53300": "the server takes no more connections: close some, or raise max_connections",
    LOCKED: "somebody else holds a lock, as a migration does: wait for it to end and try again",
    "40P01": "others use the database at the same time: stop them and try again",
    "40001": "others use the database at the same time: stop them and try again",
    "57014": "it took too long or was cancelled; component_timeout is how long it may take",
    "57P01": "the server is shutting down",
    "57P03": "the server is starting or recovering: try again in a moment",
}
_BY_WORDS = (
    ("password authentication failed", _BY_STATE["28P01"]),
    ("no password supplied", "a password is needed: put it into the URL in {source}"),
    ("no pg_hba.conf entry", _BY_STATE["28000"]),
    ("does not exist", _BY_STATE["3D000"]),
    ("Connection refused", "the server does not run, or elsewhere: start it, or correct {source}"),
    ("No such file or directory", "the server does not run here: start it, or correct {source}"),
    ("could not translate host name", "its name cannot be resolved: correct the URL in {source}"),
    ("timeout expired", "the server does not answer: is it there, and may one reach it?"),
    ("too many clients", _BY_STATE["53300"]),
    ("remaining connection slots", _BY_STATE["53300"]),
    ("starting up", _BY_STATE["57P03"]),
    ("shutting down", _BY_STATE["57P01"]),
    ("lock timeout", _BY_STATE[LOCKED]),
    ("server version mismatch", "the tools and the server are of different versions"),
    ("server closed the connection", "the server went away: look into its log"),
)


class PostgresFailed(ComponentProblem):
    """What was said, by which state of SQL if one was named."""

    def __init__(self, message: str, state: str | None = None) -> None:
        super().__init__(message)
        self.state = state


def failure(address: Address, doing: str, said: bytes) -> PostgresFailed:
    """From what a tool wrote on its standard error."""
    text = address.redacted(said.decode("utf-8", "replace"))
    found = list(_SAID.finditer(text))
    state, words = (found[0][1], found[0][2]) if found else (None, _last_line(text))
    way_out = _BY_STATE.get(state or "")
    if way_out is None and state is None:
        way_out = next((way for sign, way in _BY_WORDS if sign in text), None)
    line = "".join(c for c in words.strip() if c.isprintable())[:_LONGEST_SAID]
    message = f"{address.shown}: {doing}: {line or 'it failed'}"
    if way_out is not None:
        message += f"; {way_out.format(source=address.source)}"
    return PostgresFailed(message, state)


def too_slow(address: Address, doing: str, timeout_s: float) -> PostgresFailed:
    return PostgresFailed(
        f"{address.shown}: {doing}: not finished within {timeout_s:g} seconds; a large database "
        "needs a larger component_timeout"
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    connection = [line for line in lines if "failed:" in line or "error:" in line]
    return (connection or lines or [""])[0]
