"""Processes that reopen a SQLite database without a pause, to write to it and to read it.

Every transaction sets one number in all rows; each reader checks that all rows agree and that the
database is sound. The first thing that is wrong ends a process, which says what it was.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.database_writer import ROWS

_PROGRAM = """
import os, sqlite3, sys
path, part, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
number = 1000 * os.getpid()

def look(db):
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "damaged"
    found = db.execute("SELECT number, count(*) FROM rows GROUP BY number").fetchall()
    assert len(found) == 1 and found[0][1] == rows, found

def change(db):
    global number
    number += 1
    db.execute("BEGIN IMMEDIATE")
    look(db)
    db.execute("UPDATE rows SET number=?", (number,))
    db.execute("COMMIT")

def visit():
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    try:
        change(db) if part == "writes" else look(db)
    finally:
        db.close()

while os.getppid() == int(sys.argv[4]):
    try:
        visit()
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "unable to open" in str(error):
            continue
        print("wrong:", repr(error), flush=True)
        break
    except BaseException as error:
        print("wrong:", repr(error), flush=True)
        break
"""


class Crowd:
    """The running processes."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def complaints(self) -> list[str]:
        """What those that ended by themselves have found; to be asked before they are stopped."""
        ended = [process for process in self._processes if process.poll() is not None]
        return [process.communicate()[0] for process in ended]


@contextmanager
def crowd_around(path: Path, *, writers: int, readers: int) -> Iterator[Crowd]:
    parts = ["writes"] * writers + ["looks"] * readers
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(_member(path, part)) for part in parts]
        yield Crowd(processes)


@contextmanager
def _member(path: Path, part: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _PROGRAM, str(path), part, str(ROWS), str(os.getpid())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()
