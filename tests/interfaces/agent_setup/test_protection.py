"""An install is proven, and hooks that do not run are noticed, with what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agent_setup import installation
from holdfast.interfaces.agent_setup.protection import Protection, protections, unprotected
from holdfast.interfaces.agents import AGENTS
from tests.components.git.repositories import git
from tests.interfaces.agent_setup.trusting import trust, trust_codex_project
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.hook_process import call_hook, recorded

pytestmark = pytest.mark.requirement("HK-6")

_SCRIPT = Path(sysconfig.get_path("scripts")) / "holdfast"


def _only(project: Path) -> Protection:
    (found,) = protections(project)
    return found


def _doctor(cli: CommandLine, subject: str) -> dict[str, Any]:
    findings = {f["subject"]: f for f in json.loads(cli("--json", "doctor").out)["findings"]}
    found: dict[str, Any] = findings[subject]
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_installed_and_trusted_an_agent_is_protected(
    agent: str, project: Path, cli: CommandLine, own_home: Path
) -> None:
    cli.json("install", agent)
    trust(agent, project, own_home)
    found = _only(project)
    assert (found.protected, found.cure, found.scope) == (True, None, "project")
    told = _doctor(cli, f"{agent} (project)")
    assert told["status"] == "ok"
    assert "a test event ran in" in told["finding"]


def test_an_install_says_that_a_test_event_ran(cli: CommandLine) -> None:
    first = cli("install", "claude-code").out
    assert "verified: a test event ran in" in first
    assert "\n  Restart the agent.\n" in first
    assert "verified: a test event ran in" in cli("install", "claude-code").out
    assert cli.json("install", "claude-code")["test_event_ms"] >= 0


def test_the_command_runs_where_nothing_but_the_system_is_in_the_path(
    project: Path, cli: CommandLine, own_home: Path, holdfast_home: Path
) -> None:
    """As from a virtual environment, which the agent knows nothing of."""
    cli.json("install", "claude-code")
    settings = json.loads((project / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    done = subprocess.run(
        ["sh", "-c", command],
        input=json.dumps(recorded("claude-code", project, "rm -rf src")[3]).encode(),
        capture_output=True,
        cwd=project,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(own_home),
            "HOLDFAST_HOME": str(holdfast_home),
            "HOLDFAST_DAEMON": "off",
        },
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [made["kind"] for made in cli.json("log")] == ["risky", "initial"]


def test_a_link_that_stays_across_upgrades_is_preferred(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    link = own_home / ".local" / "bin" / "holdfast"
    link.parent.mkdir(parents=True)
    link.symlink_to(_SCRIPT)
    cli.json("install", "codex")
    assert f'"{link} hook codex"' in (project / ".codex" / "hooks.json").read_text()


def test_the_bare_name_is_used_where_a_login_finds_it(
    project: Path, cli: CommandLine, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = own_home / "bin" / "holdfast"
    link.parent.mkdir(parents=True)
    link.symlink_to(_SCRIPT)
    (own_home / ".profile").write_text('echo hello\nPATH="$HOME/bin:$PATH"\n')
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PATH", f"{link.parent}:{os.environ['PATH']}")
    cli.json("install", "claude-code")
    assert '"holdfast hook claude-code"' in (project / ".claude" / "settings.json").read_text()
    assert _only(project).protected


def test_without_a_script_the_interpreter_is_named(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holdfast.interfaces.agent_setup.holdfast_command._own_scripts", lambda: iter(())
    )
    cli.json("install", "gemini")
    text = (project / ".gemini" / "settings.json").read_text()
    assert f"{sys.executable} -P -m holdfast hook gemini" in text


def test_codex_runs_nothing_before_it_trusts_directory_and_hooks(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    done = cli("install", "codex")
    assert "not protected yet" in done.err
    assert "start codex here once" in done.out
    assert "this directory" in _only(project).finding
    trust_codex_project(project, own_home)
    assert "these hooks" in _only(project).finding
    trust("codex", project, own_home)
    assert _only(project).protected
    hooks = project / ".codex" / "hooks.json"
    hooks.write_text(hooks.read_text().replace("120", "60"))
    found = _only(project)
    assert not found.protected
    assert "/hooks" in (found.cure or "")
    assert _doctor(cli, "codex (project)")["status"] == "problem"


def test_copilot_runs_hooks_of_a_project_it_trusts_and_those_of_the_user(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "copilot")
    (found,) = unprotected(protections(project))
    assert "trust" in found.finding
    cli.json("install", "copilot", "--user")
    assert unprotected(protections(project)) == []


def test_gemini_runs_no_hooks_in_a_directory_that_it_does_not_trust(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    cli.json("install", "gemini", "--user")
    assert not _only(project).protected
    trust("gemini", project, own_home)
    assert _only(project).protected
    trusted = own_home / ".gemini" / "trustedFolders.json"
    trusted.write_text(
        json.dumps({str(project.parent): "TRUST_FOLDER", str(project): "DO_NOT_TRUST"})
    )
    assert not _only(project).protected


@pytest.mark.parametrize(
    ("agent", "file", "switch"),
    [
        ("claude-code", ".claude/settings.local.json", {"disableAllHooks": True}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"disabled": ["holdfast"]}}),
        ("copilot", ".github/copilot/settings.json", {"disableAllHooks": True}),
    ],
)
def test_hooks_that_settings_turn_off_are_noticed(
    agent: str, file: str, switch: dict[str, Any], project: Path, cli: CommandLine, own_home: Path
) -> None:
    cli.json("install", agent)
    trust(agent, project, own_home)
    place = project / file
    before = json.loads(place.read_text()) if place.exists() else {}
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(before | switch))
    found = _only(project)
    assert not found.protected
    assert str(place) in found.finding
    assert found.cure


def test_a_later_settings_file_of_claude_code_has_the_last_word(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    (own_home / ".claude").mkdir()
    (own_home / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    cli.json("install", "claude-code")
    assert not _only(project).protected
    local = project / ".claude" / "settings.local.json"
    local.write_text('{"disableAllHooks": false}')
    assert _only(project).protected


@pytest.mark.parametrize("agent", AGENTS)
def test_a_program_that_is_gone_is_noticed(
    agent: str, project: Path, cli: CommandLine, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = own_home / "holdfast"
    program.symlink_to(_SCRIPT)
    monkeypatch.setattr(installation, "our_program", lambda: str(program))
    cli.json("install", agent)
    trust(agent, project, own_home)
    assert _only(project).protected
    program.unlink()
    found = _only(project)
    assert not found.protected
    assert f"{program} no longer exists" in found.finding
    assert found.cure == f"holdfast install {agent} --project"


def test_a_program_that_is_there_and_does_not_run_is_found_by_doctor(
    project: Path, cli: CommandLine, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = own_home / "holdfast"
    program.symlink_to(_SCRIPT)
    monkeypatch.setattr(installation, "our_program", lambda: str(program))
    cli.json("install", "claude-code")
    program.unlink()
    program.write_text("#!/nowhere/python\n")
    program.chmod(0o755)
    told = _doctor(cli, "claude-code (project)")
    assert (told["status"], told["cure"]) == ("problem", "holdfast install claude-code --project")


def test_hooks_that_were_taken_out_of_the_settings_are_missed(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "claude-code")
    call_hook("claude-code", recorded("claude-code", project, "rm -rf src")[3], project)
    (project / ".claude" / "settings.json").write_text("{}\n")
    told = _doctor(cli, "claude-code")
    assert (told["status"], told["cure"]) == ("problem", "holdfast install claude-code")
    assert "its hooks were removed from its settings" in told["finding"]


def test_a_plug_in_is_a_protection_too(project: Path, own_home: Path) -> None:
    listed = own_home / ".claude" / "plugins" / "installed_plugins.json"
    listed.parent.mkdir(parents=True)
    listed.write_text('{"plugins": {"holdfast@holdfast": []}}')
    found = _only(project)
    assert (found.agent, found.scope, found.protected) == ("claude-code", "plug-in", True)


def test_the_next_command_on_a_terminal_tells_once_a_day_of_hooks_that_do_not_run(
    project: Path, cli: CommandLine
) -> None:
    cli.save()
    cli.json("install", "codex")

    def shown() -> str:
        with Screen(project, "log") as screen:
            return " ".join(screen.plain(screen.finish()))

    first = shown()
    assert "codex is not protected" in first
    assert "start codex here once" in first
    assert "codex is not protected" not in shown()
    assert "codex is not protected" not in cli("log").err


@pytest.mark.parametrize("scope", ["project", "user"])
def test_hooks_that_were_uninstalled_are_not_missed(
    scope: str, project: Path, cli: CommandLine, own_home: Path
) -> None:
    cli.json("install", "claude-code", f"--{scope}")
    call_hook("claude-code", recorded("claude-code", project, "rm -rf src")[3], project)
    cli.json("uninstall", "claude-code", f"--{scope}")
    told = _doctor(cli, "claude-code")
    assert (told["status"], told["finding"]) == ("note", "not protected: hooks removed by you")
    (agent,) = cli.json("status")["agents"]
    assert (agent["protected"], agent["finding"], agent["cure"]) == (
        False,
        "hooks removed by you",
        None,
    )
    shown = cli("status").out
    assert "claude-code not protected: hooks removed by you" in shown
    assert "NOT protected" not in shown
    cli.json("install", "claude-code", f"--{scope}")
    place = project if scope == "project" else own_home
    (place / ".claude" / "settings.json").write_text("{}\n")
    assert _doctor(cli, "claude-code")["status"] == "problem", "nobody said that they should go"


def test_installing_and_uninstalling_are_states_of_their_own(
    project: Path, cli: CommandLine
) -> None:
    cli.save("the beginning")
    (project / "src" / "app.py").write_text("price = 2\n")
    cli.json("install", "claude-code")
    reasons = [one["reasoning"] for one in cli.json("log")]
    assert reasons[:2] == ["holdfast install claude-code", "Before holdfast install claude-code"]
    cli.json("uninstall", "claude-code")
    status = cli.json("status")
    assert "holdfast uninstall claude-code" in status["last"]["what"]
    assert "bring back" not in status["next"]
    (project / "src" / "app.py").write_text("price = 3\n")
    cli.json("undo", "--yes")
    assert (project / "src" / "app.py").read_text() == "price = 2\n"
    assert not (project / ".claude").exists(), "only the edit was taken back"
    before = len(cli.json("log"))
    cli.json("uninstall", "claude-code")
    cli.json("install", "claude-code", "--dry-run")
    assert len(cli.json("log")) == before


def test_an_uninstall_says_what_remains(project: Path, cli: CommandLine) -> None:
    cli.json("install", "claude-code")
    assert "Checkpoints" not in cli("uninstall", "claude-code").out, "there are none"
    cli.json("install", "claude-code")
    cli.save("one")
    store = cli.json("status")["store"]
    shown = " ".join(cli("uninstall", "claude-code").out.split())
    assert "Your checkpoints are kept: holdfast log." in shown
    command = f"rm -rf {store} {project}/.holdfast"
    assert command in shown
    assert f"the token for programs stay in {Path(store).parent.parent}." in shown
    assert "A running daemon stops when it is idle" in shown
    subprocess.run(["sh", "-c", command], check=True)
    assert "no checkpoints yet" in cli("log", "--json").error["message"]


def test_an_uninstall_says_how_to_remove_its_refs_from_git(project: Path, cli: CommandLine) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    other = "refs/holdfast/another-store/kept"
    git(project, "update-ref", other, "HEAD")
    cli.json("install", "claude-code")
    cli.save("one")
    assert git(project, "for-each-ref", "refs/holdfast").count("\n") == 2
    with Screen(cli.workspace, "uninstall", "claude-code", columns=60) as screen:
        shown = screen.finish()
    [command] = [line for line in screen.plain(shown) if "for-each-ref" in line]
    subprocess.run(["sh", "-c", command], check=True)
    left = git(project, "for-each-ref", "--format=%(refname)").split()
    assert left == ["refs/heads/main", other]


def test_the_settings_of_a_project_are_not_named_for_removal(
    project: Path, cli: CommandLine
) -> None:
    cli.json("install", "claude-code")
    cli.save("one")
    (project / ".holdfast" / "config.toml").write_text("")
    shown = " ".join(cli("uninstall", "claude-code").out.split())
    assert f"{project}/.holdfast/workspace.json" in shown


def test_where_no_store_can_be_created_nothing_is_called_protected(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "a-file" / "stores"))
    installed = cli("install", "claude-code")
    assert "not protected yet: cannot create" in installed.err
    assert "a-file is not a directory" in cli("status").out
    assert "NOT protected" in cli("status").out
