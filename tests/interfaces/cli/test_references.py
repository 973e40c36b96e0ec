"""What a person may write for a checkpoint: names, ids and HEAD of every session."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.cli.command_line import CommandLine
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.requirement("RB-12")


@pytest.fixture
def two(cli: CommandLine) -> tuple[str, str]:
    """A checkpoint of one session, then one of another."""
    readme = cli.workspace / "README.md"
    first = cli.save("one works", "--session", "refactor-auth", "--name", "safe")
    readme.write_text("second\n")
    second = cli.save("the other works", "--session", "tests", "--name", "green")
    return first, second


def test_names_ids_and_times_are_found_in_whichever_session_they_are(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    first, second = two
    for reference, wanted in (
        ("safe", first),
        (first, first),
        (first[:10], first),
        ("green", second),
        ("HEAD", second),
        ("@{now}", second),
        ("initial", first),
        ("refactor-auth:HEAD", first),
        ("refactor-auth:safe", first),
        ("refa:initial", first),
        (f"tests:{second[:8]}", second),
    ):
        assert cli.json("show", reference)["id"] == wanted, reference


def test_a_restore_of_another_sessions_checkpoint_moves_the_one_head_there_is(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    first, second = two
    done = cli.json("restore", "safe", "--yes")
    assert done["restored_to"] == first
    assert (cli.workspace / "README.md").read_text() == "hello\n"
    assert cli.json("show", "HEAD")["id"] == first
    assert {one["id"]: one["is_head"] for one in cli.json("log")} == {first: True, second: False}
    cli.json("undo", "--yes")
    assert (cli.workspace / "README.md").read_text() == "second\n"


def test_a_name_that_two_sessions_have_lists_its_meanings_and_each_can_be_written(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    again = cli.save("twice the name", "--session", "tests", "--name", "safe")
    refused = cli("--json", "restore", "safe", "--yes")
    assert (refused.status, refused.error["code"]) == (4, "ambiguous_reference")
    for part in (two[0][:10], again[:10], "refactor-auth", "tests", "one works", "twice the name"):
        assert part in refused.error["message"]
    assert "tests:safe" in refused.error["hint"]
    assert cli.json("show", "tests:safe")["id"] == again
    assert cli.json("show", "refactor-auth:safe")["id"] == two[0]
    assert cli.json("show", "safe", "--session", "refactor-auth")["id"] == two[0]


def test_a_session_is_named_by_id_title_or_the_beginning_of_its_id(cli: CommandLine) -> None:
    with SessionCheckpointer.start(cli.workspace, "0123-4567", title="Fix the tests") as session:
        made = session.checkpoint("x", name="x")
    for name in ("0123-4567", "fix the tests", "Fix the tests", "0123"):
        assert cli.json("show", f"{name}:x")["id"] == made
        assert cli.json("log", "--session", name)[0]["id"] == made
    assert cli.json("log")[0]["session_title"] == "Fix the tests"


def test_the_beginning_of_two_session_ids_is_ambiguous(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    cli.save("x", "--session", "refactor-billing")
    refused = cli("--json", "show", "refactor:HEAD")
    assert refused.error["code"] == "ambiguous_reference"
    assert "refactor-auth" in refused.error["message"]
    assert "refactor-billing" in refused.error["message"]


def test_a_name_with_a_colon_is_a_name(cli: CommandLine, two: tuple[str, str]) -> None:
    made = cli.save("x", "--session", "tests", "--name", "tests:HEAD")
    cli.save("y", "--session", "tests")
    assert cli.json("show", "tests:HEAD")["id"] == made


def test_the_log_shows_every_session_and_says_whose_each_checkpoint_is(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    lines = cli("log").out.splitlines()
    assert ["{tests}" in line for line in lines] == [True, False]
    assert ["{refactor-auth}" in line for line in lines] == [False, True]
    assert ["(HEAD)" in line for line in lines] == [True, False]
    narrowed = cli("log", "--session", "refactor-auth").out.splitlines()
    assert len(narrowed) == 1
    assert "(HEAD)" in narrowed[0]
    assert "{" not in narrowed[0]


@pytest.mark.requirement("BX-8")
def test_checkpoints_of_two_sessions_are_compared_with_both_reasons(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    compared = cli.json("diff", "refactor-auth:safe", "tests:green")
    assert [change["path"] for change in compared["changes"]] == ["README.md"]
    shown = [cli.json("show", one)["reasoning"] for one in two]
    assert list(compared["reasons"].values()) == shown
    for form in ((), ("--stat",), ("--side-by-side",)):
        first, second = cli("diff", "refactor-auth:safe", "tests:green", *form).out.splitlines()[:2]
        assert first == f"from {two[0]} safe {{refactor-auth}} {shown[0]}"
        assert second == f"to   {two[1]} green {{tests}} {shown[1]}"
    patch = cli("diff", "refactor-auth:safe", "tests:green", "--patch").out
    assert patch.startswith("diff --git ")


@pytest.mark.requirement("BX-8")
def test_two_checkpoints_of_one_session_are_compared_with_both_reasons(cli: CommandLine) -> None:
    first = cli.save("callbacks", "--name", "callbacks")
    (cli.workspace / "README.md").write_text("async")
    second = cli.save("async and await")
    compared = cli.json("diff", first, second)
    assert compared["reasons"] == {"from": "callbacks", "to": "async and await"}
    assert cli("diff", first, second).out.splitlines()[:2] == [
        f"from {first} callbacks callbacks",
        f"to   {second} async and await",
    ]
    assert "reasons" not in cli.json("diff", first)


def test_what_is_noted_about_a_checkpoint_of_another_session_is_found_with_it(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    cli.json("annotate", "safe", "all tests pass here")
    assert cli.json("show", "safe")["annotations"][0]["text"] == "all tests pass here"
    cli.json("delete", "refactor-auth:safe", "--yes")
    assert [one["id"] for one in cli.json("log")] == [two[1]]


@pytest.mark.requirement("CP-8")
def test_programs_stay_within_their_session_unless_they_name_another(
    cli: CommandLine, two: tuple[str, str], tmp_path: Path
) -> None:
    with SessionCheckpointer(cli.workspace, "tests") as session:
        with pytest.raises(ValueError, match="this session has no checkpoint 'safe'"):
            session.restore("safe")
        assert session.get(two[0]) is None
        assert get_snapshot(session, "refactor-auth:safe").id == two[0]


@pytest.mark.requirement("CP-4")
def test_deleting_the_record_that_head_was_brought_by_leaves_head_where_it_is(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    cli.json("restore", "safe", "--yes")
    record = cli.json("log", "--records")[0]["id"]
    cli.json("delete", record, "--yes")
    assert cli.json("show", "HEAD")["id"] == two[0]


def test_head_is_the_checkpoint_that_the_workspace_is_at_after_an_undo_too(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    cli.json("restore", "safe", "--yes")
    cli.json("undo", "--yes")
    assert cli.json("show", "HEAD")["id"] == two[1]
    assert [one["id"] for one in cli.json("log") if one["is_head"]] == [two[1]]
    assert cli.json("diff", "HEAD")["changes"] == []
    cli.json("delete", "HEAD", "--yes")
    assert [one["id"] for one in cli.json("log")] == [two[0]]


def test_the_way_back_that_a_save_prints_can_be_typed_whatever_other_sessions_named(
    cli: CommandLine, two: tuple[str, str]
) -> None:
    for session, name in (("tests", "safe"), ("tests", "a new one"), ("x", "tests:green")):
        out = cli("checkpoint", "why", "--session", session, "--name", name).out
        words = shlex.split(out.splitlines()[-1].partition("to go back: holdfast ")[2])
        assert cli(*words).status == 0, out


def test_a_name_is_never_read_as_an_option(cli: CommandLine, two: tuple[str, str]) -> None:
    for words in (("checkpoint", "why", "--name=--yes"), ("name", "HEAD", "--", "-x")):
        error = cli("--json", *words).error
        assert "looks like an option" in error["message"]
