"""A process that reads a workspace from its end, and the pipe on which it reports.

    parent → process: the job, one line of JSON; then `s` for "begin nothing more"
    process → parent: content records | the state of a directory | the end

Guarantees: the process writes no file, so it can be killed at any time. It exits when its parent
does. After a minute of silence, the caller stops waiting. On a machine with one processor, or if
Python cannot be started again, there is none, and the caller reads everything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.adapters.local.objects.packs import (
    FULL_AT_BYTES,
    LARGEST_MEMBER_BYTES,
    record_of,
    single_record,
)
from holdfast.adapters.local.system import start_python
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import Record
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.settings.schema import Settings, make_settings
from holdfast.ports.objects import WriteTotals
from holdfast.values.classes import fields
from holdfast.values.compression import Codec

if TYPE_CHECKING:
    import subprocess

    from holdfast.adapters.local.objects.writer import LocalObjectWriter

_PROGRAM = """
import json, sys
from importlib import import_module
sys.path = json.loads(sys.argv[1])
import_module(sys.argv[2]).serve()
"""

STOP = b"s"
INPUT, OUTPUT = 0, 1
_PIPE_BYTES = 1 << 20
_POLL_S = 1.0
_LONGEST_SILENCE = 60

_FRAME = struct.Struct("<cII")
"""kind, length of the first part, length of the second"""

_RECORD = struct.Struct("<BQ32s")
_RECORD_KIND, _DIRECTORY_KIND, _END_KIND = b"r", b"d", b"e"


def reading_job(
    settings: Settings, workspace: Path, own_data: bytes | None, named: Sequence[bytes] = ()
) -> dict[str, Any]:
    """`named` are ignored files that tools named."""
    deciding = [f.name for f in fields(Settings) if f.metadata["decides_capture"]]
    return {
        "named": [to_text(path) for path in named],
        "settings": {key: getattr(settings, key) for key in deciding},
        "workspace": str(workspace),
        "own_data": None if own_data is None else to_text(own_data),
    }


def opened_job(
    job: Mapping[str, Any],
) -> tuple[Settings, Path, bytes | None, list[bytes]]:
    named = [from_text(path) for path in job["named"]]
    own_data = None if job["own_data"] is None else from_text(job["own_data"])
    return make_settings(job["settings"]), Path(job["workspace"]), own_data, named


def record_frame(record: Record) -> bytes:
    head = _RECORD.pack(record.codec, record.size, record.digest)
    return _FRAME.pack(_RECORD_KIND, len(head), len(record.stored)) + head + record.stored


def directory_frame(path: bytes, state: bytes) -> bytes:
    return _FRAME.pack(_DIRECTORY_KIND, len(path), len(state)) + path + state


def end_frame() -> bytes:
    return _FRAME.pack(_END_KIND, 0, 0)


def _frames(buffer: bytearray) -> list[tuple[bytes, bytes, bytes]]:
    """The complete frames at the start of `buffer`, which keeps the rest."""
    frames, start = [], 0
    with memoryview(buffer) as view:
        while len(view) >= start + _FRAME.size:
            kind, first, second = _FRAME.unpack_from(view, start)
            middle = start + _FRAME.size + first
            end = middle + second
            if len(view) < end:
                break
            frames.append(
                (kind, bytes(view[start + _FRAME.size : middle]), bytes(view[middle:end]))
            )
            start = end
    del buffer[:start]
    return frames


class ReadingProcess:
    """See `holdfast.ports.scan_hints.ReadingAid`; `writer` gets the contents. `program` is the
    module whose `serve` does the job in the other process."""

    def __init__(self, writer: LocalObjectWriter, job: Mapping[str, Any], program: str) -> None:
        self._writer = writer
        self._job = job
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._room = bytearray()
        self._buffer = bytearray()
        self._directories: dict[bytes, bytes] = {}
        self._at_end = False
        self._complete = False
        self._relied_upon = False
        self._stopped = False

    def begin(self, root_fd: int, started_ns: int) -> None:
        if self._process is not None or not _can_be_started():
            return
        # A program that is exiting may not start a process, which is not an OSError.
        with contextlib.suppress(OSError, RuntimeError):
            self._process = start_python(_PROGRAM, (root_fd,), self._program)
            self._room = bytearray(_PIPE_BYTES)
            os.set_blocking(self._output(), False)
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                with contextlib.suppress(OSError):  # a system limit; the pipe stays short
                    fcntl.fcntl(self._output(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            job = {**self._job, "root_fd": root_fd, "started_ns": started_ns}
            self._say(json.dumps(job).encode() + b"\n")

    def receive(self) -> None:
        while not self._at_end and self._process is not None:
            try:
                count = os.readv(self._output(), [self._room])
            except BlockingIOError:
                return
            self._at_end = count == 0
            self._buffer += memoryview(self._room)[:count]
            for kind, first, second in _frames(self._buffer):
                self._take(kind, first, second)

    def _take(self, kind: bytes, first: bytes, second: bytes) -> None:
        if kind == _RECORD_KIND:
            codec, size, digest = _RECORD.unpack(first)
            self._writer.add_record(Record(Digest(digest), Codec(codec), 0, size, None, second))
        elif kind == _DIRECTORY_KIND:
            self._directories[first] = second
        else:
            self._complete = self._at_end = True

    def directory(self, path: bytes) -> bytes | None:
        self.receive()
        found = self._directories.get(path)
        self._relied_upon = self._relied_upon or found is not None
        return found

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._say(STOP)

    def finish(self) -> bool:
        """Silence is counted in short waits, so that being stopped together, as by Ctrl-Z, counts
        as one of them."""
        if self._process is None or not self._relied_upon:
            return True
        self.stop()
        silent = 0
        ready = select.poll()
        ready.register(self._output(), select.POLLIN)
        while not self._at_end and silent < _LONGEST_SILENCE:
            if ready.poll(_POLL_S * 1000):
                silent = 0
                self.receive()
            else:
                silent += 1
        return self._complete

    def close(self) -> None:
        process, self._process = self._process, None
        self._directories.clear()
        self._buffer.clear()
        self._room.clear()
        if process is not None:
            process.kill()
            with process:  # waits for it and closes the pipes
                pass

    def _say(self, what: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(what)

    def _output(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()


def _can_be_started() -> bool:
    """A program that bundles its own Python would start itself."""
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy")) and not hasattr(sys, "frozen") and _processors() > 1


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_MOST_REMEMBERED = 50_000
"""How many sent objects are remembered; a forgotten one may be sent twice."""


class RecordStream:
    """Small objects share records, as in any other batch."""

    def __init__(self, send: Callable[[Record], None]) -> None:
        self._send = send
        self._known: set[Digest] = set()
        self._small: list[tuple[Digest, bytes]] = []
        self._small_bytes = 0

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        if digest in self._known:
            return False
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known.add(digest)
        if len(data) > LARGEST_MEMBER_BYTES:
            self._send(single_record(digest, data))
            return True
        self._small.append((digest, data))
        self._small_bytes += len(data)
        if self._small_bytes >= FULL_AT_BYTES:
            self._send_small()
        return True

    def _send_small(self) -> None:
        if not self._small:
            return
        small, self._small, self._small_bytes = self._small, [], 0
        self._send(record_of(small))

    def commit(self) -> WriteTotals:
        self._send_small()
        return WriteTotals()

    def abandon(self) -> None:
        self._small.clear()
