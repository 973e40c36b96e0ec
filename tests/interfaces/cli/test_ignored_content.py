"""No command shows the content of ignored files, captured or not; a restore brings it back."""

from __future__ import annotations

import json

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("CP-14")

WITHHELD = "content withheld: the file is ignored by your rules"
NOT_SHOWN = "not shown: ignored by your rules"


@pytest.fixture(params=["named", "included"])
def cli(cli: CommandLine, request: pytest.FixtureRequest) -> CommandLine:
    """Two checkpoints have an ignored `.env`; both differ from the one in the workspace."""
    env = cli.workspace / ".env"
    env.write_text("TOKEN=hunter1\n")
    cli.save("begin")
    if request.param == "included":
        assert cli("config", "set", "include", ".env").status == 0
        cli.save("included")
    else:
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "cwd": str(cli.workspace),
            "tool_name": "Edit",
            "tool_use_id": "t1",
            "tool_input": {"file_path": str(env), "old_string": "r1", "new_string": "r2"},
        }
        assert cli.process("hook", "claude-code", stdin=json.dumps(event)).status == 0
    cli.json("name", cli.json("log", "-n", "1")[0]["id"], "first")
    env.write_text("TOKEN=hunter2\n")
    (cli.workspace / "README.md").write_text("changed\n")
    cli.save("second", "--name", "second")
    env.write_text("TOKEN=hunter3\n")
    return cli


@pytest.mark.parametrize("sides", [("first",), ("first", "second")])
@pytest.mark.parametrize("form", [(), ("--patch",), ("--side-by-side",), ("--stat",)])
def test_a_diff_names_the_file_and_withholds_its_content(
    cli: CommandLine, sides: tuple[str, ...], form: tuple[str, ...]
) -> None:
    answer = cli("diff", *sides, *form)
    assert answer.status == 0, answer
    assert NOT_SHOWN in answer.out
    assert ".env" in answer.out
    assert "hunter" not in answer.out
    assert form == ("--stat",) or "changed" in answer.out


def test_a_diff_says_how_to_get_the_file_back(cli: CommandLine) -> None:
    first = cli.json("show", "first")["id"]
    [line] = [line for line in cli("diff", "first").out.splitlines() if NOT_SHOWN in line]
    command = f"holdfast restore {first[:10]} .env"
    assert line.endswith(command)
    assert cli(*command.split()[1:]).status == 0
    assert (cli.workspace / ".env").read_text() == "TOKEN=hunter1\n"


def test_as_data_it_is_withheld_too(cli: CommandLine) -> None:
    whole = cli("diff", "first", "--patch", "--json")
    assert "hunter" not in whole.out
    [env] = [change for change in whole.json["changes"] if change["path"] == ".env"]
    assert (env["content"], env["hunks"]) == ("withheld", [])
    [readme] = [change for change in whole.json["changes"] if change["path"] == "README.md"]
    assert readme["hunks"]


@pytest.mark.parametrize("arguments", [("why", ".env"), ("why", ".env", "--ref", "first")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_why_refuses(cli: CommandLine, arguments: tuple[str, ...], form: tuple[str, ...]) -> None:
    answer = cli(*arguments, *form)
    assert answer.status != 0
    assert WITHHELD in answer.err
    assert "hunter" not in answer.out + answer.err
    assert "holdfast restore" in answer.err


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_show_refuses(cli: CommandLine, form: tuple[str, ...]) -> None:
    answer = cli("show", "first:.env", *form)
    assert answer.status != 0
    assert WITHHELD in answer.err
    assert "hunter" not in answer.out + answer.err
    assert "holdfast restore" in answer.err
    assert cli("show", "second:README.md").out == "changed\n"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_replay_withholds_it(cli: CommandLine, form: tuple[str, ...]) -> None:
    answer = cli("replay", "--patch", *form)
    assert answer.status == 0, answer
    assert "hunter" not in answer.out
    assert NOT_SHOWN in answer.out or '"content": "withheld"' in answer.out
    assert "changed" in answer.out


def test_hunks_of_it_cannot_be_chosen(cli: CommandLine) -> None:
    answer = cli("restore", "first", ".env", "--hunk", "1", "--dry-run")
    assert answer.status != 0
    assert "ignored by your rules" in answer.err
    assert "hunter" not in answer.out + answer.err


def test_a_patch_restore_asks_for_the_whole_file(cli: CommandLine) -> None:
    with Screen(cli.workspace, "restore", "--patch", "first", ".env") as screen:
        shown = screen.read_until("[y,n,a,d,q,?]?")
        screen.type("y\n")
        shown += screen.finish()
    assert screen.status == 0, shown
    assert NOT_SHOWN in shown
    assert "hunter" not in shown
    assert (cli.workspace / ".env").read_text() == "TOKEN=hunter1\n"


def test_a_checkpoint_from_before_the_rule_is_withheld_too(cli: CommandLine) -> None:
    (cli.workspace / "notes.txt").write_text("hunter4\n")
    cli.save("with the notes")
    assert cli("show", "HEAD:notes.txt").out == "hunter4\n"
    (cli.workspace / ".holdfastignore").write_text("notes.txt\n")
    assert WITHHELD in cli("show", "HEAD:notes.txt").err
    answer = cli("diff", "first", "HEAD")
    assert "hunter" not in answer.out
    assert "notes.txt" in answer.out


def test_what_the_rules_do_not_ignore_is_shown(cli: CommandLine) -> None:
    (cli.workspace / ".holdfastignore").write_text("!.env\n")
    assert cli("show", "first:.env").out == "TOKEN=hunter1\n"
    assert "+TOKEN=hunter3" in cli("diff", "first").out
