"""`log --graph`, `--messages` and `--rounds` are about the workspace, or one session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("SE-9")


@pytest.fixture
def two_sessions(cli: CommandLine) -> CommandLine:
    """Work in `one` and `two`, by turns; a restore and an approval in the first."""
    for number in range(3):
        for session in ("one", "two"):
            (cli.workspace / f"{session}.txt").write_text(str(number))
            cli.json("checkpoint", f"{session} {number}", "--session", session)
    cli.json("restore", "one:HEAD~1", "--session", "one", "--yes")
    cli.json("checkpoint", "one again", "--session", "one")
    cli.json("approve", "--session", "one")
    return cli


def event_key(event: dict[str, Any]) -> tuple[Any, ...]:
    found = event.get("checkpoint") or {}
    return (event["session_id"], event["type"], event["at"], found.get("id"))


def test_everything_of_every_session_is_in_one_stream(two_sessions: CommandLine) -> None:
    cli = two_sessions
    whole = cli.json("log", "--graph", "-n", "0")
    assert {event["session_id"] for event in whole["events"]} == {"one", "two"}
    for session in ("one", "two"):
        alone = cli.json("log", "--graph", "-n", "0", "--session", session)
        mine = [one for one in whole["events"] if one["session_id"] == session]
        assert [one["type"] for one in mine] == [one["type"] for one in alone["events"]]
        assert all("session_id" not in one for one in alone["events"])
    assert len({event["lane"] for event in whole["events"]}) >= 2
    assert [one["session_id"] for one in whole["rounds"]].count("one") == 2
    assert sum(e["checkpoint"]["is_head"] for e in whole["events"] if "checkpoint" in e) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pages_fit_together(two_sessions: CommandLine, size: int) -> None:
    cli = two_sessions
    whole = [event_key(event) for event in cli.json("log", "--graph", "-n", "0")["events"]]
    page = cli.json("log", "--graph", "-n", str(size))
    events = page["events"]
    while page["next"]:
        page = cli.json("log", "--graph", "-n", str(size), "--before", page["next"])
        assert 0 < len(page["events"]) <= size
        events += page["events"]
    assert [event_key(event) for event in events] == whole


def test_a_place_of_one_session_is_refused_for_the_workspace(two_sessions: CommandLine) -> None:
    page = two_sessions.json("log", "--graph", "-n", "1", "--session", "one")
    answer = two_sessions("log", "--graph", "--before", page["next"])
    assert answer.status == 2
    assert "of a workspace timeline" in " ".join(answer.err.split())


def test_an_event_is_never_more_than_a_row(two_sessions: CommandLine) -> None:
    for option in ("--graph", "--messages"):
        with Screen(two_sessions.workspace, "log", option, columns=80) as screen:
            rows = [row for row in Screen.plain(screen.finish()) if row.strip()]
        assert all(len(row) <= 80 for row in rows), rows
        assert any("{one}" in row for row in rows)
        assert any("{two}" in row for row in rows)


def test_days_show_everything_of_that_time(two_sessions: CommandLine) -> None:
    for number in range(12):
        (two_sessions.workspace / "one.txt").write_text(f"more {number}")
        two_sessions.json("checkpoint", f"more {number}", "--session", "one")
    all_of_it = two_sessions.json("log", "--graph", "-n", "0")
    assert len(all_of_it["events"]) > 20
    assert two_sessions.json("log", "--graph", "--days", "7") == all_of_it
    assert two_sessions.json("log", "--graph", "--days", "0")["events"] == []
    assert two_sessions.json("log", "--days", "0") == []
    for wrong in (("--days", "x"), ("--days", "1", "--since", "1d")):
        assert two_sessions("log", *wrong).status == 2


def test_since_leaves_out_what_is_older(two_sessions: CommandLine) -> None:
    all_of_it = two_sessions.json("log", "--messages", "-n", "0")
    assert two_sessions.json("log", "--messages", "-n", "0", "--since", "1d") == all_of_it
    none = two_sessions.json("log", "--graph", "--since", "2999-01-01")
    assert (none["events"], none["next"]) == ([], None)


def test_rounds_of_every_session_are_listed(two_sessions: CommandLine) -> None:
    found = two_sessions.json("log", "--rounds")
    assert sorted(one["session_id"] for one in found) == ["one", "one", "two"]
    alone = two_sessions.json("log", "--rounds", "--session", "two")
    assert len(alone) == 1
    assert "session_id" not in alone[0]
    lines = two_sessions("log", "--rounds").out.splitlines()
    assert [line for line in lines if line in ("one", "two")] == ["two", "one"]
