"""`holdfast checkpoint`: what it stores, what it answers, what it refuses."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.api.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.engine.components import databases
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import git

KEYS = [
    "id",
    "name",
    "session_id",
    "kind",
    "created_at",
    "parent",
    "confidence",
    "files",
    "bytes",
    "changed",
    "skipped",
    "deduplicated",
    "elapsed_ms",
    "warnings",
    "remarks",
    "partial",
    "degraded",
    "git",
    "databases",
    "agents",
    "environment",
    "restore",
]


@pytest.mark.requirement("CL-1")
def test_the_json_of_a_checkpoint_has_the_promised_shape(cli: CommandLine) -> None:
    made = cli.json("checkpoint", "it works", "--name", "works", "--confidence", "0.95")
    assert list(made) == KEYS
    assert made["name"] == "works"
    assert made["kind"] == "manual"
    assert made["confidence"] == 0.95
    assert made["parent"] is None
    assert made["files"] == 6
    assert made["bytes"] == sum(
        path.stat().st_size
        for path in cli.workspace.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and path.name != ".env"
        and ".holdfast" not in path.parts
    )
    assert made["changed"] == {"added": 6, "modified": 0, "removed": 0}
    assert made["deduplicated"] is False
    assert made["partial"] is False
    moment = datetime.fromisoformat(made["created_at"])
    assert moment.tzinfo == UTC
    assert {"path": ".env", "reason": "ignored", "detail": ".gitignore:1: .env"} in made["skipped"]


def test_a_second_checkpoint_follows_the_first_and_counts_what_changed(cli: CommandLine) -> None:
    first = cli.save()
    (cli.workspace / "README.md").write_text("changed\n")
    (cli.workspace / "new.txt").write_text("new\n")
    (cli.workspace / "run.sh").unlink()
    second = cli.json("checkpoint", "more")
    assert second["parent"] == first
    assert second["changed"] == {"added": 1, "modified": 1, "removed": 1}


@pytest.mark.requirement("CL-1")
def test_the_whole_intent_is_kept(cli: CommandLine) -> None:
    reason = "first line\n\nthe long story"
    options = ["--goal", "G-1", "--task", "T-2", "--tag", "ui", "--tag", "risky"]
    cli.save(reason, *options)
    shown = cli.json("show")
    assert shown["reasoning"] == reason
    assert (shown["goal_id"], shown["task_id"], shown["tags"]) == ("G-1", "T-2", ["ui", "risky"])


def test_the_reason_can_come_from_standard_input(cli: CommandLine) -> None:
    assert cli("checkpoint", "-", stdin="from a pipe\n").status == 0
    assert cli.json("show")["reasoning"] == "from a pipe"


def test_a_confidence_may_be_a_percentage(cli: CommandLine) -> None:
    assert cli.json("checkpoint", "sure", "--confidence", "95%")["confidence"] == 0.95


def test_a_reason_that_begins_with_a_dash_goes_behind_two(cli: CommandLine) -> None:
    assert cli("checkpoint", "--not-an-option").status == 2
    cli.json("checkpoint", "--", "--not-an-option")
    assert cli.json("show")["reasoning"] == "--not-an-option"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([""], "invalid_intent", "the reason is empty"),
        ([" \n"], "invalid_intent", "the reason is empty"),
        (["two", "words"], "usage", "expected one reason, but got 2 words"),
        (["x" * 1_000_000], "invalid_intent", "the reason has 1000000 characters"),
        (["x", "--confidence", "1.5"], "invalid_intent", "not between 0.0 and 1.0"),
        (["x", "--confidence", "nan"], "invalid_intent", "not between 0.0 and 1.0"),
        (["x", "--confidence", "very"], "usage", "'very' is not a number"),
        (["x", "--name", "taken"], "invalid_intent", "already has a checkpoint named 'taken'"),
        (["x", "--name", "n" * 129], "invalid_intent", "has 129 characters"),
        (["x", "--name", "HEAD~1"], "invalid_intent", "a reserved reference"),
        (["x", "--name", "a\x1b[31mb"], "invalid_intent", "control characters"),
        (["x", "--tag", "a\nb"], "invalid_intent", "control characters"),
        (["x", "--session", "a\nb"], "usage", "control characters"),
    ],
)
def test_a_refused_request_says_why_and_stores_nothing(
    cli: CommandLine, arguments: list[str], code: str, said: str
) -> None:
    cli.save("before", "--name", "taken")
    before = cli.json("log")
    answer = cli("checkpoint", *arguments, "--json")
    assert answer.status == 2
    assert answer.error["code"] == code
    assert said in answer.error["message"]
    assert cli.json("log") == before


def test_a_megabyte_of_reason_on_standard_input_is_refused(cli: CommandLine) -> None:
    answer = cli("checkpoint", "-", stdin="x" * 1_000_000)
    assert answer.status == 2
    assert "1000000 characters; the limit is 100000" in answer.err


@pytest.mark.requirement("CL-3")
def test_an_unreadable_file_makes_it_done_in_part_and_is_listed(
    cli: CommandLine, ordinary_permissions: None
) -> None:
    (cli.workspace / "secret").touch(0o000)
    answer = cli("checkpoint", "x", "--json")
    assert answer.status == 3
    assert answer.json["partial"] is True
    unread = [skip for skip in answer.json["skipped"] if skip["path"] == "secret"]
    assert [skip["reason"] for skip in unread] == ["unreadable"]
    plain = cli("checkpoint", "x")
    assert plain.status == 3
    assert "1 path could not be read properly:\n  secret: unreadable" in plain.out


def test_the_plain_answer_has_the_whole_id_and_what_was_left_out(cli: CommandLine) -> None:
    answer = cli("checkpoint", "x")
    made = cli.json("log")[0]["id"]
    first, second, recorded, third = answer.out.splitlines()
    assert first.startswith(f"✓ Saved {made}: 6 files, 6 added, ")
    assert second == "  left out: 1 ignored (list: holdfast status --skipped)"
    assert recorded.startswith("  environment: ")
    assert third == f"  to go back: holdfast restore {made[:10]}"
    assert answer.err == ""


@pytest.mark.requirement("CL-1")
def test_without_a_session_the_first_use_makes_one_and_later_ones_use_it(cli: CommandLine) -> None:
    first = cli.json("checkpoint", "x")["session_id"]
    assert first.startswith("cli-2")
    assert cli.json("checkpoint", "y")["session_id"] == first


def test_a_named_session_is_apart_from_the_current_one(cli: CommandLine) -> None:
    mine = cli.json("checkpoint", "in the current one")["session_id"]
    cli.save("in another", "--session", "other")
    assert [one["reasoning"] for one in cli.json("log", "--session", mine)] == [
        "in the current one"
    ]
    assert [one["reasoning"] for one in cli.json("log", "--session", "other")] == ["in another"]


def test_a_command_below_the_workspace_works_on_the_workspace(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "src" / "more.py").write_text("more\n")
    below = CommandLine(cli.workspace / "src")
    made = below.json("checkpoint", "from below")
    assert made["changed"] == {"added": 1, "modified": 0, "removed": 0}
    assert below.json("status")["workspace"] == str(cli.workspace)


def test_an_unknown_directory_is_a_workspace_of_its_own(cli: CommandLine) -> None:
    below = CommandLine(cli.workspace / "src")
    assert below.json("checkpoint", "only this")["files"] == 1


def test_the_home_directory_that_the_user_insisted_on_does_not_take_over_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "file").write_text("x")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "stores"))
    CommandLine(tmp_path / "home").json("checkpoint", "all of it", "--force")
    CommandLine(project).json("checkpoint", "only this")
    assert CommandLine(project).json("status")["workspace"] == str(project)


def test_a_reason_that_is_not_utf_8_is_stored_readably(cli: CommandLine) -> None:
    cli.save(os.fsdecode(b"caf\xe9"))
    assert cli.json("show")["reasoning"] == "caf\\udce9"


@pytest.mark.requirement("SE-12", "CL-1")
def test_with_reuse_a_checkpoint_of_a_moment_ago_serves_as_well(cli: CommandLine) -> None:
    first = cli.json("checkpoint", "one")
    assert first["deduplicated"] is False
    again = cli.json("checkpoint", "two", "--reuse")
    assert (again["id"], again["deduplicated"]) == (first["id"], True)
    answer = cli("checkpoint", "three", "--reuse")
    assert answer.out.startswith(f"✓ Nothing changed since {first['id']}")
    assert cli.json("checkpoint", "four")["deduplicated"] is False
    (cli.workspace / "README.md").write_text("changed\n")
    assert cli.json("checkpoint", "five", "--reuse")["deduplicated"] is False


@pytest.mark.requirement("CL-8", "GT-1")
def test_the_answer_names_what_was_saved_besides_files_and_the_way_back(cli: CommandLine) -> None:
    git(cli.workspace, "init", "-q", "-b", "trunk")
    git(cli.workspace, "add", "README.md")
    git(cli.workspace, "commit", "-qm", "x")
    commit = (cli.workspace / ".git" / "refs" / "heads" / "trunk").read_text()[:7]
    out = cli("checkpoint", "with git").out
    made = cli.json("log")[0]["id"]
    assert f"\n  git: trunk@{commit}" in out
    assert f"\n  to go back: holdfast restore {made[:10]}\n" in out
    assert "git data" not in out
    assert "to go back: holdfast restore before" in cli("save", "again", "--name", "before").out


@pytest.mark.requirement("CL-8")
def test_the_answer_lists_databases_and_the_command_that_restores(cli: CommandLine) -> None:
    make_database(cli.workspace / "data/app.db")
    (cli.workspace / "not-one.db").write_text("plain text\n")
    made = cli.json("checkpoint", "with a database", "--name", "the good one")
    size = (cli.workspace / "data/app.db").stat().st_size
    sqlite = {"type": "sqlite", "name": "data/app.db", "bytes": size, "tables": None, "rows": None}
    assert made["databases"] == [sqlite]
    assert made["restore"] == "holdfast restore 'the good one'"
    assert "\n  databases: data/app.db (SQLite, 8.2 kB)\n" in cli("checkpoint", "again").out


@pytest.mark.requirement("CL-8", "PF-7")
def test_databases_are_looked_for_only_where_a_file_is_named_like_one(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.workspace / "src/deep").mkdir(parents=True)
    (cli.workspace / "src/deep/main.py").write_text("pass")
    searched: list[bool] = []
    real = databases._sqlite_files

    def noted(vault: Any, checkpoint: Any) -> Any:
        searched.append(True)
        return real(vault, checkpoint)

    monkeypatch.setattr(databases, "_sqlite_files", noted)
    for reason in ("first", "again"):
        assert cli.json("checkpoint", reason)["databases"] == []
    assert searched == []
    for suffix in (".db", ".db3", ".sqlite", ".sqlite3"):
        path = cli.workspace / f"src/deep/one{suffix}"
        make_database(path)
        for reason in ("with it", "again"):
            found = cli.json("checkpoint", reason)["databases"]
            assert [one["name"] for one in found] == [f"src/deep/one{suffix}"]
        path.unlink()


@pytest.mark.requirement("CL-8", "AG-1")
def test_the_answer_names_agents_whose_sessions_have_not_ended(cli: CommandLine) -> None:
    with open_workspace(cli.workspace, create=True) as opened:
        for agent in ("claude-code", "codex"):
            opened.sessions.start(SessionId(f"{agent}-1"), agent=agent)
        opened.sessions.end(SessionId("codex-1"))
    made = cli.json("checkpoint", "now", "--session", "claude-code-1")
    assert made["agents"] == [
        {"session_id": "claude-code-1", "agent": "claude-code", "process": None}
    ]
    said = cli("checkpoint", "again", "--session", "claude-code-1").out
    assert "\n  agents: 1 active: claude-code (claude-code-1)\n" in said


@pytest.mark.requirement("CL-8")
def test_without_a_reason_one_is_generated_from_what_changed(cli: CommandLine) -> None:
    cli.json("checkpoint")
    assert cli.json("show")["reasoning"] == "First checkpoint"
    for name in ("a", "b", "c", "d"):
        (cli.workspace / f"new-{name}.txt").write_text(name)
    (cli.workspace / "README.md").write_text("changed\n")
    (cli.workspace / "run.sh").unlink()
    made = cli.json("checkpoint", "--name", "here")
    assert cli.json("show")["reasoning"] == (
        "Changed README.md; added new-a.txt, new-b.txt, new-c.txt and 1 more; removed run.sh"
    )
    assert made["name"] == "here"
    cli.json("checkpoint")
    assert cli.json("show")["reasoning"] == f"No changes since {made['id'][:10]}"


def make_database(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table one (x)")
        database.commit()
