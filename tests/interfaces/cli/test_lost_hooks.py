"""A restore to before `holdfast install` removes the hooks of an agent: preview and result say that
the agent is then not protected, and how to protect it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.handlers import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.tree_hash import describe

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
def test_without_a_question_the_undo_of_an_installation_is_refused(
    agent: str, cli: CommandLine
) -> None:
    before = cli.save()
    assert cli("install", agent, "--project").status == 0
    installed = describe(cli.workspace)
    assert lost(agent) in cli("undo", "--dry-run").err
    [preview] = warnings(cli, "undo", "--dry-run")
    for arguments in (["--yes"], []):
        refused = cli("undo", *arguments)
        assert refused.status == 5
        assert f"would remove Holdfast's hooks of {agent} in " in refused.err
        assert f"holdfast uninstall {agent} --project" in refused.err
        assert f"holdfast restore {before[:10]} --yes" in refused.err
        assert cli("undo", "--json", *arguments).error["code"] == "refused"
        assert describe(cli.workspace) == installed
    done = cli("restore", before, "--yes")
    assert done.status == 0
    assert f"warning: {preview}" in done.err
    assert warnings(cli, "undo", "--yes") == []
    assert warnings(cli, "redo", "--yes") == [preview]


def test_on_a_terminal_the_undo_of_an_installation_asks(cli: CommandLine) -> None:
    cli.save()
    assert cli("install", "claude-code", "--project").status == 0
    with Screen(cli.workspace, "undo", columns=300) as screen:
        shown = screen.read_until("Undo?")
        screen.type("y\n")
        screen.finish()
    assert lost("claude-code") in " ".join(screen.plain(shown))
    assert not (cli.workspace / ".claude/settings.json").exists()


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
