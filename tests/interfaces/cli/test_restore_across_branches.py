"""A restore of files says where git is, if that is elsewhere than at the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("GT-7")


@pytest.fixture
def crossed(cli: CommandLine) -> tuple[str, str]:
    """A checkpoint of main with a changed file, and a workspace on feature; both commits."""
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    (place / ".gitignore").write_text("*.log\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "on main")
    main = git(place, "rev-parse", "HEAD").strip()
    (place / "both.txt").write_text("of main\n")
    (place / "ignored.log").write_text("then\n")
    cli.json("checkpoint", "on main", "--name", "on-main")
    git(place, "checkout", "-qb", "feature")
    (place / "both.txt").write_text("of feature\n")
    (place / "feature.txt").write_text("feature\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "on feature")
    return main, git(place, "rev-parse", "HEAD").strip()


def would_commit(place: Path) -> int:
    return len(git(place, "status", "--porcelain", "-uall").splitlines())


def test_preview_and_result_say_what_a_commit_would_contain(
    cli: CommandLine, crossed: tuple[str, str]
) -> None:
    main, feature = crossed
    place = cli.workspace
    planned = cli.json("restore", "on-main", "--dry-run")
    assert planned["git"] == {
        "then": {"branch": "main", "commit": main},
        "now": {"branch": "feature", "commit": feature},
        "changed_files": 2,
        "modes": ["exact", "branch"],
    }
    words = f"the checkpoint was made on main@{main[:7]}; git is on feature@{feature[:7]}"
    assert any(text.startswith(words) for text in planned["warnings"])
    done = cli("restore", "on-main", "--yes")
    assert words in done.err
    assert "a commit would now contain 2 changed files" in done.err
    assert "--git exact or --git branch" in done.err
    assert would_commit(place) == 2
    undone = cli.json("undo", "--yes")
    assert undone["git"] is None, "what was saved first was saved on feature"
    assert would_commit(place) == 0


def test_one_path_and_a_reset_say_it_too(cli: CommandLine, crossed: tuple[str, str]) -> None:
    place = cli.workspace
    assert cli.json("restore", "on-main", "both.txt", "--yes")["git"]["changed_files"] == 1
    assert would_commit(place) == 1
    cli.json("undo", "--yes")
    done = cli.json("reset", "--yes")
    assert done["git"]["now"]["branch"] == "feature"
    assert done["git"]["changed_files"] == would_commit(place)


def test_nothing_is_said_where_git_comes_back_or_has_not_moved(
    cli: CommandLine, crossed: tuple[str, str]
) -> None:
    assert cli.json("restore", "on-main", "--git", "exact", "--dry-run")["git"] is None
    assert cli.json("restore", "on-main", "--git", "exact", "--yes")["git"] is None
    (cli.workspace / "both.txt").write_text("changed again\n")
    assert cli.json("restore", "on-main", "--yes")["git"] is None


def test_the_agent_is_notified(cli: CommandLine, crossed: tuple[str, str]) -> None:
    event: dict[str, Any] = {
        "session_id": "agent",
        "cwd": str(cli.workspace),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "go on",
    }
    call_hook("claude-code", event, cli.workspace)
    cli.json("restore", "on-main", "--yes")
    answer = call_hook("claude-code", event | {"prompt": "and on"}, cli.workspace)
    assert "made on main@" in answer.out
    assert "a commit would now contain 2 changed files" in answer.out


@pytest.fixture
def committed(cli: CommandLine) -> Path:
    """A checkpoint, and a commit of the same files made after it; a file that git ignores."""
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    (place / ".gitignore").write_text(".env\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    cli.json("config", "set", "include", '[".env"]')
    (place / ".env").write_text("KEY=1\n")
    (place / "new.txt").write_text("new\n")
    cli.save("before the commit", "--name", "before")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "the same")
    return place


def test_nothing_is_said_where_only_a_commit_was_made_and_nothing_is_left_to_commit(
    cli: CommandLine, committed: Path
) -> None:
    (committed / "new.txt").write_text("by hand\n")
    for answer in (cli("undo", "--dry-run"), cli("undo", "--yes")):
        assert "the checkpoint was made on" not in answer.out + answer.err
        assert "--git exact" not in answer.out + answer.err
    assert would_commit(committed) == 0
    (committed / "new.txt").write_text("by hand\n")
    done = cli.json("undo", "--yes")
    assert done["git"]["changed_files"] == 0, "programs are told the fact"
    assert not any("the checkpoint was made on" in text for text in done["warnings"])


def test_a_file_that_git_ignores_has_nothing_to_commit(cli: CommandLine, committed: Path) -> None:
    (committed / ".env").write_text("KEY=2\n")
    (committed / "new.txt").write_text("by hand\n")
    shown = cli("undo", "--dry-run")
    assert "new.txt has changes that are not committed in git" in shown.out + shown.err
    (committed / "new.txt").write_text("new\n")
    shown = cli("undo", "--dry-run")
    assert ".env" in shown.out
    assert "not committed in git" not in shown.out + shown.err


def test_what_a_commit_would_contain_tells_changed_from_new_files(
    cli: CommandLine, committed: Path
) -> None:
    """So that the number of changed files is that of dirty ones."""
    git(committed, "rm", "-q", "--cached", "new.txt")
    git(committed, "commit", "-qm", "git forgets it")
    (committed / "README.md").write_text("committed\n")
    git(committed, "commit", "-qam", "a change")
    shown = cli("restore", "before", "--dry-run")
    assert "would then contain 1 changed and 1 new file" in shown.out + shown.err
    done = cli("restore", "before", "--yes")
    assert "would now contain 1 changed and 1 new file" in done.out + done.err
    assert "1 dirty" in done.out
    assert would_commit(committed) == 2
