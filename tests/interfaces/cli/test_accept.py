"""`holdfast accept`: previewed, asked for on a terminal, printed as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.git.repositories import git, new_repository
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen


@pytest.fixture
def worked(cli: CommandLine) -> CommandLine:
    """A repository with a commit, a first checkpoint and one with a change."""
    place = new_repository(cli.workspace)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    cli.save("how it began", "--name", "began")
    (place / "README.md").write_text("better\n")
    cli.save("Say it better")
    return cli


@pytest.mark.requirement("GT-3", "CL-1")
def test_a_commit_is_made_and_reported_as_json(worked: CommandLine) -> None:
    place = worked.workspace
    planned = worked.json("accept", "--dry-run")
    assert (planned["commit"], planned["dry_run"]) == (None, True)
    assert git(place, "rev-list", "--count", "HEAD").strip() == "1"
    told = worked.json("accept", "--yes", "--co-author", "Ada <ada@example.org>")
    assert told["commit"] == git(place, "rev-parse", "HEAD").strip()
    assert told["parent"] == git(place, "rev-parse", "HEAD~1").strip()
    assert told["branch"] == "main"
    assert told["files"] == [{"path": "README.md", "status": "M"}]
    assert told["left_out"] == told["obstacles"] == told["warnings"] == []
    assert told["message"] == "Say it better\n\nCo-authored-by: Ada <ada@example.org>\n"
    assert len(told["checkpoints"]) == 1
    assert told["undo"] == "git reset --soft HEAD~1"
    assert (told["dry_run"], told["elapsed_ms"] > 0) == (False, True)
    answer = worked("accept", "--json")
    assert (answer.status, answer.error["code"]) == (5, "refused")
    assert "the branch already has these changes" in answer.error["message"]


@pytest.mark.requirement("GT-3")
def test_people_see_the_preview_and_the_way_back(worked: CommandLine) -> None:
    shown = worked("accept", "--dry-run", "-m", "Mine").out
    assert shown.splitlines() == [
        "1 checkpoint would become one commit on main:",
        "  M  README.md",
        "with this message:",
        "  Mine",
        "Nothing was changed (dry run).",
    ]
    told = worked("accept", "began..HEAD", "-m", "Mine", "--yes").out
    assert "✓ Committed 1 file as " in told
    assert "  undo the commit: git reset --soft HEAD~1" in told


@pytest.mark.requirement("GT-3")
def test_the_preview_counts_no_records_of_restores(worked: CommandLine) -> None:
    assert worked("restore", "began").status == 0
    (worked.workspace / "README.md").write_text("once more\n")
    worked.save("Say it once more")
    shown = worked("accept", "--dry-run").out
    assert shown.startswith("1 checkpoint would become one commit on main:")
    assert len(worked.json("accept", "--dry-run")["checkpoints"]) == 2


@pytest.mark.requirement("GT-3")
def test_unsaved_changes_are_reported(worked: CommandLine) -> None:
    (worked.workspace / "README.md").write_text("not saved\n")
    told = worked.json("accept", "--yes")
    assert told["warnings"] == ["1 path changed since the checkpoint and is not in the commit"]


@pytest.mark.requirement("GT-3", "CL-3")
def test_mistakes_get_a_way_out(worked: CommandLine) -> None:
    assert worked("accept", "nothing..HEAD", "--json").status == 4
    assert worked("accept", "a..b", "c", "--json").status == 2
    assert worked("accept", "--co-author", "nobody", "--json").status == 2
    (worked.workspace / "README.md").write_text("staged\n")
    git(worked.workspace, "add", "README.md")
    answer = worked("accept")
    assert answer.status == 5
    assert "README.md is staged with content that differs from the checkpoint" in answer.err
    assert "git restore --staged" in answer.err
    shown = worked("accept", "--dry-run").out
    assert "Blocked: README.md is staged with content that differs" in shown


@pytest.mark.requirement("GT-3", "CL-3")
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_without_a_terminal_a_commit_needs_a_yes(
    worked: CommandLine, json: tuple[str, ...]
) -> None:
    answer = worked("accept", *json)
    assert answer.status == 5
    assert "a commit needs confirmation: 1 file" in answer.err
    assert "preview it with --dry-run; confirm it with --yes" in answer.err
    if json:
        assert answer.error["code"] == "needs_confirmation"
    assert git(worked.workspace, "rev-list", "--count", "HEAD").strip() == "1"
    assert worked("accept", "--yes").status == 0
    assert git(worked.workspace, "rev-list", "--count", "HEAD").strip() == "2"


@pytest.mark.requirement("GT-3", "CL-2")
def test_on_a_terminal_it_is_asked_first(worked: CommandLine) -> None:
    place: Path = worked.workspace
    for answer, status, commits in (("n\n", 5, "1"), ("y\n", 0, "2")):
        with Screen(place, "accept") as screen:
            assert "M  README.md" in screen.read_until("Commit? [y/N]")
            screen.type(answer)
            screen.finish()
            assert screen.status == status
        assert git(place, "rev-list", "--count", "HEAD").strip() == commits
