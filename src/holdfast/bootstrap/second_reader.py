"""The program of the process that reads a new workspace from its end; see `reading_process`."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import threading

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.reading_process import (
    INPUT,
    OUTPUT,
    STOP,
    RecordStream,
    directory_frame,
    end_frame,
    opened_job,
    record_frame,
)
from holdfast.domain.object_records import Record
from holdfast.engine.scan.aided_walk import BackwardWalker, WalksMet
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.engine.scan.repositories import ExemptPaths
from holdfast.ports.filesystem import DIRECTORY_FLAGS, write_all


def serve() -> None:
    """Do the job given on the input, and exit with the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends this process
    with open(INPUT, "rb", buffering=0, closefd=False) as given:
        job = json.loads(given.readline())
    met = threading.Event()
    threading.Thread(target=_listen, args=(met,), daemon=True).start()
    gc.disable()  # no reference cycles here, and the process is short-lived
    fs = LocalFilesystem()

    def send(frame: bytes) -> None:
        write_all(fs, OUTPUT, frame)

    def send_record(record: Record) -> None:
        send(record_frame(record))

    def send_directory(path: bytes, state: bytes) -> None:
        send(directory_frame(path, state))

    settings, workspace, own_data, named = opened_job(job)
    kept = ExemptPaths(fs, os.fsencode(workspace), named)
    policy = CapturePolicy(settings, workspace, own_data=own_data).with_exceptions(kept)
    stream = RecordStream(send_record)
    started_ns = job["started_ns"]
    capture = FileCapture(fs, stream, started_ns)
    walker = BackwardWalker(fs, capture, policy, started_ns, send_directory, met.is_set)
    with contextlib.suppress(WalksMet):
        # Reopened, because an inherited handle shares its position in the directory listing.
        walker.walk(fs.open(b".", DIRECTORY_FLAGS, dir_fd=job["root_fd"]), None, None)
    stream.commit()
    send(end_frame())


def _listen(met: threading.Event) -> None:
    if os.read(INPUT, 1) == STOP:
        met.set()
        os.read(INPUT, 1)
    os._exit(1)
