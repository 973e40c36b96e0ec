"""`holdfast status`: the state of the work, what changed, what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import git


@pytest.mark.requirement("CL-1", "CP-8")
def test_status_names_the_newest_of_the_other_sessions(cli: CommandLine) -> None:
    cli.save("mine")
    for name in ("one", "two", "three", "four"):
        cli.save("theirs", "--session", name)
    assert "(4 other sessions: four, three, two, …; 5 checkpoints in all)\n" in cli("status").out
    assert "(4 other sessions: " in cli("status", "--session", "two").out
    assert "two" not in cli("status", "--session", "two").out.partition("(4 other")[2].split(")")[0]


@pytest.mark.requirement("CL-1")
def test_status_tells_where_the_work_stands(cli: CommandLine, holdfast_home: Path) -> None:
    identifier = cli.save("the good state", "--name", "good")
    (cli.workspace / "README.md").rename(cli.workspace / "READ.md")
    (cli.workspace / "run.sh").chmod(0o644)
    status = cli.json("status")
    assert status["workspace"] == str(cli.workspace)
    assert Path(status["store"]).is_relative_to(holdfast_home)
    assert status["head"]["id"] == identifier
    assert status["changed"] == {"added": 0, "removed": 0, "modified": 1, "renamed": 1}
    assert status["changes"] == [
        {"path": "READ.md", "change": "renamed", "old_path": "README.md"},
        {"path": "run.sh", "change": "modified"},
    ]
    assert status["skipped_counts"] == {"ignored": 1, "holdfast's own data": 1}
    assert 0 < status["store_bytes"] < status["budget_bytes"] == 5_000_000_000
    plain = cli("status").out
    assert f"HEAD      {identifier} good, " in plain
    assert "unsaved   1 modified, 1 renamed: READ.md, run.sh  (list: " in plain
    for label in ("workspace", "session", "HEAD", "unsaved", "last", "agents", "next"):
        assert f"{label:<10}" in plain


@pytest.mark.requirement("CL-8")
def test_status_says_what_happened_last_and_what_to_do_next(cli: CommandLine) -> None:
    git(cli.workspace, "init", "-q", "-b", "trunk")
    git(cli.workspace, "add", "README.md")
    git(cli.workspace, "commit", "-qm", "x")
    commit = (cli.workspace / ".git" / "refs" / "heads" / "trunk").read_text()[:7]
    identifier = cli.save("the good state")
    calm = cli.json("status")
    assert (calm["last"], calm["agents"]) == (None, [])
    assert calm["git"].startswith(f"trunk@{commit}")
    assert calm["next"].startswith("protect an agent: holdfast install")
    (cli.workspace / "README.md").write_text("wrecked\n")
    lines = cli("status").out.splitlines()
    assert len([line for line in lines if not line.startswith("left out")]) == 8
    short = identifier[:10]
    assert f'last      the unsaved changes since checkpoint {short} "the good state"' in lines[5]
    assert lines[5].endswith("undo it: holdfast undo --yes")
    assert lines[-1].startswith("next      holdfast checkpoint")
    assert cli("undo", "--yes").status == 0
    assert (cli.workspace / "README.md").read_text() == "hello\n"


@pytest.mark.requirement("CL-8")
def test_status_says_whether_the_hooks_of_an_agent_would_run(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cli.save()
    assert cli("install", "claude-code", "--project").status == 0
    assert "agents    claude-code protected" in cli("status").out
    settings = cli.workspace / ".claude" / "settings.json"
    known = re.search(r"[^\s\"']*holdfast hook", settings.read_text())
    assert known is not None
    settings.write_text(settings.read_text().replace(known[0], "/nowhere/holdfast hook"))
    [one] = cli.json("status")["agents"]
    assert (one["agent"], one["protected"]) == ("claude-code", False)
    out = cli("status").out
    assert "agents    claude-code NOT protected: " in out
    assert "next      protect claude-code: holdfast install claude-code --project\n" in out


@pytest.mark.requirement("CL-8")
def test_the_store_is_shown_when_it_matters(cli: CommandLine) -> None:
    cli.save()
    assert "store  " not in cli("status").out
    used = cli.json("status")["store_bytes"]
    cli.json("config", "set", "budget", str(used + 1000))
    assert "store     " in cli("status").out


@pytest.mark.requirement("CP-12")
def test_status_lists_everything_that_is_left_out_with_the_reason(cli: CommandLine) -> None:
    cli.save()
    listed = cli.json("status", "--skipped")["skipped"]
    assert {"path": ".env", "reason": "ignored", "detail": ".gitignore:1: .env"} in listed
    assert "  .env: ignored (.gitignore:1: .env)\n" in cli("status", "--skipped").out


@pytest.mark.requirement("CP-12", "CL-2")
def test_a_file_that_is_too_large_is_listed_with_a_size_that_people_read(cli: CommandLine) -> None:
    cli.json("config", "set", "max_file_size", "1000")
    (cli.workspace / "large").write_bytes(bytes(1_234_567))
    cli.save()
    shown = cli("status", "--skipped").out
    assert "  large: larger than max_file_size (1.2 MB)\n" in shown
    listed = cli.json("status", "--skipped")["skipped"]
    assert [skip["detail"] for skip in listed if skip["path"] == "large"] == ["1234567 bytes"]


@pytest.mark.requirement("CP-12")
def test_before_the_first_checkpoint_it_says_when_left_out_paths_are_listed(
    cli: CommandLine,
) -> None:
    assert "after the first checkpoint" in cli("status", "--skipped").err
    assert "after the first checkpoint" not in cli("status").err


def test_status_stores_nothing(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "new").write_text("new")
    before = cli.json("stats")["content_blobs"]
    cli.json("status")
    assert cli.json("stats")["content_blobs"] == before


@pytest.mark.requirement("CP-12")
def test_as_many_paths_are_listed_as_are_counted(cli: CommandLine) -> None:
    (cli.workspace / ".gitignore").write_text(".env\n*.log\n")
    for name in ("a.log", "b.log"):
        (cli.workspace / name).touch()
    cli.save()
    answer = cli("status", "--skipped")
    *_, words, _, one, two, three = answer.out.splitlines()
    assert words == "left out  3 ignored"
    assert "to save an ignored file: holdfast config add include FILE" in answer.err
    assert [line.split(":")[0].strip() for line in (one, two, three)] == [".env", "a.log", "b.log"]


@pytest.mark.requirement("CL-8")
def test_a_file_that_is_only_unreadable_is_not_called_deleted(
    cli: CommandLine, ordinary_permissions: None
) -> None:
    cli.save()
    (cli.workspace / "README.md").chmod(0)
    assert "deleted" not in cli.json("status")["next"]
    (cli.workspace / "run.sh").unlink()
    assert cli.json("status")["next"].startswith("restore 1 deleted file: ")


@pytest.mark.requirement("CL-8", "CP-12")
def test_a_file_that_is_left_out_from_now_on_is_not_called_deleted(cli: CommandLine) -> None:
    notes = cli.workspace / "notes" / "note.txt"
    notes.parent.mkdir()
    notes.write_text("there\n")
    cli.save()
    with (cli.workspace / ".gitignore").open("a") as rules:
        rules.write("notes/\n")
    assert "deleted" not in cli.json("status")["next"]
