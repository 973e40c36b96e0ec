"""Which session a command works on, what commands say where there is none, and their list."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.cli.command_line import CommandLine, command
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.raw_search import places_of


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["log", "show", "diff", "restore", "undo", "stats", "check"])
def test_a_directory_without_checkpoints_is_reported_so_and_gets_no_store(
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


VERBS = {
    "log": (),
    "show": (),
    "status": (),
    "diff": (),
    "restore": ("HEAD", "--yes"),
    "undo": (),
    "redo": (),
    "attempt": ("why", "--", "true"),
    "annotate": ("HEAD", "text"),
    "search": ("text",),
    "approve": (),
    "reset": ("--yes",),
    "delete": ("HEAD", "--yes"),
    "accept": (),
    "export": ("out.holdfast",),
    "replay": (),
    "why": ("README.md",),
    "stats": (),
    "purge": ("HEAD", "--yes"),
}


@pytest.mark.requirement("CL-3", "CP-8")
@pytest.mark.parametrize("verb", VERBS)
def test_a_session_that_is_not_there_is_an_error_that_names_the_near_ones_and_makes_none(
    cli: CommandLine, verb: str
) -> None:
    cli.save("x", "--session", "refactor")
    cli.save("y", "--session", "zebra")
    answer = cli("--session", "refctor", "--json", verb, *VERBS[verb])
    assert (answer.status, answer.error["code"]) == (4, "not_found")
    assert "unknown session: 'refctor'" in answer.error["message"]
    assert "refactor" in answer.error["hint"]
    assert "zebra" not in answer.error["hint"]
    assert cli.json("status", "--session", "zebra")["sessions"] == ["refactor", "zebra"]


@pytest.mark.requirement("CL-3")
def test_an_attempt_in_a_named_session_makes_neither_a_store_nor_runs(
    cli: CommandLine, holdfast_home: Path
) -> None:
    answer = cli("--session", "typo", "--json", "attempt", "why", "--", "touch", "ran")
    assert answer.status == 4
    assert list(holdfast_home.iterdir()) == []
    assert not (cli.workspace / "ran").exists()


@pytest.mark.requirement("CP-9")
def test_an_attempt_without_a_session_begins_the_current_one(cli: CommandLine) -> None:
    assert cli("attempt", "why", "--", "true").status == 0
    assert len(cli.json("status")["sessions"]) == 1


@pytest.mark.requirement("RB-12")
def test_checkpoints_of_the_library_are_listed_and_found_without_naming_their_session(
    cli: CommandLine,
) -> None:
    with SessionCheckpointer(cli.workspace, "agent-7") as session:
        identifier = session.checkpoint("from the library", name="safe")
    assert [one["id"] for one in cli.json("log")] == [identifier]
    assert cli.json("show", "safe")["id"] == identifier
    assert cli.json("status")["sessions"] == ["agent-7"]
    assert [one["id"] for one in cli.json("log", "--session", "agent-7")] == [identifier]


def test_after_its_session_was_archived_the_command_line_starts_another(cli: CommandLine) -> None:
    name = cli.json("checkpoint", "x")["session_id"]
    with SessionCheckpointer(cli.workspace, name) as session:
        session.archive()
    assert cli.json("checkpoint", "y")["session_id"] not in (name, None)


@pytest.mark.requirement("SE-13")
def test_sessions_are_listed_with_what_each_is_and_how_far_it_got(cli: CommandLine) -> None:
    with SessionCheckpointer.start(
        cli.workspace, "a1", title="Fix the login", agent="codex"
    ) as session:
        (cli.workspace / "README.md").write_text("1")
        session.checkpoint("one")
    cli.save("mine", "--session", "b2")
    newest, older = cli.json("sessions")
    assert (newest["id"], newest["checkpoints"], newest["has_head"]) == ("b2", 1, True)
    assert {key: older[key] for key in ("id", "title", "agent", "status", "checkpoints")} == {
        "id": "a1",
        "title": "Fix the login",
        "agent": "codex",
        "status": "active",
        "checkpoints": 2,
    }
    assert (older["unapproved"], older["has_head"], older["is_current"]) == (2, False, True)
    assert older["last_activity"] < newest["last_activity"]
    lines = cli("sessions").out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("a1 active codex 2 2 ")
    assert lines[1].endswith(" Fix the login")
    with Screen(cli.workspace, "sessions", columns=140) as screen:
        shown = screen.plain(screen.finish())
    assert shown[0].split()[:3] == ["title", "agent", "status"]
    assert shown[1].startswith("▶")
    assert "Fix the login" in shown[2]
    with Screen(cli.workspace, "sessions", columns=50) as screen:
        narrow = screen.plain(screen.finish())
    assert all(len(line) <= 50 for line in narrow)
    assert "Fix the login" in "".join(narrow)


@pytest.mark.requirement("SE-13")
def test_a_session_is_renamed_ended_and_archived_by_whatever_names_it(cli: CommandLine) -> None:
    cli.save("x", "--session", "0123-4567")
    assert cli.json("sessions", "rename", "0123", "The first")["title"] == "The first"
    assert "The first" in cli("sessions").out
    assert cli.json("log")[0]["session_title"] == "The first"
    assert cli.json("sessions", "end", "the first")["status"] == "ended"
    assert cli.json("sessions")[0]["status"] == "ended"
    assert cli("sessions", "archive", "The first").status == 0
    assert cli.json("sessions")[0]["status"] == "archived"
    for wrong in (("rename", "0123"), ("nonsense",), ("end",), ("rename", "0123", " ")):
        assert cli("--json", "sessions", *wrong).error["code"] == "usage"
    assert cli("--json", "sessions", "end", "nobody").status == 4


def test_a_sessions_command_with_something_missing_says_what_it_needs(cli: CommandLine) -> None:
    assert cli("sessions", "rename", "0123").err == (
        "error: rename needs a session and a title\nhint: usage: holdfast sessions rename S TITLE\n"
    )
    assert cli("sessions", "end").err == (
        "error: end needs a session\nhint: usage: holdfast sessions end S\n"
    )
    assert "actions are: rename, end, archive, delete" in cli("sessions", "remove", "x").err


@pytest.mark.requirement("SE-13", "CP-7")
def test_a_deleted_session_is_gone_with_what_only_it_had_and_nothing_else_is(
    cli: CommandLine,
) -> None:
    readme = cli.workspace / "README.md"
    kept = cli.save("kept", "--session", "kept")
    big = cli.workspace / "only-there.bin"
    big.write_bytes(os.urandom(200_000))
    with SessionCheckpointer(cli.workspace, "gone") as session:
        session.checkpoint("with a large file", name="large")
        session.add_message("user", "a secret wish")
    big.unlink()
    readme.write_text("now\n")
    refused = cli("--json", "sessions", "delete", "gone")
    assert (refused.status, refused.error["code"]) == (5, "needs_confirmation")
    done = cli.json("sessions", "delete", "gone", "--yes")
    assert (done["deleted"], done["checkpoints"]) == ("gone", 1)
    assert done["freed_bytes"] > 100_000
    assert [one["id"] for one in cli.json("sessions")] == ["kept"]
    assert cli.json("status")["sessions"] == ["kept"]
    assert cli.json("stats")["sessions"] == 1
    for near in ("no such", "gon", "gonee"):
        assert "did you mean" not in cli("log", "--session", near).err
    assert [one["id"] for one in cli.json("log", "--records")] == [done["saved_first"], kept]
    assert cli.json("search", "secret", "--all-sessions")["hits"] == []
    said = (b"a secret wish", b"with a large file")
    assert places_of(Path(cli.json("status")["store"]), said) == []
    assert readme.read_text() == "now\n"
    assert cli.json("show", "HEAD")["id"] == kept
    assert cli("check").status == 0
    with SessionCheckpointer(cli.workspace, "gone") as session:
        assert session.history() == []
        assert session.messages() == []
        session.checkpoint("a new life", name="large")
        assert session.delete_session() == 1
    assert cli("check").status == 0


@pytest.mark.requirement("CP-7", "CP-8")
def test_deleting_a_session_leaves_the_shared_content_of_others_restorable(
    cli: CommandLine,
) -> None:
    kept = cli.save("kept", "--session", "kept")
    cli.save("the same files", "--session", "gone")
    (cli.workspace / "src" / "app.py").unlink()
    cli.json("sessions", "delete", "gone", "--yes")
    cli.json("restore", kept, "--yes")
    assert (cli.workspace / "src" / "app.py").read_text() == "def main():\n    return 1\n"


@pytest.mark.requirement("SE-13")
def test_a_session_whose_agent_is_gone_has_ended_and_is_titled_by_its_first_message(
    cli: CommandLine, tmp_path: Path
) -> None:
    """The hooks are run by an agent's process of its own, which ends without a word."""
    event = {
        "session_id": "abc",
        "cwd": str(cli.workspace),
        "hook_event_name": "UserPromptSubmit",
        "transcript_path": "/nowhere",
        "prompt": "Fix the login\nplease",
    }
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import json, subprocess, sys\n"
        f"subprocess.run({command('hook', 'claude-code')!r}, check=True,\n"
        f"    cwd={str(cli.workspace)!r}, input={json.dumps(event)!r}.encode())\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, str(agent)], **pipes) as running:  # type: ignore[call-overload]
        assert running.stdout is not None
        while b"ready" not in running.stdout.readline():
            assert running.poll() is None
        (listed,) = cli.json("sessions")
        assert (listed["status"], listed["title"]) == ("active", "Fix the login please")
        assert listed["agent"] == "claude-code"
        running.kill()
    assert cli.json("sessions")[0]["status"] == "ended"
    assert cli.json("status", "--session", listed["id"])["session_status"] == "ended"
    with SessionCheckpointer(cli.workspace, listed["id"]) as session:
        assert session.status == "ended"


@pytest.mark.requirement("SE-13", "SE-5")
def test_a_session_that_has_ended_is_not_the_current_one_while_work_goes_on_in_another(
    cli: CommandLine,
) -> None:
    with SessionCheckpointer.start(cli.workspace, "going-on", agent="codex") as going_on:
        with SessionCheckpointer.start(cli.workspace, "over", agent="codex") as over:
            over.end()
        (cli.workspace / "README.md").write_text("1")
        saved = going_on.checkpoint("one")
        assert cli.json("status")["session_id"] == "going-on"
        assert [one["id"] for one in cli.json("sessions") if one["is_current"]] == ["going-on"]
        assert cli.json("approve")["approved_commit"] == saved
        (cli.workspace / "README.md").write_text("2")
        assert cli.json("reset")["reset_to"] == saved
        assert cli.json("checkpoint", "by hand")["session_id"] == "going-on"
        bundle = str(cli.workspace.parent / "exported")
        assert cli.json("export", bundle)["sessions"] == ["going-on"]
        going_on.end()
        assert (
            cli.json("status")["session_id"] == "going-on"
        )  # all have ended: the workspace's state
