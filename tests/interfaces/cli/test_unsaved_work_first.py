"""Commands that delete saved states save the unsaved changes of the workspace first."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.interfaces.cli.command_line import CommandLine
from tests.support.clocks import pass_days

pytestmark = pytest.mark.requirement("AU-4")


def records(cli: CommandLine) -> list[Any]:
    return [one for one in cli.json("log", "--records") if one["kind"] == "safety"]


def test_delete_saves_unsaved_changes_first(cli: CommandLine) -> None:
    note = cli.workspace / "note.txt"
    note.write_text("one\n")
    cli.save("one")
    note.write_text("two\n")
    cli.save("two", "--name", "two")
    note.write_text("in no checkpoint\n")
    done = cli.json("delete", "two", "--yes")
    (made,) = records(cli)
    assert done["saved_first"] == made["id"]
    assert made["reasoning"] == "Before: Deleted two"
    note.write_text("wrecked\n")
    cli.json("restore", made["id"], "--yes")
    assert note.read_text() == "in no checkpoint\n"


def test_a_person_sees_what_was_saved_first(cli: CommandLine) -> None:
    cli.save("one")
    cli.save("two", "--name", "two")
    (cli.workspace / "new.txt").write_text("unsaved\n")
    said = cli("delete", "two", "--yes").out
    assert f"Unsaved changes were saved first: {records(cli)[0]['id']}" in said


def test_where_nothing_is_unsaved_nothing_is_added(cli: CommandLine) -> None:
    (cli.workspace / "note.txt").write_text("one\n")
    cli.save("one", "--name", "one")
    cli.save("two")
    assert cli.json("delete", "one", "--yes")["saved_first"] is None
    assert cli.json("delete", "HEAD", "--yes")["saved_first"] is None
    assert records(cli) == []


def test_head_is_as_without_it_and_undo_goes_no_further_than_to_it(cli: CommandLine) -> None:
    note = cli.workspace / "note.txt"
    note.write_text("one\n")
    first = cli.save("one")
    note.write_text("two\n")
    cli.save("two", "--name", "two")
    note.write_text("three\n")
    cli.json("delete", "two", "--yes")
    assert [one["id"] for one in cli.json("log") if one["is_head"]] == [first]
    assert cli("undo", "--yes").status == 4  # to "one" it would be two steps
    assert note.read_text() == "three\n"
    note.write_text("four\n")
    cli.json("undo", "--yes")
    assert note.read_text() == "three\n"
    cli.json("redo", "--yes")
    assert note.read_text() == "four\n"


@pytest.mark.parametrize("others", [True, False], ids=["beside another", "as the only one"])
def test_deleting_a_session_saves_unsaved_changes_outside_it(
    cli: CommandLine, others: bool
) -> None:
    note = cli.workspace / "note.txt"
    if others:
        cli.save("of another", "--session", "another")
    note.write_text("one\n")
    cli.save("one", "--session", "gone")
    note.write_text("in no checkpoint\n")
    done = cli.json("sessions", "delete", "gone", "--yes")
    assert done["saved_first"] is not None
    note.write_text("wrecked\n")
    cli.json("restore", done["saved_first"], "--yes")
    assert note.read_text() == "in no checkpoint\n"


def test_cleanup_saves_unsaved_changes_first_and_still_deletes_what_it_listed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = cli.workspace / "note.txt"
    with open_workspace(cli.workspace, create=True) as opened:
        for number in range(5):
            note.write_text(f"{number}\n")
            opened.engine.save(SessionId("s"), make_intent(f"{number}"), kind=Kind.TOOL)
    cli.json("config", "set", "retention.tool", "{most = 2}")
    pass_days(monkeypatch, 2)
    note.write_text("in no checkpoint\n")
    done = cli.json("cleanup", "--yes")
    assert done["dropped"] == 2
    (made,) = records(cli)
    assert done["saved_first"] == made["id"]
    again = cli.json("cleanup", "--yes")
    assert (again["dropped"], again["saved_first"]) == (0, None)


def test_a_purge_saves_nothing_again(cli: CommandLine) -> None:
    """The unsaved changes may hold what has to go."""
    (cli.workspace / "secret.txt").write_text("one\n")
    cli.save("one")
    (cli.workspace / "secret.txt").write_text("two\n")
    cli.json("purge", "secret.txt", "--yes")
    assert records(cli) == []


def test_a_save_that_fails_does_not_keep_space_from_being_freed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save("one")
    dropped = cli.save("two", "--name", "two")
    (cli.workspace / "new.txt").write_text("unsaved\n")
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((0,) * 10))
    done = cli.json("delete", "two", "--yes")
    assert (done["deleted"], done["saved_first"]) == (dropped, None)
    assert "unsaved changes could not be saved first" in done["warnings"][0]
