"""Hooks are installed for every agent, once, reversibly, and only where they do no harm."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.interfaces.agent_setup import installation
from holdfast.interfaces.agent_setup.shipped_files import plugin_files, skills
from holdfast.interfaces.agents import AGENTS, agent_named
from holdfast.interfaces.agents.agent import PLUGIN_PROGRAM, Locations
from holdfast.interfaces.cli.verbs import VERBS
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hook_process import recorded
from tests.support.hostile_trees import git
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("HK-1")

PROJECT_FILES = {
    "claude-code": [".claude/settings.json"],
    "codex": [".codex/hooks.json"],
    "gemini": [".gemini/settings.json"],
    "cursor": [".cursor/hooks.json"],
    "copilot": [".github/hooks/holdfast.json"],
    "opencode": [".opencode/plugins/holdfast.js"],
    "cline": [".clinerules/hooks/PreToolUse", ".clinerules/hooks/UserPromptSubmit"],
    "goose": [".agents/plugins/holdfast/plugin.json", ".agents/plugins/holdfast/hooks/hooks.json"],
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("scope", ["project", "user"])
def test_installing_twice_is_once_and_uninstalling_leaves_nothing(
    agent: str, scope: str, project: Path, cli: CommandLine, own_home: Path
) -> None:
    before = (state_of(project), state_of(own_home))
    shown = cli.json("install", agent, f"--{scope}", "--dry-run")
    assert (state_of(project), state_of(own_home)) == before
    assert all(file["change"] == "created" and file["diff"] for file in shown["files"])
    done = cli.json("install", agent, f"--{scope}")
    assert done["verified"] is True
    after = (state_of(project), state_of(own_home))
    assert (after[0] != before[0], after[1] != before[1]) == (scope == "project", scope == "user")
    again = cli.json("install", agent, f"--{scope}")
    assert {file["change"] for file in again["files"]} == {"unchanged"}
    assert (state_of(project), state_of(own_home)) == after
    cli.json("uninstall", agent, f"--{scope}")
    assert (state_of(project), state_of(own_home)) == before


@pytest.mark.parametrize("agent", PROJECT_FILES)
def test_the_hooks_lie_where_the_agent_looks(agent: str, project: Path, cli: CommandLine) -> None:
    cli.json("install", agent)
    for path in PROJECT_FILES[agent]:
        assert (project / path).is_file()
    if agent == "cline":
        assert os.access(project / ".clinerules/hooks/PreToolUse", os.X_OK)


@pytest.mark.requirement("HK-1", "HK-2")
@pytest.mark.parametrize("agent", AGENTS)
def test_every_installed_command_answers_the_event_it_is_listed_under(
    agent: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", agent)
    before = recorded(agent, project, "rm -rf src")[3]
    command = _command_before_tools(agent, project)
    done = subprocess.run(
        ["sh", "-c", command],
        input=json.dumps(before).encode(),
        capture_output=True,
        cwd=project,
        check=False,
    )
    assert done.returncode == 0
    assert [made["kind"] for made in cli.json("log")] == ["risky", "initial"]


def _command_before_tools(agent: str, project: Path) -> str:
    """What the agent runs before a tool, read from the file as the agent reads it."""
    if agent == "cline":
        return str(project / ".clinerules/hooks/PreToolUse")
    if agent == "opencode":
        return f"{sys.executable} -m holdfast hook opencode"  # the shim has a test of its own
    at = Locations(project, project, {})
    settings = json.loads(agent_named(agent).hook_files("project", at, "")[-1].path.read_text())
    event = next(name for name in settings["hooks"] if name.lower() in ("pretooluse", "beforetool"))
    item = settings["hooks"][event][0]
    handler = item["hooks"][0] if "hooks" in item else item
    return str(handler.get("command") or handler["bash"])


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize(
    ("agent", "event", "tools", "passed"),
    [
        ("claude-code", "PreToolUse", ["Write", "mcp__files__write_file"], ["TodoWrite", "Read"]),
        ("codex", "PreToolUse", ["apply_patch", "mcp__files__write_file"], ["update_plan"]),
        ("gemini", "BeforeTool", ["write_file", "mcp_files_write_file"], ["read_file"]),
        ("cursor", "preToolUse", ["Write", "MCP:write_file"], ["Read"]),
        ("goose", "PreToolUse", ["developer__shell", "files__write_file"], []),
    ],
)
def test_the_hooks_are_called_for_tools_of_mcp_servers_too(
    agent: str, event: str, tools: list[str], passed: list[str]
) -> None:
    matchers = [item.get("matcher") for item in agent_named(agent).hook_entries("holdfast")[event]]
    assert [tool for tool in tools if any(_matches(m, tool) for m in matchers)] == tools
    assert not [tool for tool in passed if any(_matches(m, tool) for m in matchers)]


def _matches(matcher: str | None, tool: str) -> bool:
    """As the agents compare: names as they are, anything else as a pattern."""
    if matcher is None:
        return True
    if re.fullmatch(r"[A-Za-z0-9_|]+", matcher):
        return tool in matcher.split("|")
    return re.search(matcher, tool) is not None


def test_other_settings_keep_their_bytes(project: Path, cli: CommandLine) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    text = '{\n\t// mine\n\t"model": "opus", // the best\n\t"permissions": {"allow": []},\n}\n'
    settings.write_text(text)
    settings.chmod(0o600)
    cli.json("install", "claude-code")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert settings.read_text().startswith(text[:-3])
    cli.json("uninstall", "claude-code")
    assert settings.read_text() == text


def test_a_link_stays_a_link(project: Path, cli: CommandLine, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles" / "settings.json"
    dotfiles.parent.mkdir()
    dotfiles.write_text('{\n  "a": 1\n}\n')
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.symlink_to(dotfiles)
    cli.json("install", "claude-code")
    assert settings.is_symlink()
    assert "hooks" in json.loads(dotfiles.read_text())
    cli.json("uninstall", "claude-code")
    assert dotfiles.read_text() == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize("agent", ["opencode", "claude-code"])
def test_a_link_to_what_was_ours_alone_does_not_stay_behind(
    agent: str, project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    before = state_of(project)
    cli.json("install", agent)
    place = project / PROJECT_FILES[agent][0]
    dotfiles = tmp_path / "dotfiles"
    place.rename(dotfiles)
    place.symlink_to(dotfiles)
    changes = {file["change"] for file in cli.json("install", agent)["files"]}
    assert changes == {"unchanged"}
    cli.json("uninstall", agent)
    assert state_of(project) == before
    assert not dotfiles.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "is not valid: line 1"),
        (b"", "the file is empty"),
        (b"[1]", "not an object"),
        (b'{"hooks": {"Stop": 3}}', "hooks.Stop is not a list"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_settings_that_are_not_valid_are_refused_and_stay(
    content: bytes, reason: str, project: Path, cli: CommandLine
) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_bytes(content)
    for verb in ("install", "uninstall"):
        answer = cli("--json", verb, "claude-code")
        assert answer.status == 5
        assert reason in answer.error["message"]
        assert str(settings) in answer.error["message"]
    assert settings.read_bytes() == content


def test_on_a_read_only_file_system_no_change_of_permissions_is_suggested(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.json("install", "claude-code", "--project")
    mounted = SimpleNamespace(f_flag=os.ST_RDONLY, f_bavail=1 << 40, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: mounted)
    answer = cli("--json", "uninstall", "claude-code", "--project")
    assert answer.status == 5
    assert "is on a read-only file system" in answer.error["message"]
    assert answer.error["hint"] == "mount it writable and try again"


def test_what_cannot_be_written_is_refused_before_anything_is(
    project: Path, cli: CommandLine, ordinary_permissions: None
) -> None:
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    settings.chmod(0o444)
    answer = cli("--json", "install", "claude-code")
    assert (answer.status, "is read-only" in answer.error["message"]) == (5, True)
    settings.chmod(0o644)
    settings.parent.chmod(0o555)
    answer = cli("--json", "install", "claude-code", "--skills")
    assert (answer.status, "no permission" in answer.error["message"]) == (5, True)
    settings.parent.chmod(0o755)
    assert settings.read_text() == "{}"


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link", "parent is a file"])
def test_what_is_no_settings_file_is_refused(kind: str, project: Path, cli: CommandLine) -> None:
    place = project / ".claude" / "settings.json"
    if kind == "parent is a file":
        place.parent.write_text("x")
    else:
        place.parent.mkdir()
    if kind == "directory":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "dangling link":
        place.symlink_to("nowhere")
    answer = cli("--json", "install", "claude-code")
    assert answer.status == 5
    assert answer.error["hint"]


def test_a_script_of_the_user_is_not_overwritten(project: Path, cli: CommandLine) -> None:
    script = project / ".clinerules" / "hooks" / "PreToolUse"
    script.parent.mkdir(parents=True)
    text = "#!/bin/sh\n./guard.sh\n# holdfast: called too\nholdfast hook cline\n"
    script.write_text(text)
    answer = cli("--json", "install", "cline")
    assert answer.status == 5
    assert "not only Holdfast's" in answer.error["message"]
    cli("uninstall", "cline")
    assert script.read_text() == text
    assert [path.name for path in script.parent.iterdir()] == ["PreToolUse"]


def test_a_command_that_does_not_answer_is_not_installed(
    project: Path, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "holdfast"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(installation, "our_program", lambda: str(broken))
    answer = cli("--json", "install", "claude-code")
    assert (answer.status, "nothing was changed" in answer.error["message"]) == (5, True)
    assert not (project / ".claude").exists()


def test_agents_that_run_the_hooks_of_others_are_mentioned(cli: CommandLine) -> None:
    cli.json("install", "claude-code")
    done = cli.json("install", "cursor")
    assert any(".claude" in note for note in done["notes"])
    done = cli.json("install", "claude-code", "--user")
    assert any("also installed" in note for note in done["notes"])


@pytest.mark.parametrize(
    "arguments", [(), ("nobody",), ("codex", "cursor"), ("codex", "--user", "--project")]
)
def test_a_wrong_request_is_a_usage_error(arguments: tuple[str, ...], cli: CommandLine) -> None:
    assert cli("install", *arguments).status == 2


@pytest.mark.requirement("CL-4", "SE-10")
@pytest.mark.parametrize(
    ("agent", "folder"), [("claude-code", ".claude/skills"), ("codex", ".agents/skills")]
)
def test_skills_are_installed_and_removed_with_the_agent(
    agent: str, folder: str, project: Path, cli: CommandLine
) -> None:
    before = state_of(project)
    cli.json("install", agent, "--skills")
    names = {path.name for path in (project / folder).iterdir()}
    assert names == {
        "checkpoint",
        "checkpoints",
        "restore",
        "rollback",
        "checkpoint-delete",
        "checkpoint-cleanup",
        "replay",
        "replay-step",
        "replay-agents",
        "replay-memory",
        "replay-exit",
    }
    policy = project / folder / "rollback" / "agents" / "openai.yaml"
    assert policy.is_file() == (agent != "claude-code")
    cli.json("uninstall", agent)
    assert state_of(project) == before


@pytest.mark.requirement("CL-4")
def test_skills_that_another_agent_uses_stay(project: Path, cli: CommandLine) -> None:
    cli.json("install", "codex", "--skills")
    cli.json("install", "gemini", "--skills")
    cli.json("uninstall", "codex")
    assert (project / ".agents/skills/restore/SKILL.md").is_file()
    cli.json("uninstall", "gemini")
    assert not (project / ".agents").exists()


@pytest.mark.requirement("CL-4", "HK-4")
def test_a_rollback_is_started_by_the_user_alone_and_restore_is_a_look_first() -> None:
    texts = skills()
    fields = {name: _front(text) for name, text in texts.items()}
    assert all(fields[name]["name"] == name for name in texts)
    assert all(fields[name]["description"] for name in texts)
    assert fields["rollback"]["disable-model-invocation"] == "true"
    user_only = {name for name in texts if "disable-model-invocation" in fields[name]}
    assert skills("agents/openai.yaml").keys() == user_only
    for policy in skills("agents/openai.yaml").values():
        assert "policy:\n  allow_implicit_invocation: false\n" in policy
    assert "--dry-run" in fields["restore"]["allowed-tools"]
    assert "--yes" not in fields["restore"]["allowed-tools"]


def _front(text: str) -> dict[str, str]:
    _, front, _ = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in front.splitlines())


@pytest.mark.requirement("CL-4")
def test_the_restore_skill_previews_and_restores_only_with_confirm() -> None:
    looking, carrying_out = skills()["restore"].split("Only when the user gave `--confirm`:\n")
    assert "`holdfast restore REF --dry-run`" in looking
    assert "--yes" not in looking
    assert "`holdfast restore REF --yes`" in carrying_out


@pytest.mark.requirement("CL-4", "HK-4")
def test_every_command_in_the_skills_exists_and_takes_what_it_is_given(
    project: Path, cli: CommandLine
) -> None:
    import re

    reference = cli.save("begin")
    (project / "src" / "app.py").write_text("price = 2\n")
    ran = set()
    for text in skills().values():
        for found in re.findall(r"`holdfast ([^`]+)`", text):
            words = found.replace('"REASON"', "why").replace("PATH", "src/app.py").split()
            words = [reference if word in ("REF", "ID") else word for word in words]
            ran.add(words[0])
            assert words[0] in VERBS
            answer = cli(*words)
            assert answer.status in (0, 4), (words, answer)
            assert answer.status == 0 or words[0] in ("undo", "delete", "restore", "show", "diff")
            if words[0] == "delete":
                reference = cli.save("another")
    assert ran == {"checkpoint", "log", "status", "show", "diff", "restore", "delete", "cleanup",
                   "stats", "undo", "replay"}  # fmt: skip


@pytest.mark.requirement("HK-4")
def test_the_plugin_has_hooks_skills_and_the_server_and_is_written_where_it_is_wanted(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    target = tmp_path / "plugin"
    done = cli.json("install", "claude-code", "--plugin", str(target))
    assert len(done["files"]) == len(plugin_files())
    for manifest in (".claude-plugin/plugin.json", ".codex-plugin/plugin.json"):
        assert _read(target / manifest)["name"] == "holdfast"
        assert _read(target / manifest)["version"] == _version()
    assert _read(target / "hooks/hooks.json")["hooks"] == agent_named("claude-code").hook_entries(
        PLUGIN_PROGRAM
    )
    codex = _read(target / ".codex-plugin/plugin.json")
    assert _read(target / codex["hooks"])["hooks"] == agent_named("codex").hook_entries(
        PLUGIN_PROGRAM
    )
    server = _read(target / codex["mcpServers"])["mcpServers"]["holdfast"]
    assert server == {"command": "holdfast", "args": ["mcp"]}
    assert {path.name for path in (target / codex["skills"]).iterdir()} == set(skills())
    # The directory is a marketplace too, with itself as the one plug-in.
    (listed,) = _read(target / ".claude-plugin/marketplace.json")["plugins"]
    assert (listed["name"], target / listed["source"]) == ("holdfast", target)
    other = tmp_path / "full"
    other.mkdir()
    (other / "mine").write_text("x")
    assert cli("install", "codex", "--plugin", str(other)).status == 5
    assert cli("install", "goose", "--plugin", str(tmp_path / "x")).status == 2


@pytest.mark.requirement("HK-4", "HK-6")
@pytest.mark.parametrize("comes", [True, False])
def test_the_hook_of_a_plugin_waits_for_a_program_that_is_being_upgraded(
    comes: bool, tmp_path: Path
) -> None:
    """The hook waits, and meanwhile the program is put in place, or is not."""
    programs = tmp_path / "bin"
    programs.mkdir()
    waited = tmp_path / "waited"
    (programs / "sleep").write_text(
        f"#!/bin/sh\necho >> {waited}\n"
        + (
            f"[ $(wc -l < {waited}) -lt 3 ] || mv {programs}/new {programs}/holdfast\n"
            if comes
            else ""
        )
    )
    (programs / "new").write_text('#!/bin/sh\necho "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    command = agent_named("claude-code").hook_entries(PLUGIN_PROGRAM)["SessionStart"][0]["hooks"][
        0
    ]["command"]
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        check=False,
    )
    if comes:
        assert (done.returncode, done.stdout) == (0, b"hook claude-code\n")
    else:
        assert b"holdfast" in done.stderr
    assert len(waited.read_text().splitlines()) == (3 if comes else 10)


@pytest.mark.requirement("HK-4")
@pytest.mark.parametrize("spoil", ["a file on the way", "a directory for a file", "no such place"])
def test_a_plugin_that_cannot_be_written_is_refused_with_a_way_out(
    cli: CommandLine, tmp_path: Path, spoil: str
) -> None:
    target = tmp_path / "plugin"
    if spoil == "no such place":
        target = Path("/proc/nowhere/plugin")
    else:
        cli.json("install", "claude-code", "--plugin", str(target))
        shutil.rmtree(target / "skills")
        place = target / "skills" if spoil == "a file on the way" else target / ".mcp.json"
        if place.exists():
            place.unlink()
            place.mkdir()
        else:
            place.write_text("mine\n")
    answer = cli("--json", "install", "claude-code", "--plugin", str(target))
    assert answer.status == 5
    assert f"cannot write the plug-in to {target}" in answer.error["message"]


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _version() -> str:
    from holdfast import __version__

    return __version__


@pytest.mark.requirement("HK-4")
def test_a_plugin_is_written_into_the_directory_that_was_chosen(
    project: Path, cli: CommandLine
) -> None:
    done = cli.json("install", "claude-code", "--plugin", "tools/plugin")
    assert (project / "tools/plugin/.claude-plugin/plugin.json").is_file()
    assert done["plugin"] == str(project / "tools/plugin")


@pytest.mark.requirement("HK-1", "CP-16")
@pytest.mark.parametrize("place", ["home", "root"])
def test_hooks_of_a_project_are_not_written_where_no_project_is(
    place: str, own_home: Path, cli: CommandLine
) -> None:
    at = CommandLine(own_home if place == "home" else Path("/"))
    refused = at("install", "claude-code", "--json", "--dry-run")
    assert (refused.status, "not a project" in refused.error["message"]) == (5, True)
    assert "holdfast install claude-code --user" in refused.error["hint"]
    if place == "home":
        assert at("install", "claude-code").status == 5
        assert state_of(own_home) == {}
    assert at("install", "claude-code", "--user").status == 0
    assert (own_home / ".claude" / "settings.json").exists()
    assert at("uninstall", "claude-code", "--dry-run").status == 0


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (("claude",), "claude-code"),
        (("Claude Code",), "claude-code"),
        (("Claude", "Code"), "claude-code"),
        (("claude_code",), "claude-code"),
        (("CODEX",), "codex"),
        (("gemini-cli",), "gemini"),
        (("GitHub Copilot",), "copilot"),
    ],
)
def test_usual_spellings_of_an_agent_are_understood(
    said: tuple[str, ...], meant: str, cli: CommandLine
) -> None:
    assert cli.json("install", *said, "--dry-run")["agent"] == meant


def test_a_mistyped_agent_is_asked_about(cli: CommandLine) -> None:
    refused = cli("install", "cluade-code", "--json")
    assert refused.status == 2
    assert refused.error["hint"].startswith("did you mean claude-code?")


def test_an_install_says_what_holds_now(cli: CommandLine) -> None:
    shown = cli("install", "claude-code").out
    assert (
        "Holdfast now saves before the agent changes anything. To go back: holdfast undo" in shown
    )
    assert "Files that .gitignore names, such as .env, are not saved until a tool" in shown
    assert "To save them: holdfast config add include .env" in shown
    assert "Every state" not in cli("install", "claude-code").out
    assert "Every state" not in cli("uninstall", "claude-code").out


def test_hooks_that_git_would_commit_are_mentioned(project: Path, cli: CommandLine) -> None:
    note = "contains a path of this machine, and git would commit it"
    assert note not in str(cli.json("install", "claude-code")["notes"])
    git(project, "init", "-q")
    found = cli.json("install", "claude-code")["notes"]
    assert any(note in one and ".claude/settings.json" in one for one in found)
    assert note not in str(cli.json("install", "claude-code", "--user")["notes"])
    (project / ".git" / "info" / "exclude").write_text(".claude/\n")
    assert note not in str(cli.json("install", "claude-code")["notes"])
