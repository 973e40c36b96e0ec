"""A process that writes to a SQLite database without a pause, in transactions that one can check.

Every transaction sets the same number in every row, and adds a row: in any state that the database
ever had, all rows agree and their count follows from the number.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

ROWS = 40
_FILLING = "x" * 300

_PROGRAM = """
import sqlite3, sys, time
path, mode, seconds, pause_s = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
db = sqlite3.connect(path, timeout=30, isolation_level=None)
db.execute("PRAGMA journal_mode=" + mode)
db.execute("PRAGMA wal_autocheckpoint=20")
db.execute("PRAGMA cache_size=5")
print("ready", flush=True)
(number,) = db.execute("SELECT max(number) FROM rows").fetchone()
end = time.monotonic() + seconds
while time.monotonic() < end:
    number += 1
    try:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE rows SET number=?", (number,))
        db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        print("trouble", error, file=sys.stderr, flush=True)
        if db.in_transaction:
            db.execute("ROLLBACK")
    if pause_s:
        time.sleep(pause_s)
"""


def make_database(path: Path, mode: str, number: int = 1) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE rows (number INTEGER, filling TEXT)")
        db.executemany("INSERT INTO rows VALUES (?,?)", [(number, _FILLING)] * ROWS)
        db.commit()


@contextmanager
def hammering(
    path: Path, mode: str, seconds: float = 60, *, pause_s: float = 0
) -> Iterator[subprocess.Popen[str]]:
    """The writer, from its first transaction on; it ends after `seconds`."""
    writer = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(path), mode, str(seconds), str(pause_s)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        yield writer
    finally:
        writer.kill()
        writer.communicate()


def state_of(path: Path) -> int:
    """The number that all rows have; an assertion fails when it is no state there ever was."""
    with closing(sqlite3.connect(path, timeout=30)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        numbers = db.execute("SELECT DISTINCT number FROM rows").fetchall()
        assert len(numbers) == 1, f"a mixture: {numbers}"
        assert db.execute("SELECT count(*) FROM rows").fetchall() == [(ROWS,)]
        return int(numbers[0][0])


OBEDIENT = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size=1")
for line in sys.stdin:
    if line == "begin\\n":
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE rows SET number=7")
    else:
        db.execute("COMMIT")
    print("done", flush=True)
"""


def tell(writer: subprocess.Popen[str], word: str) -> None:
    assert writer.stdin is not None
    assert writer.stdout is not None
    print(word, file=writer.stdin, flush=True)
    assert writer.stdout.readline() == "done\n"
