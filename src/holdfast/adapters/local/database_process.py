"""Writing into a live database in a process of its own.

Locks of a file belong to a process, and go with the first handle of it that the process closes: a
program that uses a database and Holdfast at once would lose its locks, and not be kept out by ours.
The process ends with the one that started it; what it was doing then, SQLite takes back.

It says all the time that it is alive, with blanks before its answer, however long a large database
takes. One that does not for a minute has been stopped by somebody, and is ended.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import subprocess
import threading
from typing import IO, Any

from holdfast.adapters.local.processes import python_command
from holdfast.domain.database_jobs import DatabaseJob, PerhapsWritten, Writing, Written
from holdfast.domain.ids import Digest

_PROGRAM = """
import json, sys
sys.path = json.loads(sys.argv[1])
from holdfast.adapters.local.database_process import serve
serve()
"""

_INPUT, _OUTPUT = 0, 1
_PIECE_BYTES = 1 << 16
_SIGN_OF_LIFE_S = 1.0
_LONGEST_SILENCE = 60


def overwrite_in_process(job: DatabaseJob, dir_fd: int, area: int) -> Written:
    """As `database_overwrite.overwrite`; an `OSError` when the process fails."""
    with subprocess.Popen(
        python_command(_PROGRAM),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(dir_fd, area),
        bufsize=0,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps([dir_fd, area, _encoded(job)]).encode() + b"\n")
            answer = _read_answer(process.stdout)  # its input stays open: it ends with that
        finally:
            process.kill()
    return _answered(answer)


def _read_answer(output: IO[bytes]) -> bytes:
    """All that it says until it ends. Silence is counted in short waits: when we are stopped
    together, as by Ctrl-Z, that is one of them."""
    said, silent = b"", 0
    ready = select.poll()
    ready.register(output, select.POLLIN)
    while silent < _LONGEST_SILENCE:
        if not ready.poll(_SIGN_OF_LIFE_S * 1000):
            silent += 1
            continue
        piece = os.read(output.fileno(), _PIECE_BYTES)
        if not piece:
            return said
        said, silent = said.lstrip() + piece, 0
    why = "the process that writes into the database was stopped, and has been ended"
    raise PerhapsWritten(errno.ETIMEDOUT, why)


def _answered(answer: bytes) -> Written:
    try:
        fields = json.loads(answer)
    except ValueError:
        why = "the process that writes into the database has died"
        raise PerhapsWritten(errno.EIO, why) from None
    if "errno" in fields:
        failure = PerhapsWritten if fields["perhaps"] else OSError
        raise failure(fields["errno"], fields["reason"])
    return Written(Writing(fields["how"]), fields["aside"], fields["detail"])


def _encoded(job: DatabaseJob) -> dict[str, Any]:
    return {
        "name": os.fsdecode(job.name),
        "slots": {os.fsdecode(k): os.fsdecode(v) for k, v in job.slots.items()},
        "wanted": {os.fsdecode(k): v.hex() for k, v in job.wanted.items()},
        "known": {os.fsdecode(k): v.hex() for k, v in job.known.items()},
        "aside": os.fsdecode(job.aside),
        "mode": job.mode,
        "mtime_ns": job.mtime_ns,
        "patience_s": job.patience_s,
    }


def _decoded(fields: dict[str, Any]) -> DatabaseJob:
    def digests(key: str) -> dict[bytes, Digest]:
        return {os.fsencode(k): Digest(bytes.fromhex(v)) for k, v in fields[key].items()}

    return DatabaseJob(
        name=os.fsencode(fields["name"]),
        slots={os.fsencode(k): os.fsencode(v) for k, v in fields["slots"].items()},
        wanted=digests("wanted"),
        known=digests("known"),
        aside=os.fsencode(fields["aside"]),
        mode=fields["mode"],
        mtime_ns=fields["mtime_ns"],
        patience_s=fields["patience_s"],
    )


def _end_with_starter() -> None:
    os.read(_INPUT, 1)
    os._exit(1)


def _tell_that_we_live() -> None:
    pause = threading.Event()
    while not pause.wait(_SIGN_OF_LIFE_S):
        os.write(_OUTPUT, b" ")


def failure_of(error: Exception) -> dict[str, Any]:
    """As it is told to the starter."""
    import apsw

    if isinstance(error, OSError):
        code, reason = error.errno or errno.EIO, error.strerror or str(error)
        return {"errno": code, "reason": reason, "perhaps": isinstance(error, PerhapsWritten)}
    # What SQLite says of a backup that failed is "not an error": its number has to do.
    if isinstance(error, apsw.FullError):
        reason = os.strerror(errno.ENOSPC)
        return {"errno": errno.ENOSPC, "reason": reason, "perhaps": False}
    known = apsw.mapping_extended_result_codes | apsw.mapping_result_codes
    what = known.get(getattr(error, "extendedresult", 0), error)
    reason = f"SQLite cannot write the database ({what})"
    return {"errno": errno.EIO, "reason": reason, "perhaps": True}


def serve() -> None:
    """The other side: one job from standard input, one answer to standard output."""
    import apsw

    from holdfast.adapters.local.database_overwrite import overwrite

    with open(_INPUT, "rb", buffering=0, closefd=False) as requests:
        dir_fd, area, fields = json.loads(requests.readline())
    for duty in (_end_with_starter, _tell_that_we_live):
        threading.Thread(target=duty, daemon=True).start()
    answer: dict[str, Any]
    try:
        written = overwrite(_decoded(fields), dir_fd, area)
        answer = {"how": written.how, "aside": written.aside, "detail": written.detail}
    except (OSError, apsw.Error) as error:
        answer = failure_of(error)
    os.write(_OUTPUT, json.dumps(answer).encode())
    os._exit(0)
