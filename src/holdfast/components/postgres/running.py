"""Running the server's tools: no shell, an environment of their own, and an end at a set time.

Everything started under a `TimeLimit` is killed when the time is over; whoever reads from it then
finds its end. Nothing that was started outlives the block.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO

from holdfast.components.postgres.addresses import Address
from holdfast.components.postgres.failures import failure, too_slow
from holdfast.ports.component import ComponentProblem

_KEPT = ("HOME", "PATH", "TMPDIR", "KRB5CCNAME", "PGPASSFILE")
_KEPT_FOR_SSL = ("PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")
_MOST_SAID_BYTES = 64 << 10
_BLOCK_BYTES = 1 << 16
_CONNECTING_S = 10
_LOCKING_S = 5
"""Rather fail than hold up everybody who queues behind a lock that is waited for."""


class TimeLimit:
    """How long everything together may take, a little less than the caller waits."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.lock_wait_ms = int(min(_LOCKING_S, timeout_s / 4) * 1000)
        self.is_over = False
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._timer = threading.Timer(timeout_s * 0.95, self._end)
        self._timer.daemon = True

    def __enter__(self) -> TimeLimit:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._kill()

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdin: int
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            process = subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
            )
            self._running.add(process)
        if self.is_over:
            self._kill()
        return process

    def finished(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)

    def _end(self) -> None:
        self.is_over = True
        self._kill()

    def _kill(self) -> None:
        with self._lock:
            for process in self._running:
                process.kill()


class StandardError:
    """Collects what a process says, so that it never waits for a reader."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._said = bytearray()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        while block := self._stream.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
            room = _MOST_SAID_BYTES - len(self._said)
            self._said += block[: max(room, 0)]

    def all(self) -> bytes:
        """Waits for the end of the process."""
        self._thread.join()
        return bytes(self._said)


def tool_environment(
    address: Address, environment: Mapping[str, str], timeout_s: float
) -> dict[str, str]:
    """What a tool gets to see; the password is nowhere else."""
    kept = {name: environment[name] for name in _KEPT + _KEPT_FOR_SSL if name in environment}
    connecting_s = max(2, min(_CONNECTING_S, int(timeout_s / 2)))
    return kept | {
        "LC_ALL": "C",
        "PGAPPNAME": "holdfast",
        "PGCLIENTENCODING": "UTF8",
        "PGCONNECT_TIMEOUT": str(connecting_s),
        **address.variables,
    }


def output_of(
    limit: TimeLimit,
    arguments: Sequence[str],
    address: Address,
    environment: Mapping[str, str],
    doing: str,
    most_bytes: int,
) -> bytes:
    """What a tool writes, whole; `PostgresFailed` when it does not end well."""
    try:
        process = limit.start(arguments, environment, subprocess.DEVNULL)
    except OSError as error:
        raise ComponentProblem(f"{arguments[0]} cannot be run: {error.strerror}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    errors = StandardError(process.stderr)
    pieces, size = [], 0
    try:
        while (block := process.stdout.read(_BLOCK_BYTES)) and size <= most_bytes:
            pieces.append(block)
            size += len(block)
        if size > most_bytes:
            process.kill()
    finally:
        process.stdout.close()
        status = process.wait()
        said = errors.all()
        process.stderr.close()
        limit.finished(process)
    if limit.is_over:
        raise too_slow(address, doing, limit.timeout_s)
    if size > most_bytes:
        raise ComponentProblem(f"{address.shown}: {doing}: it gave more than {most_bytes:,} bytes")
    if status != 0:
        raise failure(address, doing, said)
    return b"".join(pieces)
