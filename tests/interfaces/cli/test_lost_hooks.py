"""A restore to before `holdfast install` removes the hooks of an agent: preview and result say that
the agent is then not protected, and how to protect it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.handlers import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("HK-7", "RB-1")

AGENTS = ["claude-code", "cline", "codex", "copilot", "cursor", "gemini", "goose", "opencode"]


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def lost(agent: str) -> str:
    return f"is then not protected; to install them again: holdfast install {agent} --project"


def warnings(cli: CommandLine, *arguments: str) -> list[str]:
    found: list[str] = cli.json(*arguments)["warnings"]
    return [one for one in found if "loses its Holdfast hooks" in one]


@pytest.mark.parametrize("agent", AGENTS)
def test_undo_of_an_installation_says_that_the_agent_is_then_not_protected(
    agent: str, cli: CommandLine
) -> None:
    cli.save()
    assert cli("install", agent, "--project").status == 0
    assert lost(agent) in cli("undo", "--dry-run").err
    [preview] = warnings(cli, "undo", "--dry-run")
    done = cli("undo", "--yes")
    assert done.status == 0
    assert f"warning: {preview}" in done.err
    assert warnings(cli, "redo", "--yes") == []
    assert warnings(cli, "undo", "--yes") == [preview]


def test_only_a_restore_that_removes_the_last_hooks_says_so(cli: CommandLine) -> None:
    before = cli.save()
    assert cli("install", "claude-code", "--project").status == 0
    (cli.workspace / "README.md").write_text("changed\n")
    assert warnings(cli, "restore", before, "README.md", "--yes") == []
    assert cli("install", "claude-code", "--user").status == 0
    assert warnings(cli, "restore", before, "--dry-run") == []
    assert cli("uninstall", "claude-code", "--user").status == 0
    assert len(warnings(cli, "restore", before, "--dry-run")) == 1
    settings = cli.workspace / ".claude" / "settings.json"
    settings.write_text("{}\n")  # nothing left to lose
    assert warnings(cli, "restore", before, "--yes") == []


def test_tools_for_agents_say_so_too(cli: CommandLine) -> None:
    with SessionCheckpointer(cli.workspace, "s") as session:
        before = session.checkpoint("before")
        assert cli("install", "claude-code", "--project").status == 0
        handlers = ToolHandlers(session)
        preview = handlers.call("checkpoint_restore", {"checkpoint_id": before})
        assert preview.success
        assert "claude-code loses its Holdfast hooks in .claude/settings.json" in preview.output
        assert "holdfast install claude-code --project" in preview.output
