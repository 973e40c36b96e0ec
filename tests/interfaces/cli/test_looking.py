"""`holdfast log`, `show`, `status`, `stats`: looking changes nothing and tells everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("CL-1")
def test_the_log_is_a_list_newest_first(cli: CommandLine) -> None:
    ids = [cli.save(f"state {number}") for number in range(4)]
    listed = cli.json("log")
    assert [one["id"] for one in listed] == ids[::-1]
    assert [one["is_head"] for one in listed] == [True, False, False, False]
    assert listed[0]["reasoning"] == "state 3"
    assert [one["id"] for one in cli.json("log", "-n", "2")] == ids[:1:-1]
    assert len(cli.json("log", "-n0")) == 4


def test_records_of_restores_are_listed_when_asked_for(cli: CommandLine) -> None:
    cli.save("first", "--name", "first")
    cli.json("restore", "first")
    assert [one["kind"] for one in cli.json("log")] == ["manual"]
    assert [one["kind"] for one in cli.json("log", "--records")] == ["restore", "safety", "manual"]


@pytest.mark.requirement("CL-2")
def test_in_a_pipe_the_log_is_one_plain_line_each(cli: CommandLine) -> None:
    identifier = cli.save("why\nmore of it", "--name", "here", "--confidence", "0.9")
    made = cli.json("log")[0]
    line = f"{identifier} {made['created_at']} manual 0.90 6 +6 ~0 -0 [here] why\n"
    assert cli("log").out == line
    assert cli.process("log").out == line


@pytest.mark.requirement("CL-2")
def test_text_from_outside_cannot_reach_the_terminal_as_a_command(cli: CommandLine) -> None:
    evil = "\x1b]0;title\x07\x1b[31mred \x9b2J \u202eright to left\r over"
    (cli.workspace / "a\x1b[2Jb").write_text("\x1b[2J\n")
    cli.save(evil, "--goal", evil)
    (cli.workspace / "a\x1b[2Jb").write_text("\x1b[3J\n")
    for arguments in (
        ("log",),
        ("show", "--files"),
        ("status",),
        ("diff",),
        ("diff", "--stat"),
        ("diff", "--name-only"),
        ("diff", "--side-by-side"),
        ("restore", "HEAD", "--dry-run"),
        ("restore", "HEAD", evil),
    ):
        answer = cli(*arguments)
        for character in (answer.out + answer.err).replace("\n", ""):
            assert character.isprintable(), (arguments, character)
    assert "\\x1b]0;title\\x07\\x1b[31mred \\x9b2J \\u202eright to left" in cli("log").out


@pytest.mark.requirement("CL-1")
def test_show_tells_everything_about_a_checkpoint(cli: CommandLine) -> None:
    first = cli.save("first", "--name", "one", "--tag", "a")
    cli.save("second")
    shown = cli.json("show", "one")
    assert shown["id"] == first
    assert (shown["is_head"], shown["partial"], shown["tags"]) == (False, False, ["a"])
    assert [skip["path"] for skip in shown["skipped"]] == [".env", ".holdfast"]
    assert cli.json("show")["reasoning"] == "second"
    assert cli.json("show", first[:6])["name"] == "one"


def test_show_can_list_every_path(cli: CommandLine) -> None:
    cli.save()
    entries = {entry["path"]: entry for entry in cli.json("show", "--files")["entries"]}
    assert entries["link"] == {"path": "link", "type": "symlink", "target": "README.md"}
    assert entries["empty"] == {"path": "empty", "type": "directory", "mode": "0755"}
    assert (entries["run.sh"]["mode"], entries["run.sh"]["size"]) == ("0755", 10)
    plain = cli("show", "--files").out
    assert "0755           10 run.sh\n" in plain
    assert "link            - link -> README.md\n" in plain


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
    assert "  renamed  README.md -> READ.md\n  modified run.sh  (mode)\n" in plain


@pytest.mark.requirement("CP-12")
def test_status_lists_everything_that_is_left_out_with_the_reason(cli: CommandLine) -> None:
    cli.save()
    listed = cli.json("status", "--skipped")["skipped"]
    assert {"path": ".env", "reason": "ignored", "detail": ".gitignore:1: .env"} in listed
    assert "  .env: ignored (.gitignore:1: .env)\n" in cli("status", "--skipped").out


def test_status_stores_nothing(cli: CommandLine) -> None:
    cli.save()
    (cli.workspace / "new").write_text("new")
    before = cli.json("stats")["content_blobs"]
    cli.json("status")
    assert cli.json("stats")["content_blobs"] == before


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "verb", ["log", "show", "status", "diff", "restore", "undo", "stats", "check"]
)
def test_a_directory_without_checkpoints_is_told_so_and_gets_no_store(
    cli: CommandLine, holdfast_home: Path, verb: str
) -> None:
    answer = cli(verb, "--json")
    assert answer.status == 4
    assert "has no checkpoints yet" in answer.error["message"]
    assert list(holdfast_home.iterdir()) == []
    assert not (cli.workspace / ".holdfast").exists()


@pytest.mark.requirement("CL-3")
def test_an_unknown_session_is_not_found_and_the_known_ones_are_named(cli: CommandLine) -> None:
    cli.save("x", "--session", "refactor")
    answer = cli("log", "--session", "refctor", "--json")
    assert answer.status == 4
    assert "refactor" in answer.error["hint"]


def test_checkpoints_of_the_library_are_reached_by_naming_their_session(cli: CommandLine) -> None:
    with SessionCheckpointer(cli.workspace, "agent-7") as session:
        identifier = session.checkpoint("from the library")
    answer = cli("log", "--json")
    assert answer.status == 4
    assert "agent-7" in answer.error["hint"]
    assert cli.json("status")["sessions"] == ["agent-7"]
    assert [one["id"] for one in cli.json("log", "--session", "agent-7")] == [identifier]


def test_after_its_session_was_archived_the_command_line_starts_another(cli: CommandLine) -> None:
    name = cli.json("checkpoint", "x")["session_id"]
    with SessionCheckpointer(cli.workspace, name) as session:
        session.archive()
    assert cli.json("checkpoint", "y")["session_id"] not in (name, None)


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


def test_a_history_without_checkpoints_is_empty(cli: CommandLine) -> None:
    cli.save("only", "--name", "only")
    cli.json("delete", "only", "--yes")
    assert cli.json("log") == []
    answer = cli("log")
    assert (answer.status, answer.out) == (0, "")
    assert "has no checkpoint yet" in answer.err
