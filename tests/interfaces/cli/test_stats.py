"""`holdfast stats`: how much is stored."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-1")
def test_stats_count_what_is_stored(cli: CommandLine) -> None:
    cli.save("one", "--name", "one")
    cli.save("two")
    cli.json("restore", "one")
    stats = cli.json("stats")
    assert (stats["checkpoints"], stats["restores"], stats["snapshots"]) == (2, 1, 4)
    assert stats["sessions"] == 1
    assert stats["store_bytes"] >= stats["bytes_stored"] > 0
    assert cli("stats").out.startswith("session ")
