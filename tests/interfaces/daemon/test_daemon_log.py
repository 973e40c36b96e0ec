"""What a daemon writes down of its troubles, and that this does not grow without end."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.interfaces.daemon.client import ask, connect
from tests.support.daemons import wait_for

pytestmark = pytest.mark.requirement("HK-2")


def test_the_log_of_a_daemon_that_was_started_by_a_hook_is_bounded(
    runtime: Path, tmp_path: Path
) -> None:
    place = tmp_path / "daemon.log"
    program = (
        "import sys\n"
        "from holdfast.interfaces.daemon import instance\n"
        "if sys.argv[1] == 'bounded': instance.bound_log(5_000)\n"
        "for number in range(1_000): instance.log(f'trouble {number} of many')\n"
    )
    sizes = {}
    for how in ("bounded", "of somebody else"):
        with place.open("ab") as file:
            command = [sys.executable, "-c", program, how]
            subprocess.run(command, stderr=file, check=True)
        assert place.read_text().endswith("trouble 999 of many\n")
        sizes[how] = place.stat().st_size
    assert sizes["bounded"] < 6_000 < 40_000 < sizes["of somebody else"]


def test_a_daemon_that_was_started_by_a_hook_restarts_a_full_log(runtime: Path) -> None:
    ask("ping", start=True, start_s=120)
    log = runtime / "holdfast" / "daemon.log"
    log.write_bytes(b"old trouble\n" * 100_000)
    connection = connect(os.environ)
    assert connection is not None
    with closing(connection):
        connection.sendall(b"\xff\xff\xff\xff")  # more than is taken: that is logged
        assert connection.recv(1) == b""
    wait_for(ask("stop")["pid"])
    assert log.stat().st_size < 10_000
    assert "a connection ended" in log.read_text()
