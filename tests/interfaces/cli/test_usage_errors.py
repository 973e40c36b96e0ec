"""What was typed in a wrong way is named, and the right way is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine, run

NOT_UTF8 = os.fsdecode(b"a\xffb")


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        (
            ["restore", "--dryrun"],
            "unknown option for restore: --dryrun",
            "did you mean --dry-run?",
        ),
        (["restore", "--dry"], "unknown option for restore: --dry", "did you mean --dry-run?"),
        (
            ["checkpoint", "x", "--nam=y"],
            "unknown option for checkpoint: --nam",
            "did you mean --name?",
        ),
        (["status", "--foo"], "unknown option for status: --foo", "see: holdfast status --help"),
        (["log", "--nonsense", "3"], "unknown option for log: --nonsense", "holdfast log --help"),
        (
            ["--sesion", "x", "log"],
            "unknown option for holdfast: --sesion",
            "did you mean --session?",
        ),
        (["-x"], "unknown option for holdfast: -x", "holdfast help all"),
        (["-C"], "-C needs a value: DIR", "holdfast -C DIR"),
        (["--session"], "--session needs a value: ID", "holdfast help all"),
        (["status", "-C"], "-C needs a value: DIR", "holdfast status --help"),
        (["log", "-n"], "-n needs a value: N", "holdfast log --help"),
        (["checkpoint", "x", "--name"], "--name needs a value: NAME", "holdfast checkpoint --help"),
        (["log", "--json=1"], "--json takes no value", "holdfast log --help"),
        (["diff", "--stat", "-p"], "--patch cannot be used with --stat", "choose one"),
        (
            ["stats", "x"],
            "unexpected argument 'x': stats takes no arguments",
            "holdfast stats --help",
        ),
        (["stats", "--", "x"], "unexpected argument 'x': stats takes no arguments", "stats --help"),
        (["help", "nosuch"], "unknown command or topic: 'nosuch'", "holdfast help all"),
        (["--json"], "missing command", "holdfast --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_was_not_understood_is_named_with_what_was_probably_meant(
    typed: list[str], message: str, hint: str
) -> None:
    answer = run(*typed)
    assert (answer.status, answer.out) == (2, "")
    if "--json" not in typed:
        assert answer.err.startswith(f"error: {message}\nhint: ")
        assert hint in answer.err


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["undo", "redo"])
@pytest.mark.parametrize("typed", [("--steps", "2"), ("--steps=2",), ("2",), ("-n", "2"), ("-2",)])
def test_a_number_of_steps_is_answered_with_how_to_go_further(
    verb: str, typed: tuple[str, ...]
) -> None:
    error = run(verb, *typed, "--json").error
    assert error["message"] == f"{verb} takes no number: it goes one step at a time"
    assert f"holdfast {verb}" in error["hint"]
    assert "holdfast restore" in error["hint"]


@pytest.mark.requirement("CL-3", "RB-8")
@pytest.mark.parametrize("typed", ["--steps", "--ye", "--yess", "--forced", "--forc", "--yas"])
@pytest.mark.parametrize("verb", ["undo", "restore", "delete"])
def test_what_skips_a_question_is_never_guessed(verb: str, typed: str) -> None:
    hint = run(verb, typed, "--json").error["hint"]
    assert "--yes" not in hint
    assert "--force" not in hint


def test_help_on_help_is_the_page_of_all_commands() -> None:
    assert run("help", "help") == run("help") == run("--help")


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("option", ["--name", "--tag", "--goal", "--task", "--session"])
def test_an_option_that_is_not_utf_8_is_reported_as_such(cli: CommandLine, option: str) -> None:
    answer = cli("checkpoint", "x", option, NOT_UTF8)
    assert answer.status == 2
    assert answer.err.startswith(f"error: {option} is not UTF-8 text: 'a\\xffb'\n")


@pytest.mark.requirement("CL-3")
def test_what_is_not_utf_8_is_shown_byte_by_byte_in_messages(cli: CommandLine) -> None:
    cli.save()
    assert "has no checkpoint 'a\\xffb'" in cli("show", NOT_UTF8).err
    assert "unknown command: 'a\\xffb'" in cli(NOT_UTF8).err


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (("restore", "README.md"), "holdfast restore HEAD README.md"),
        (("restore", "src/app.py"), "holdfast restore HEAD src/app.py"),
        (("show", "README.md"), "holdfast show HEAD:README.md"),
        (("restore", "a file"), "holdfast restore HEAD 'a file'"),
    ],
    ids=" ".join,
)
def test_a_path_where_a_checkpoint_is_expected_is_recognised(
    cli: CommandLine, typed: tuple[str, ...], hint: str
) -> None:
    (cli.workspace / "a file").touch()
    cli.save()
    (cli.workspace / "src" / "app.py").unlink()
    answer = cli(*typed, "--json")
    assert answer.status == 4
    assert answer.error["code"] == "unknown_reference"
    assert answer.error["hint"].endswith(f"write: {hint}")


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("head", "the newest is HEAD, the one before it HEAD~1"),
        ("HEAD^2", "the newest is HEAD, the one before it HEAD~1"),
        ("latest", "the newest is HEAD"),
        ("first", "the first checkpoint is called initial"),
        ("2 hours ago", "write a time like this: '@{2 hours ago}'"),
        ("@{2", "quote it, so that it stays one argument"),
        ("befor", "did you mean 'before'?"),
        ("nobody", "list checkpoints: holdfast log"),
    ],
)
def test_a_checkpoint_that_there_is_not_gets_a_guess(
    cli: CommandLine, typed: str, hint: str
) -> None:
    cli.save("x", "--name", "before")
    answer = cli("show", typed, "--json")
    assert answer.status == 4
    assert hint in answer.error["hint"]


@pytest.mark.requirement("CP-3")
@pytest.mark.parametrize(
    ("typed", "number"), [("HEAD^", 1), ("HEAD~", 1), ("HEAD^^", 0), ("HEAD~1^", 0), ("HEAD~~", 0)]
)
def test_steps_back_may_be_written_as_git_has_them(
    cli: CommandLine, typed: str, number: int
) -> None:
    made = [cli.save(str(index)) for index in range(3)]
    assert cli.json("show", typed)["id"] == made[number]


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("ends", [(), ("HEAD",), ("HEAD", "HEAD")], ids=len)
def test_a_difference_of_a_path_that_neither_side_has_is_not_found(
    cli: CommandLine, ends: tuple[str, ...]
) -> None:
    cli.save()
    answer = cli("diff", *ends, "--json", "--", "nosuch")
    assert answer.status == 4
    assert answer.error["message"] == "'nosuch' is on neither side of the comparison"
    assert cli.json("diff", *ends, "--", "src")["changes"] == []


@pytest.mark.requirement("CL-3", "CP-12")
def test_a_difference_of_a_path_that_is_left_out_says_why(cli: CommandLine) -> None:
    cli.save()
    answer = cli("diff", "--json", "--", ".env")
    assert answer.status == 4
    assert answer.error["message"] == "'.env' is on neither side: ignored (.gitignore:1: .env)"


@pytest.mark.requirement("CL-2")
def test_paths_are_shown_as_they_can_be_typed_where_one_stands(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    for name in ("README.md", "src/app.py"):
        (cli.workspace / name).write_text("changed\n")
    monkeypatch.chdir(cli.workspace / "src")
    shown = run("diff", "--name-only").out.split()
    assert shown == ["../README.md", "app.py"]
    assert "2 modified: ../README.md, app.py" in run("status").out
    for line in ("modified ../README.md\n", "modified app.py\n"):
        assert line in run("diff").out
    assert "../README.md |" in run("diff", "--stat").out
    assert "  restore  ../README.md\n" in run("restore", "HEAD", "--dry-run").out
    assert "../README.md\n" in run("show", "--files").out
    assert "../.env: ignored" in run("status", "--skipped").out
    assert run("restore", "HEAD", *shown, "--yes").status == 0
    assert (cli.workspace / "README.md").read_text() == "hello\n"


@pytest.mark.requirement("RB-7")
def test_paths_of_json_are_those_of_the_workspace_and_accepted_from_anywhere(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()
    (cli.workspace / "README.md").write_text("changed\n")
    monkeypatch.chdir(cli.workspace / "src")
    [change] = run("diff", "--json").json["changes"]
    assert change["path"] == "README.md"
    done = run("restore", "HEAD", f":/{change['path']}", "--json").json
    assert [step["path"] for step in done["operations"]] == ["README.md"]
    assert run("restore", "HEAD", ":/../x", "--json").status == 2


def test_a_directory_given_with_c_is_where_paths_are_shown_from(
    cli: CommandLine, project: Path
) -> None:
    cli.save()
    (project / "README.md").write_text("changed\n")
    assert run("diff", "--name-only", "-C", str(project / "src")).out == "../README.md\n"
