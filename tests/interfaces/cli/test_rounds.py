"""`holdfast approve`, `reset`, `log --rounds` and the round in `status`."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("SE-5", "CL-5")
def test_the_json_of_approve_and_reset_has_the_promised_shape(cli: CommandLine) -> None:
    cli.save("began")
    (cli.workspace / "README.md").write_text("better\n")
    approved = cli.json("approve", "-m", "better")
    assert list(approved)[:3] == ["approved_commit", "new_session", "commits_approved"]
    assert (approved["new_session"], approved["approved_session"]) == ("session_2", "session_1")
    (cli.workspace / "README.md").write_text("worse\n")
    reset = cli.json("reset")
    assert list(reset)[:2] == ["reset_to", "new_session"]
    assert reset["reset_to"] == approved["approved_commit"]
    assert reset["new_session"] == "session_3"
    assert (reset["restored"], reset["dry_run"]) == (1, False)


@pytest.mark.requirement("SE-5", "CL-3")
def test_approve_with_nothing_to_approve_is_refused(cli: CommandLine) -> None:
    cli.save("began")
    assert cli.json("approve")["commits_approved"] == 1
    answer = cli("approve", "--json")
    assert (answer.status, answer.error["code"]) == (5, "refused")
    assert "nothing to approve" in answer.error["message"]


@pytest.mark.requirement("CL-3")
def test_without_a_session_there_is_nothing_to_approve_or_reset(cli: CommandLine) -> None:
    for verb in ("approve", "reset"):
        assert cli(verb, "--json").status == 4
    cli.save("began")
    assert cli("approve", "--session", "another", "--json").status == 4


@pytest.mark.requirement("SE-5", "RB-1")
def test_a_dry_run_of_reset_shows_the_restore_and_abandons_nothing(cli: CommandLine) -> None:
    began = cli.save("began")
    (cli.workspace / "README.md").write_text("worse\n")
    (cli.workspace / "new.txt").write_text("new\n")
    planned = cli.json("reset", "--dry-run")
    assert (planned["restored_to"], planned["dry_run"]) == (began, True)
    answer = cli("reset", "--dry-run")
    assert answer.out.startswith(f"Resetting to {began[:10]} would change this:\n")
    assert planned["abandoned"] == "session_1"
    assert "round 1 would be abandoned. To recover it: holdfast undo" in answer.out
    assert "holdfast log --rounds" in answer.out
    assert (cli.workspace / "new.txt").exists()
    assert len(cli.json("log", "--rounds")) == 1


@pytest.mark.requirement("SE-5")
def test_people_see_the_rounds(cli: CommandLine) -> None:
    cli.save("began")
    (cli.workspace / "README.md").write_text("better\n")
    answer = cli("approve", "-m", "better")
    assert "✓ Approved round 1 at " in answer.out
    assert "round 2 begins" in answer.out
    (cli.workspace / "README.md").write_text("worse\n")
    answer = cli("reset", "--yes")
    assert "✓ Reset to " in answer.out
    assert "round 2 is abandoned; round 3 begins" in answer.out
    assert "back: holdfast undo" in answer.out
    lines = cli("log", "--rounds").out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["round", "3", "active"],
        ["round", "2", "abandoned"],
        ["round", "1", "approved"],
    ]
    assert lines[2].endswith("  better")
    assert len(cli("log", "--rounds", "-n", "1").out.splitlines()) == 1


@pytest.mark.requirement("SE-5")
def test_status_tells_the_round_and_the_last_approval(cli: CommandLine) -> None:
    assert "approval" not in _status_of_new(cli)
    cli.save("began")
    (cli.workspace / "README.md").write_text("better\n")
    cli.save("a step")
    status = cli.json("status")
    assert status["approval"]["active_session"] == "session_1"
    assert status["approval"]["has_unapproved"] is True
    assert status["approval"]["last_approved_at"] is None
    assert "round     round 1, 2 checkpoints, not approved yet" in cli("status").out
    approved = cli.json("approve")["approved_commit"]
    status = cli.json("status")
    assert status["approval"]["active_session"] is None
    assert status["approval"]["session_ref"] is None
    assert status["approval"]["approved"] == approved
    assert status["approval"]["has_unapproved"] is False
    assert [one["status"] for one in status["rounds"]] == ["merged", "active"]
    assert "round     round 2, 0 checkpoints, nothing to approve;" in cli("status").out
    (cli.workspace / "README.md").write_text("not saved\n")
    status = cli.json("status")
    assert (status["approval"]["has_unapproved"], status["approval"]["unsaved"]) == (True, True)
    assert "round 2, 0 checkpoints, not approved yet, unsaved changes;" in cli("status").out
    assert "last approval just now" in cli("status").out
    cli.json("reset")
    assert "(1 abandoned; list: holdfast log --rounds)" in cli("status").out


def _status_of_new(cli: CommandLine) -> dict[str, object]:
    cli.json("init")
    found: dict[str, object] = cli.json("status")
    return found


@pytest.mark.requirement("SE-5", "CL-5")
def test_a_reset_with_nothing_to_reset_does_nothing_and_says_so(cli: CommandLine) -> None:
    cli.save("began")
    (cli.workspace / "README.md").write_text("better\n")
    approved = cli.json("approve")["approved_commit"]
    before = cli.json("log", "--records")
    answer = cli("reset", "--yes")
    assert (answer.status, answer.err) == (0, "")
    assert "Nothing to reset" in answer.out
    assert "abandoned" not in cli("reset", "--dry-run").out
    told = cli.json("reset", "--yes")
    assert (told["reset_to"], told["new_session"]) == (approved, "session_2")
    assert told["abandoned"] is None
    assert cli.json("log", "--records") == before
    assert len(cli.json("log", "--rounds")) == 2
