"""How each agent is set up for a stub model, without a person, and how it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FILES_SERVER = Path(__file__).with_name("files_server.py")
PROMPT = "Tidy the project up"
_PATIENCE_S = 180
_SERVER = {"command": sys.executable, "args": [str(FILES_SERVER)]}


class Desk(NamedTuple):
    """Where an agent works: the project, a home of its own, and the model."""

    project: Path
    home: Path
    url: str
    programs: Path


class RealAgent(NamedTuple):
    """`prepare` writes settings; `words` is its command line, with those of `again` for the same
    conversation, if it takes one up without a person; `environment` is added to what it has."""

    program: str
    prepare: Callable[[Desk], None]
    words: Callable[[Desk, list[str]], list[str]]
    environment: Callable[[Desk], Mapping[str, str]]
    again: Sequence[str]


def run(agent: RealAgent, desk: Desk, *, again: bool = False) -> subprocess.CompletedProcess[str]:
    """One message to the agent, in an environment of nothing but what it needs."""
    words = agent.words(desk, [*agent.again] if again else [])
    return _run(desk, agent.program, words, agent.environment(desk))


def _run(
    desk: Desk, program: str, words: list[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    names = ("HOLDFAST_HOME", "LANG", "XDG_RUNTIME_DIR")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    return subprocess.run(
        [str(desk.programs / program), *words],
        cwd=desk.project,
        env={
            "PATH": f"{node}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(desk.home),
            "TERM": "dumb",
            **kept,
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )


def tidy_up(desk: Desk) -> None:
    """Cline leaves a process of its own behind."""
    if (desk.home / ".cline").exists():
        _run(desk, "cline", ["hub", "stop"], {})


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def _claude_code(desk: Desk) -> None:
    _write(desk.home / "servers.json", {"mcpServers": {"files": {"type": "stdio", **_SERVER}}})


def _codex(desk: Desk) -> None:
    config = desk.home / ".codex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f"""model = "stub"
model_provider = "stub"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.stub]
name = "stub"
base_url = "{desk.url}/v1"
env_key = "STUB_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.files]
command = {json.dumps(_SERVER["command"])}
args = {json.dumps(_SERVER["args"])}
default_tools_approval_mode = "approve"

[projects.{json.dumps(str(desk.project))}]
trust_level = "trusted"
"""
    )


def _gemini(desk: Desk) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": {"files": {**_SERVER, "trust": True}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    _write(desk.home / ".gemini" / "settings.json", settings)
    _write(desk.home / ".gemini" / "trustedFolders.json", {str(desk.project): "TRUST_FOLDER"})


def _copilot(desk: Desk) -> None:
    server = {"type": "local", **_SERVER, "tools": ["*"]}
    _write(desk.home / ".copilot" / "mcp-config.json", {"mcpServers": {"files": server}})
    _write(desk.home / ".copilot" / "config.json", {"trustedFolders": [str(desk.project)]})


def _opencode(desk: Desk) -> None:
    model = {"name": "stub", "tool_call": True, "limit": {"context": 100000, "output": 10000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{desk.url}/v1", "apiKey": "stub"},
        "models": {"stub": model},
    }
    words = [_SERVER["command"], *_SERVER["args"]]
    settings = {
        "provider": {"stub": provider},
        "model": "stub/stub",
        "small_model": "stub/stub",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"*": "allow"},
        "mcp": {"files": {"type": "local", "command": words, "enabled": True}},
    }
    _write(desk.home / ".config" / "opencode" / "opencode.json", settings)


def _cline(desk: Desk) -> None:
    words = ["auth", "openai-compatible", "--apikey", "stub", "--modelid", "stub"]
    _run(desk, "cline", [*words, "--baseurl", f"{desk.url}/v1"], {}).check_returncode()
    settings = {"mcpServers": {"files": {**_SERVER, "disabled": False, "autoApprove": ["*"]}}}
    _write(desk.home / ".cline/data/settings/cline_mcp_settings.json", settings)


def _qwen_code(desk: Desk) -> None:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "mcpServers": {"files": {**_SERVER, "trust": True}},
        "tools": {"toolSearch": {"enabled": False}},  # tools of servers are offered at once
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _write(desk.home / ".qwen" / "settings.json", settings)


AGENTS = {
    "claude-code": RealAgent(
        "claude",
        _claude_code,
        lambda desk, more: [
            *(*more, "-p", PROMPT, "--model", "stub", "--strict-mcp-config"),
            *("--mcp-config", str(desk.home / "servers.json")),
            *("--allowedTools", "Bash", "Write", "Edit", "mcp__files__write_file"),
        ],
        lambda desk: {
            "ANTHROPIC_BASE_URL": desk.url,
            "ANTHROPIC_API_KEY": "stub",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ENABLE_TOOL_SEARCH": "false",  # tools of servers are offered at once
            "MCP_CONNECTION_NONBLOCKING": "false",
        },
        ("--continue",),
    ),
    "codex": RealAgent(
        "codex",
        _codex,
        lambda desk, more: ["exec", "--skip-git-repo-check", *more, PROMPT],
        lambda desk: {"STUB_KEY": "stub"},
        ("resume", "--last"),
    ),
    "gemini": RealAgent(
        "gemini",
        _gemini,
        lambda desk, more: [
            *(*more, "-p", PROMPT, "-m", "gemini-2.5-flash", "--approval-mode", "yolo")
        ],
        lambda desk: {
            "GEMINI_API_KEY": "stub",
            "GOOGLE_GEMINI_BASE_URL": desk.url,
        },
        ("--resume", "latest"),
    ),
    "copilot": RealAgent(
        "copilot",
        _copilot,
        lambda desk, more: [*more, "-p", PROMPT, "--allow-all-tools", "--model", "stub"],
        lambda desk: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": f"{desk.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "stub",
            "COPILOT_MODEL": "stub",
            "COPILOT_AUTO_UPDATE": "false",
        },
        ("--continue",),
    ),
    "opencode": RealAgent(
        "opencode",
        _opencode,
        lambda desk, more: ["run", *more, "-m", "stub/stub", PROMPT],
        lambda desk: {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        ("--continue",),
    ),
    "cline": RealAgent(
        "cline",
        _cline,
        lambda desk, more: [*(*more, "-P", "openai-compatible", "-m", "stub", "-t", "120", PROMPT)],
        lambda desk: {},
        (),  # with `--id` it wants a terminal
    ),
    "qwen-code": RealAgent(
        "qwen",
        _qwen_code,
        lambda desk, more: [*more, "-p", PROMPT, "--approval-mode", "yolo"],
        lambda desk: {
            "OPENAI_API_KEY": "stub",
            "OPENAI_BASE_URL": f"{desk.url}/v1",
            "OPENAI_MODEL": "stub",
            "QWEN_CODE_LEGACY_MCP_BLOCKING": "1",
        },
        ("--continue",),
    ),
}
