"""The process that an agent starts for each event: ask the daemon, else do the work here.

    read the event → connect → send it unchanged → the daemon acknowledges it → its answer
    no answer → the event is handled in this process
    an answer that the agent must get → printed → confirmed to the daemon

A message is four bytes of length, a zero byte, then each field: four bytes of length, and its
bytes. That needs no JSON, whose import takes longer than a hook may take.

Guarantees: the exit status is always 0. After SIGTERM it still answers, and records the event as
not handled. It talks only to the user's own daemon. It waits briefly for the acknowledgement, and
for the answer no longer than the agent would. It imports only the standard library, and little of
it, because an agent is waiting. Not guaranteed: that a daemon that did not answer did nothing. An
event that is handled twice counts once, because both record it in the store.
"""

from __future__ import annotations

import gc
import os
import sys
import time

try:  # `socket` builds on this, and takes longer to import than everything else
    import _socket as sockets
except ImportError:  # a Python that has it elsewhere
    import socket as sockets  # type: ignore[no-redef]

from holdfast import __version__
from holdfast.interfaces.daemon.address import candidates, is_private, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signals
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType
else:
    try:  # `signal` builds on this, and imports more
        import _signal as signals
    except ImportError:  # a Python that has it elsewhere
        import signal as signals

PROTOCOL = b"1"
REQUEST = b"hook"
MARK = b"\0"
ACCEPTED = b"accepted"
"""The daemon is working on it; the answer follows."""
DONE = b"done"
"""Done, with the text for the agent."""
DELIVER = b"tell"
"""Done, with a text that the agent must get: the hook confirms it with `DELIVERED`."""
DELIVERED = b"told"
NOT_DONE = b"not done"
"""Not done, with the reason; the client does the work itself."""
RETIRED = b"retired: "
"""Prefix of the reason if the daemon has exited to make room for a new one."""

SIGN_OF_LIFE_S = 0.5
ANSWER_S = 30.0
LARGEST_BYTES = 16 << 20
MOST_SENT_BYTES = 8 << 20
SWITCH = "HOLDFAST_DAEMON"
_BLOCK_BYTES = 1 << 16
_GARBAGE_THRESHOLD = 50_000


class StopSignal(BaseException):
    """A signal asked the process to exit."""


class NoAnswer(Exception):
    """The daemon did not do it. `missing`: there is none, or none of this version."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


def run_hook(arguments: Sequence[str]) -> None:
    """Answer one event."""
    gc.set_threshold(_GARBAGE_THRESHOLD)  # short process: garbage collection is wasted time
    taken = b""
    answered = False

    def tell(text: bytes) -> bool:
        nonlocal answered
        answered = True
        return _write(text + b"\n" if text else b"")

    try:
        _prepare_process()
        began_ns = time.time_ns()
        taken = _read_input()
        ask_about(arguments, taken, began_ns, tell)
    except BaseException as error:
        if not answered:
            _answer_here(arguments, taken, error)


def _answer_here(arguments: Sequence[str], taken: bytes, error: BaseException) -> None:
    """Handle the event here if the daemon did not. After any other error, such as a signal while
    the daemon was working or unreadable input, only answer."""
    try:
        from holdfast.interfaces.hooks.in_process import answer, answer_without_work

        if isinstance(error, NoAnswer):
            answer(arguments, own_process=True, taken=taken, begin_daemon=error.missing)
        else:
            answer_without_work(arguments, taken, error)
    except BaseException:  # another signal: the agent continues
        return


def _prepare_process() -> None:
    # If a standard stream is closed, the next opened file would get its number.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number in (signals.SIGTERM, signals.SIGHUP):
        if signals.getsignal(number) == signals.SIG_DFL:
            signals.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    raise StopSignal(f"stopped by signal {number}")


def _read_input() -> bytes:
    """The event; only the beginning of one that is too large for the daemon."""
    blocks, size = [], 0
    while size <= MOST_SENT_BYTES and (block := os.read(0, _BLOCK_BYTES)):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks)


def _write(data: bytes) -> bool:
    """Returns whether the agent read the answer. A closed pipe is not an error."""
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


def ask_about(
    arguments: Sequence[str],
    payload: bytes,
    began_ns: int,
    tell: Callable[[bytes], bool],
    *,
    version: str = __version__,
) -> None:
    """Let the daemon handle an event. `tell` gets the text for the agent, and returns whether the
    agent read it. Raises `NoAnswer` only before that."""
    if os.environ.get(SWITCH) == "off":
        raise NoAnswer("it is switched off")
    if len(payload) > MOST_SENT_BYTES:
        raise NoAnswer("the event is too large")
    try:
        message = _message(arguments, payload, began_ns, version)
        connection = connect(os.environ, SIGN_OF_LIFE_S)
        if connection is None:
            raise NoAnswer("none is running", missing=True)
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
        return  # it is delivered again: better twice than never
    finally:
        connection.close()


def _message(arguments: Sequence[str], payload: bytes, began_ns: int, version: str) -> bytes:
    return pack(
        *request_head(REQUEST, os.environ, version),
        b"\0".join(os.fsencode(word) for word in arguments),
        os.getcwdb(),
        seen_from_here(os.curdir),
        b"%d" % began_ns,
        pack_variables(dict(os.environb)),
        payload,
    )


def request_head(
    request: bytes, environment: Mapping[str, str], version: str
) -> tuple[bytes, bytes, bytes, bytes]:
    """The first fields of every request."""
    decisive = {os.fsencode(k): os.fsencode(v) for k, v in surroundings(environment).items()}
    return PROTOCOL, version.encode(), pack_variables(decisive), request


def seen_from_here(directory: str | bytes) -> bytes:
    """The mounts, root and directory that this process sees. A process in a container or another
    mount namespace may see other directories at the same paths."""
    root, here = os.stat("/"), os.stat(directory)
    try:
        mounts = os.readlink(b"/proc/self/ns/mnt")
    except OSError:  # a system without namespaces
        mounts = b"-"
    return b"%s %d %d %d %d" % (mounts, root.st_dev, root.st_ino, here.st_dev, here.st_ino)


def connect(environment: Mapping[str, str], timeout_s: float) -> sockets.socket | None:
    """A connection to this user's daemon, or None."""
    for path in candidates(environment):
        if not is_private(os.path.dirname(path)):
            continue
        connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            connection.connect(path)
            if peer_user(connection) == os.geteuid():
                return connection
        except OSError:
            pass
        connection.close()
    return None


def peer_user(connection: sockets.socket) -> int | None:
    """The user at the other end; None if the system does not report it."""
    if hasattr(sockets, "SO_PEERCRED"):
        credentials = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12)
    elif sys.platform == "darwin":
        credentials = connection.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: version, user, groups
    else:
        return None
    return int.from_bytes(credentials[4:8], sys.byteorder)


def _answer(connection: sockets.socket) -> tuple[bool, bytes]:
    word, said = receive(connection, SIGN_OF_LIFE_S)
    if word == ACCEPTED:
        word, said = receive(connection, ANSWER_S)
    if word not in (DONE, DELIVER):
        raise NoAnswer(said.decode("utf-8", "replace"), missing=said.startswith(RETIRED))
    return word == DELIVER, said


def receive(connection: sockets.socket, timeout_s: float) -> list[bytes]:
    """The fields of the next message. Raises `ConnectionResetError` if the other end closes first,
    and `ValueError` for an invalid message."""
    deadline = time.monotonic() + timeout_s
    length = int.from_bytes(_exactly(connection, 4, deadline), "big")
    if length > LARGEST_BYTES:
        raise ValueError(f"a message of {length} bytes; the limit is {LARGEST_BYTES}")
    return unpack(_exactly(connection, length, deadline))


def _exactly(connection: sockets.socket, size: int, deadline: float) -> bytes:
    parts = b""
    while len(parts) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the message did not arrive in time")
        connection.settimeout(left)
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ConnectionResetError("it ended without an answer")
        parts += part
    return parts


def pack(*fields: bytes) -> bytes:
    """One message, with its length."""
    body = [MARK]
    for field in fields:
        body += (len(field).to_bytes(4, "big"), field)
    data = b"".join(body)
    return len(data).to_bytes(4, "big") + data


def unpack(data: bytes) -> list[bytes]:
    """The fields of a message without its length; raises `ValueError` if it is invalid."""
    if data[:1] != MARK:
        raise ValueError("not a message of this form")
    fields, at = [], 1
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if at + 4 > len(data) or end > len(data):
            raise ValueError("a field is truncated")
        fields.append(data[at + 4 : end])
        at = end
    return fields


def pack_variables(variables: dict[bytes, bytes]) -> bytes:
    return b"\0".join(b"%s=%s" % item for item in sorted(variables.items()))
