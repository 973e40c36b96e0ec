"""An agent that restores files over another branch learns where git is, in words and as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.views.tool_values import GitNow
from holdfast.interfaces.tools.restore_result import Restored
from holdfast.interfaces.tools.save import Created
from holdfast.tools import ToolHandlers
from tests.components.git.repositories import git
from tests.interfaces.tools.calls import done


@pytest.mark.requirement("GT-7", "MC-1")
def test_a_restore_across_branches_tells_the_agent(
    workspace: Path, session: SessionCheckpointer, tools: ToolHandlers
) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    session.checkpoint("on main")
    git(workspace, "checkout", "-qb", "feature")
    (workspace / "notes.txt").write_text("of feature\n")
    git(workspace, "commit", "-qam", "two")
    text, shown = done(tools, "checkpoint_restore", Restored, ref="HEAD")
    assert shown.git is not None
    assert (shown.git.then.branch, shown.git.now.branch) == ("main", "feature")
    assert shown.git.changed_files == 1
    assert "a commit would then contain 1 changed file" in text
    text, made = done(tools, "checkpoint_restore", Restored, confirm_token=shown.confirm_token)
    assert made.git == shown.git
    assert "a commit would now contain 1 changed file" in text


@pytest.mark.requirement("GT-1", "MC-1")
def test_answers_say_where_git_is(
    workspace: Path, session: SessionCheckpointer, tools: ToolHandlers
) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    commit = git(workspace, "rev-parse", "HEAD").strip()
    (workspace / "notes.txt").write_text("dirty\n")
    text, made = done(tools, "checkpoint_create", Created, reasoning="dirty")
    assert made.git == GitNow("main", commit, 1)
    assert f"Git: main@{commit[:7]}, 1 dirty." in text
    (workspace / "notes.txt").write_text("more\n")
    session.checkpoint("more")
    text, undone = done(tools, "checkpoint_restore", Restored, ref=made.checkpoint.id)
    text, undone = done(tools, "checkpoint_restore", Restored, confirm_token=undone.confirm_token)
    assert undone.git_now == GitNow("main", commit, 1)
    assert f"Git: main@{commit[:7]}, 1 dirty." in text
    assert "Warning:" not in text
