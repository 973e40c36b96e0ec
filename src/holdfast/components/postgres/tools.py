"""The server's own programs: found on absolute paths only, in the required version.

Only a server of the same version is sure to load a dump, so `pg_dump` must have the server's major
version. Any `psql` can talk to any server.

They run without a shell, in a minimal environment. Everything started under a `TimeLimit` is killed
when the time is over; a reader of its output then gets the end of file. No started process outlives
the block.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from glob import glob
from typing import IO

from holdfast.components.postgres.address import Address, failure, too_slow
from holdfast.ports.component import ComponentProblem

USUAL_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/opt/libpq/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/opt/homebrew/opt/libpq/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
_VERSION = re.compile(r"\(PostgreSQL\)\D*(\d+)")
_ASKING_S = 10
_WRAPPER = "pg_wrapper"
"""Debian's wrapper script for all versions takes more time than the program itself."""


class Tools:
    """`places` are directories to search besides PATH."""

    def __init__(self, environment: Mapping[str, str], places: tuple[str, ...]) -> None:
        self._path = environment.get("PATH", os.defpath)
        self._places = places
        self._dumps: dict[int, str] = {}

    @cached_property
    def psql(self) -> str:
        found = list(self._all("psql"))
        if not found:
            raise ComponentProblem(
                "psql is not installed: install PostgreSQL's client programs, or add their "
                "directory to PATH"
            )
        return next((path for path in found if not _is_wrapper(path)), found[0])

    def pg_dump(self, major: int) -> str:
        if major not in self._dumps:
            others = set()
            for program in self._all("pg_dump"):
                version = _major(program)
                if version == major:
                    self._dumps[major] = program
                    break
                others.add(version)
            else:
                raise _not_found(major, others)
        return self._dumps[major]

    def _all(self, name: str) -> Iterator[str]:
        """Those in PATH, then in the usual places, newest first; never from a relative path, which
        could lead into the workspace."""
        places = [place for place in self._path.split(os.pathsep) if os.path.isabs(place)]
        for pattern in self._places:
            places += sorted(glob(pattern), key=_number, reverse=True)
        for place in dict.fromkeys(places):
            program = os.path.join(place, name)
            if os.path.isfile(program) and os.access(program, os.X_OK):
                yield program


def _is_wrapper(program: str) -> bool:
    return os.path.basename(os.path.realpath(program)) == _WRAPPER


def _number(place: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", place))


def _major(program: str) -> int | None:
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKING_S,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout)
    return int(found[1]) if found else None


def _not_found(major: int, others: set[int | None]) -> ComponentProblem:
    numbers = sorted(version for version in others if version is not None)
    there = f"only {', '.join(map(str, numbers))} was found" if numbers else "none was found"
    return ComponentProblem(
        f"the server is PostgreSQL {major} and needs pg_dump {major}, but {there}: install the "
        f"PostgreSQL {major} client programs, or add their directory to PATH"
    )


_KEPT = ("HOME", "PATH", "TMPDIR", "KRB5CCNAME", "PGPASSFILE")
_KEPT_FOR_SSL = ("PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSSLCRL")
_MOST_SAID_BYTES = 64 << 10
_BLOCK_BYTES = 1 << 16
_CONNECTING_S = 10
_LOCKING_S = 5
"""Fail rather than delay others that queue behind a lock."""


class TimeLimit:
    """The limit for everything together, a little less than the caller waits."""

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

    def __exit__(self, *_: object) -> None:
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
    """Collects a process's error output, so that it never blocks."""

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
        """Waits for the process to end."""
        self._thread.join()
        return bytes(self._said)


def tool_environment(
    address: Address, environment: Mapping[str, str], timeout_s: float
) -> dict[str, str]:
    """A tool's environment; the password is nowhere else."""
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
    """A tool's complete output; `ComponentProblem` if it fails."""
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
        raise ComponentProblem(f"{address.shown}: {doing}: the output exceeds {most_bytes:,} bytes")
    if status != 0:
        raise failure(address, doing, said)
    return b"".join(pieces)
