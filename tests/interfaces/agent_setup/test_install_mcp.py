"""`install --mcp` registers the server where each agent looks for it, once and reversibly."""

from __future__ import annotations

import functools
import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.agent_setup import installation
from tests.interfaces.cli.command_line import CommandLine
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("HK-1")

LEFT = 3
REFUSED = 5

FILES = [
    ("claude-code", "project", ".mcp.json"),
    ("claude-code", "user", ".claude.json"),
    ("codex", "project", ".codex/config.toml"),
    ("codex", "user", ".codex/config.toml"),
    ("gemini", "project", ".gemini/settings.json"),
    ("gemini", "user", ".gemini/settings.json"),
    ("cursor", "project", ".cursor/mcp.json"),
    ("cursor", "user", ".cursor/mcp.json"),
    ("copilot", "project", ".github/mcp.json"),
    ("copilot", "user", ".copilot/mcp-config.json"),
    ("opencode", "project", "opencode.json"),
    ("opencode", "user", ".config/opencode/opencode.json"),
    ("cline", "user", ".cline/data/settings/cline_mcp_settings.json"),
]
IN_PROJECT = [(agent, path) for agent, scope, path in FILES if scope == "project"]

_TOML = '# mine\nmodel = "o5"   # the best\n\n[mcp_servers.docs]\ncommand = "npx"\n'
_JSON = '{\n\t// mine\n\t"mcpServers": {"docs": {"command": "npx"}}, // one\n\t"mcp": {}\n}\n'


# A program that fails is tried again by the next call.
_tried_once = functools.cache(installation._try_server)


@pytest.fixture(autouse=True)
def each_program_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting the server is most of what an install costs, and it starts or it does not: what the
    settings say has no part in that."""
    monkeypatch.setattr(installation, "_try_server", _tried_once)


def _settings(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _entry(path: Path) -> dict[str, Any]:
    settings = _settings(path)
    (table,) = {"mcpServers", "mcp_servers", "mcp"} & settings.keys()
    entry: dict[str, Any] = settings[table]["holdfast"]
    return entry


def _of_the_user(project: Path, path: str) -> tuple[Path, str]:
    """Settings that the user has written, with another server and comments."""
    place = project / path
    place.parent.mkdir(parents=True, exist_ok=True)
    text = _TOML if place.suffix == ".toml" else _JSON
    place.write_text(text)
    return place, text


def _edited(place: Path) -> None:
    """Something that the user adds to our own entry."""
    text = place.read_text()
    if place.suffix == ".toml":
        place.write_text(text + "startup_timeout_sec = 30\n")
    else:
        place.write_text(text.replace('"holdfast": {', '"holdfast": {"mine": 1, ', 1))


@pytest.mark.requirement("HK-1", "MC-1")
@pytest.mark.parametrize(("agent", "scope", "path"), FILES)
def test_the_server_is_registered_once_and_uninstalling_leaves_nothing(
    agent: str, scope: str, path: str, project: Path, cli: CommandLine, own_home: Path
) -> None:
    before = (state_of(project), state_of(own_home))
    shown = cli.json("install", agent, f"--{scope}", "--mcp", "--dry-run")
    assert (state_of(project), state_of(own_home)) == before
    place = (project if scope == "project" else own_home) / path
    (file,) = [file for file in shown["files"] if file["path"] == str(place)]
    assert (file["change"], "holdfast" in file["diff"]) == ("created", True)
    cli.json("install", agent, f"--{scope}", "--mcp")
    after = (state_of(project), state_of(own_home))
    entry = _entry(place)
    command = entry["command"] if agent == "opencode" else [entry["command"], *entry["args"]]
    assert "mcp" in command
    again = cli.json("install", agent, f"--{scope}", "--mcp")
    assert {file["change"] for file in again["files"]} == {"unchanged"}
    cli.json("install", agent, f"--{scope}")
    assert (state_of(project), state_of(own_home)) == after
    cli.json("uninstall", agent, f"--{scope}", "--dry-run")
    assert (state_of(project), state_of(own_home)) == after
    cli.json("uninstall", agent, f"--{scope}")
    assert (state_of(project), state_of(own_home)) == before


@pytest.mark.requirement("HK-1", "MC-1")
@pytest.mark.parametrize(("agent", "path"), IN_PROJECT)
def test_what_is_registered_starts_the_server(
    agent: str, path: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", agent, "--mcp")
    assert _answers(agent, project / path, project, started_in=project)


@pytest.mark.requirement("HK-1", "MC-1")
def test_cursor_tells_a_server_for_all_projects_where_it_is(
    project: Path, own_home: Path, cli: CommandLine
) -> None:
    """It starts such a server in the home directory, which is no workspace."""
    cli.json("install", "cursor", "--user", "--mcp")
    assert _answers("cursor", own_home / ".cursor/mcp.json", project, started_in=own_home)


def _answers(agent: str, settings: Path, project: Path, *, started_in: Path) -> bool:
    """Whether the server begins, called as the agent calls it."""
    entry = _entry(settings)
    words = entry["command"] if agent == "opencode" else [entry["command"], *entry["args"]]
    words = [word.replace("${workspaceFolder}", str(project)) for word in words]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": agent, "version": "1"},
        },
    }
    told = subprocess.run(
        words,
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        cwd=started_in,
        check=True,
    )
    name: object = json.loads(told.stdout.splitlines()[0])["result"]["serverInfo"]["name"]
    return name == "holdfast"


@pytest.mark.parametrize(("agent", "path"), IN_PROJECT)
def test_settings_of_the_user_keep_their_bytes_their_mode_and_their_link(
    agent: str, path: str, project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    place, text = _of_the_user(project, path)
    dotfile = tmp_path / "dotfile"
    place.rename(dotfile)
    dotfile.chmod(0o600)
    place.symlink_to(dotfile)
    cli.json("install", agent, "--mcp")
    assert place.is_symlink()
    assert stat.S_IMODE(dotfile.stat().st_mode) == 0o600
    edited = dotfile.read_text()
    assert "holdfast" in edited
    for line in text.splitlines():
        assert line.split("//")[0].rstrip("{} ,") in edited
    around = f"# later\n{edited}" if place.suffix == ".toml" else f"// later\n{edited}"
    dotfile.write_text(around)
    cli.json("uninstall", agent)
    assert place.is_symlink()
    assert dotfile.read_text() == around[: around.index("\n") + 1] + text


@pytest.mark.parametrize(("agent", "path"), IN_PROJECT)
def test_an_entry_of_the_user_is_refused_and_left_and_named(
    agent: str, path: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", agent, "--mcp")
    place = project / path
    _edited(place)
    text, before = place.read_text(), state_of(project)
    answer = cli("--json", "install", agent, "--mcp")
    assert answer.status == REFUSED
    assert str(place) in answer.error["message"]
    assert "--mcp" in answer.error["hint"]
    assert state_of(project) == before
    findings = {f["subject"]: f for f in cli("--json", "doctor").json["findings"]}
    assert findings[f"{agent} MCP (project)"]["status"] == "ok"
    told = cli("--json", "uninstall", agent)
    assert told.status == LEFT
    assert [f["change"] for f in told.json["files"] if f["path"] == str(place)] == ["kept"]
    assert str(place) in told.json["notes"][0]
    assert " rm " not in told.json["notes"][0]
    if agent == "gemini":  # the hooks were in the same file
        assert _settings(place).keys() == {"mcpServers"}
    else:
        assert place.read_text() == text
    assert not any("hook" in path for path in state_of(project))


@pytest.mark.parametrize(("agent", "path"), IN_PROJECT)
def test_settings_that_are_not_valid_are_refused_and_stay(
    agent: str, path: str, project: Path, cli: CommandLine
) -> None:
    place, _ = _of_the_user(project, path)
    place.write_text("= broken {")
    before = state_of(project)
    answer = cli("--json", "install", agent, "--mcp")
    assert answer.status == REFUSED
    assert f"{place} is not valid" in answer.error["message"]
    assert state_of(project) == before
    if agent == "gemini":
        return  # its hooks are in that file
    cli.json("install", agent)
    findings = {f["subject"] for f in cli("--json", "doctor").json["findings"]}
    assert f"{agent} MCP (project)" not in findings
    cli.json("uninstall", agent)
    assert state_of(project) == before


@pytest.mark.parametrize(("agent", "path"), IN_PROJECT)
def test_settings_that_are_read_only_are_refused_before_anything_is_written(
    agent: str, path: str, project: Path, cli: CommandLine, ordinary_permissions: None
) -> None:
    place, _ = _of_the_user(project, path)
    place.chmod(0o444)
    before = state_of(project)
    answer = cli("--json", "install", agent, "--mcp")
    assert answer.status == REFUSED
    assert f"{place} is read-only" in answer.error["message"]
    assert state_of(project) == before


@pytest.mark.parametrize(("agent", "path"), [IN_PROJECT[0], IN_PROJECT[1], IN_PROJECT[-1]])
def test_doctor_tells_whether_the_server_is_in_order(
    agent: str, path: str, project: Path, cli: CommandLine
) -> None:
    cli.json("install", agent, "--mcp")
    place, subject = project / path, f"{agent} MCP (project)"
    findings = {f["subject"]: f for f in cli("--json", "doctor").json["findings"]}
    assert (findings[subject]["status"], str(place) in findings[subject]["finding"]) == ("ok", True)
    text = place.read_text()
    words = _entry(place)["command"]
    program = words[0] if isinstance(words, list) else words
    place.write_text(text.replace(program, "/old/bin/holdfast"))
    findings = {f["subject"]: f for f in cli("--json", "doctor").json["findings"]}
    assert findings[subject]["cure"] == f"holdfast install {agent} --project --mcp"
    cli.json("install", agent, "--mcp")
    assert _settings(place)
    assert "/old/bin" not in place.read_text()
    place.write_text("= { " + text)
    answer = cli("--json", "doctor")
    assert answer.status == LEFT
    findings = {f["subject"]: f for f in answer.json["findings"]}
    assert "is not valid" in findings[subject]["finding"]
    assert cli("--json", "uninstall", agent).status == REFUSED


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("goose", "--project"), "extensions:"),
        (("goose", "--user"), '"type": "stdio"'),
        (("cline", "--project"), "holdfast install cline --user --mcp"),
    ],
)
def test_where_nothing_can_be_edited_the_way_out_is_reported(
    arguments: tuple[str, str], hint: str, project: Path, cli: CommandLine
) -> None:
    before = state_of(project)
    answer = cli("--json", "install", *arguments, "--mcp")
    assert answer.status == REFUSED
    assert hint in answer.error["hint"]
    assert state_of(project) == before


def test_opencode_settings_with_another_name_are_the_ones_that_are_edited(
    project: Path, cli: CommandLine
) -> None:
    place = project / "opencode.jsonc"
    place.write_text('{\n  "theme": "dark", // mine\n}\n')
    cli.json("install", "opencode", "--mcp")
    assert "holdfast" in place.read_text()
    other = project / "opencode.json"
    other.write_text("{}\n")
    cli.json("install", "opencode", "--mcp")
    assert other.read_text() == "{}\n"
    cli.json("uninstall", "opencode")
    assert place.read_text() == '{\n  "theme": "dark", // mine\n}\n'


@pytest.mark.parametrize(
    ("agent", "variable", "path"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot", "COPILOT_HOME", "mcp-config.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("cline", "CLINE_MCP_SETTINGS_PATH", ""),
    ],
)
def test_where_the_environment_says_that_settings_are_they_are_written(
    agent: str, variable: str, path: str, cli: CommandLine, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv(variable, str(tmp_path / "own"))
    shown = cli.json("install", agent, "--user", "--mcp", "--dry-run")
    assert str(tmp_path / "own" / path) in [file["path"] for file in shown["files"]]


def test_a_server_that_does_not_start_is_not_registered(
    project: Path, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_extra = tmp_path / "bin" / "holdfast"
    without_extra.parent.mkdir()
    without_extra.write_text('#!/bin/sh\n[ "$1" = hook ] && echo "{}" && exit 0\nexit 5\n')
    without_extra.chmod(0o755)
    monkeypatch.setattr(installation, "our_program", lambda: str(without_extra))
    before = state_of(project)
    answer = cli("--json", "install", "codex", "--mcp")
    assert answer.status == REFUSED
    assert "does not start; nothing was changed" in answer.error["message"]
    assert "pip install mcp" in answer.error["hint"]
    assert state_of(project) == before
    cli.json("install", "codex")


@pytest.mark.requirement("HK-1")
def test_settings_that_have_grown_large_are_edited_and_no_reason_to_worry(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    """Claude Code keeps the history of all projects beside its servers."""
    place = own_home / ".claude.json"
    history = "x" * (11 << 20)
    before = f'{{\n  "history": "{history}"\n}}\n'.encode()
    place.write_bytes(before)
    findings = json.loads(cli("--json", "doctor").out)["findings"]
    assert [f for f in findings if "claude" in f["subject"]] == []
    cli.json("install", "claude-code", "--user", "--mcp")
    assert "holdfast" in json.loads(place.read_bytes())["mcpServers"]
    cli.json("uninstall", "claude-code", "--user")
    assert place.read_bytes() == before


@pytest.mark.requirement("HK-1")
def test_settings_beyond_what_is_edited_are_left_with_advice_that_does_no_harm(
    project: Path, cli: CommandLine, own_home: Path
) -> None:
    place = own_home / ".claude.json"
    place.touch()
    os.truncate(place, 60 << 20)
    answer = cli("--json", "install", "claude-code", "--user", "--mcp")
    assert answer.status == 5
    assert "too large to edit" in answer.error["message"]
    assert "use the agent's own commands" in answer.error["hint"]
