"""The process that keeps a database locked is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.sqlite_connection import connect, translate
from holdfast.adapters.local.system import holder_of
from holdfast.domain.errors import Busy

pytestmark = pytest.mark.requirement("CP-8")

HOLD = """
import sys
from pathlib import Path
from holdfast.adapters.local.sqlite_connection import connect
connection = connect(Path(sys.argv[1]), synchronous="FULL")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_the_holder_of_a_locked_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    connection = connect(path, synchronous="FULL")
    connection.execute("CREATE TABLE sample (value)")
    connection.set_busy_timeout(0)
    assert holder_of(path) is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(apsw.BusyError) as refused:
            connection.execute("BEGIN IMMEDIATE")
        busy = translate(refused.value, path)
        assert isinstance(busy, Busy)
        assert f"process {holder.pid} is using the store's some.db" in busy.message
        assert f"kill {holder.pid}" in (busy.hint or "")
        assert holder.stdin is not None
        holder.stdin.close()
    busy = translate(refused.value, path)
    assert isinstance(busy, Busy)
    assert busy.message == "the store's some.db is in use"
    connection.close()


def test_a_file_with_the_same_number_on_another_disk_is_not_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, locks = tmp_path / "some.db", tmp_path / "locks"
    database.touch()
    there = database.stat()
    device = f"{os.major(there.st_dev):02x}:{os.minor(there.st_dev):02x}"
    line = "1: POSIX  ADVISORY  WRITE 1 {}:{} 128 128\n"
    monkeypatch.setattr("holdfast.adapters.local.system._LOCKS", locks)
    locks.write_text(line.format("f7:77", there.st_ino))
    assert holder_of(database) is None
    locks.write_text(line.format(device, there.st_ino))
    assert holder_of(database) == 1


def test_no_process_is_named_for_a_missing_database(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "missing.db") is None
