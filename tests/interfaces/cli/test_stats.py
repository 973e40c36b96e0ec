"""`holdfast stats`: how much is stored."""

from __future__ import annotations

import threading

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


@pytest.mark.requirement("CL-1")
def test_usage_counts_restores_by_kind_and_the_time_they_saved(cli: CommandLine) -> None:
    cli.save("one", "--name", "one")
    cli.save("two")
    threading.Event().wait(0.1)  # the figure has one decimal
    cli.json("restore", "one")
    assert "usage" not in cli.json("stats")
    used = cli.json("stats", "--usage")["usage"]
    assert used["restores"] == {"restore": 1, "reset": 0, "undo": 0, "redo": 0}
    assert (used["sessions"], used["sessions_with_restores"]) == (1, 1)
    assert used["sessions_with_manual_checkpoints"] == 1
    first = used["time_saved_seconds"]
    assert 0 < first < 3600
    cli.json("undo")
    cli.json("redo")
    used = cli.json("stats", "--usage")["usage"]
    assert used["restores"] == {"restore": 1, "reset": 0, "undo": 1, "redo": 1}
    assert used["time_saved_seconds"] >= first
    shown = cli("stats", "--usage").out
    assert "1 restore, 0 reset, 1 undo, 1 redo" in shown
    assert "1 of 1 session" in shown
