"""`holdfast why`: what it answers, to people and to programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("BX-1", "CL-1")


@pytest.fixture
def written(cli: CommandLine) -> list[str]:
    """Two checkpoints of a file, and a line that is in none."""
    app = cli.workspace / "src" / "app.py"
    first = cli.save("how it began")
    app.write_text("def main():\n    wait()\n    return 1\n")
    second = cli.save("make it wait", "--name", "waiting")
    app.write_text("def main():\n    wait()\n    return 1\n# end\n")
    return [first, second]


def test_the_json_has_the_promised_shape(cli: CommandLine, written: list[str]) -> None:
    found = cli.json("why", "src/app.py")
    assert list(found) == [
        "path",
        "of",
        "total_lines",
        "lines",
        "origins",
        "warnings",
        "elapsed_ms",
    ]
    assert (found["path"], found["of"], found["total_lines"]) == ("src/app.py", None, 4)
    assert [(line["line"], line["origin"]) for line in found["lines"]] == [
        (1, 0),
        (2, 1),
        (3, 0),
        (4, 2),
    ]
    assert [line["text"] for line in found["lines"]][1] == "    wait()"
    initial, wrote, unsaved = found["origins"]
    assert list(initial) == [
        "state",
        "path",
        "checkpoint",
        "before",
        "session_id",
        "reasoning",
        "tool_calls",
        "tool_use_id",
        "message",
        "prompt",
        "own",
        "by_hand",
        "others",
    ]
    assert (initial["state"], initial["checkpoint"]["id"]) == ("initial", written[0])
    assert (wrote["state"], wrote["checkpoint"]["id"]) == ("written", written[1])
    assert (wrote["before"], wrote["reasoning"]) == (written[0], "make it wait")
    assert (unsaved["state"], unsaved["checkpoint"]) == ("unsaved", None)


def test_people_see_each_line_with_its_reason(cli: CommandLine, written: list[str]) -> None:
    lines = cli("why", "src/app.py").out.splitlines()
    assert lines[0].startswith(f"{written[0]}  how it began")
    assert lines[0].endswith("  1  def main():")
    assert lines[1].startswith(f"{written[1]}  make it wait")
    assert lines[3].startswith("not saved yet")
    assert lines[3].endswith("  4  # end")


def test_one_line_is_shown_in_full(cli: CommandLine, written: list[str]) -> None:
    told = cli("why", "src/app.py:2").out
    assert told.startswith("2      wait()\n\n")
    assert f"first in   {written[1]} waiting" in told
    assert f"not yet in {written[0]}" in told
    assert "why        make it wait" in told
    assert "older than the history" in cli("why", "src/app.py:1").out
    assert "not saved yet" in cli("why", "src/app.py:4").out
    assert cli.json("why", "src/app.py:2")["lines"] == [
        {"line": 2, "text": "    wait()", "origin": 0}
    ]


def test_an_older_state_is_asked_about_by_reference(cli: CommandLine, written: list[str]) -> None:
    (cli.workspace / "src" / "app.py").unlink()
    assert cli("why", "src/app.py").status == 4
    found = cli.json("why", "src/app.py", "--ref", "HEAD")
    assert (found["of"], found["total_lines"]) == (written[1], 3)
    assert "make it wait" in cli("why", "src/app.py:2", "--ref", "waiting").out
    assert cli("why", "src/app.py", "--ref", "nowhere").status == 4


def test_a_name_that_ends_like_a_line_number_is_a_name(cli: CommandLine) -> None:
    (cli.workspace / "a:2").write_text("odd\n")
    (cli.workspace / "a").write_text("1\n2\n")
    cli.save("both")
    assert cli.json("why", "a:2")["path"] == "a:2"
    assert cli.json("why", "a:1")["path"] == "a"
    assert cli.json("why", "a:2:1")["path"] == "a:2"
    (cli.workspace / "a:2").unlink()
    assert cli.json("why", "a:2")["lines"][0]["text"] == "2"
    assert cli.json("why", "a:2", "--ref", "HEAD")["path"] == "a:2"


def test_paths_are_relative_to_where_one_stands(cli: CommandLine, written: list[str]) -> None:
    inside = CommandLine(cli.workspace / "src")
    assert inside.json("why", "app.py:2")["path"] == "src/app.py"
    assert inside.json("why", ":/src/app.py")["path"] == "src/app.py"


def test_wrong_requests_say_what_is_wrong(cli: CommandLine, written: list[str]) -> None:
    for words, status in (
        ((), 2),
        (("src/app.py", "README.md"), 2),
        (("src/app.py:0",), 2),
        (("src/app.py:99",), 2),
        (("src/app.py:x",), 4),
        (("src/app.py:-1",), 4),
        ((".",), 2),
        ((".:1",), 2),
        (("../outside",), 2),
        (("src",), 5),
        (("link",), 5),
        (("data.bin",), 5),
        (("nowhere.py:3",), 4),
        (("a" * 5000,), 5),
    ):
        answer = cli("why", *words)
        assert answer.status == status, (words, answer.err)
        assert "Traceback" not in answer.err


def test_a_line_cannot_play_tricks_on_a_terminal(cli: CommandLine) -> None:
    (cli.workspace / "odd").write_bytes(b"\x1b[31mred \xff\n")
    cli.save("\x1b[31mred")
    for words in (("why", "odd"), ("why", "odd:1")):
        assert "\x1b" not in cli(*words).out
    assert cli.json("why", "odd")["lines"][0]["text"] == "\x1b[31mred \udcff"


def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    assert CommandLine(tmp_path)("why", "x").status == 4


@pytest.mark.parametrize("paths", [["notes.txt"], []], ids=["one file", "everything"])
def test_a_line_restored_from_another_session_is_not_called_unsaved(
    cli: CommandLine, paths: list[str]
) -> None:
    notes = cli.workspace / "notes.txt"
    notes.write_text("theirs\n")
    theirs = cli.save("their state", "--session", "theirs")
    notes.write_text("mine\n")
    cli.save("my state", "--session", "mine")
    cli.json("restore", theirs, *paths, "--yes")
    with notes.open("a") as file:
        file.write("new\n")
    first, second = cli("why", "notes.txt").out.splitlines()
    assert first.startswith(f"{theirs}  their state")
    assert second.startswith("not saved yet")
    first, second = cli("why", "notes.txt", "--session", "mine").out.splitlines()
    assert first.startswith("saved by another session")
    assert "their state" not in first
    assert second.startswith("not saved yet")
    assert "saved by another session" in cli("why", "notes.txt:1", "--session", "mine").out
    states = [one["state"] for one in cli.json("why", "notes.txt", "--session", "mine")["origins"]]
    assert states == ["elsewhere", "unsaved"]
