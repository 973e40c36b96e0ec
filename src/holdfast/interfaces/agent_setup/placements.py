"""Where each agent keeps its settings, and what ours become there: a plan, file by file.

One location per agent and scope, since agents that read several run the hooks of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.interfaces.agent_setup.mcp_server_edit import Server, server_of
from holdfast.interfaces.agent_setup.shipped_files import (
    CLINE_EVENTS,
    cline_script,
    codex_policies,
    goose_manifest,
    opencode_plugin,
    skills,
)
from holdfast.values.classes import dataclass

SCOPES = ("project", "user")


@dataclass(frozen=True, slots=True)
class Place:
    """One file. With `content` it is wholly ours; without, our entries are among others: `hooks`,
    and the MCP `server` where that is given. A `manifest` goes when nothing else is left in its
    directory."""

    path: Path
    content: str | None = None
    executable: bool = False
    versioned: bool = False
    manifest: bool = False
    hooks: bool = True
    server: Server | None = None


@dataclass(frozen=True, slots=True)
class Locations:
    """What paths are relative to: the workspace, the user's home, and where the environment says
    an agent keeps its own."""

    workspace: Path
    home: Path
    environment: Mapping[str, str]

    def own(self, variable: str, default: str) -> Path:
        chosen = self.environment.get(variable)
        return Path(chosen) if chosen else self.home / default


def places_of(agent: str, scope: str, at: Locations, program: str) -> list[Place]:
    """Every file that `install` of an agent is about, skills apart."""
    root = at.workspace if scope == "project" else None
    match agent:
        case "claude-code":
            base = root / ".claude" if root else at.own("CLAUDE_CONFIG_DIR", ".claude")
            return [Place(base / "settings.json")]
        case "codex":
            base = root / ".codex" if root else at.own("CODEX_HOME", ".codex")
            return [Place(base / "hooks.json")]
        case "gemini":
            return [Place((root or at.home) / ".gemini" / "settings.json")]
        case "cursor":
            return [Place((root or at.home) / ".cursor" / "hooks.json", versioned=True)]
        case "copilot":
            base = root / ".github" if root else at.own("COPILOT_HOME", ".copilot")
            return [Place(base / "hooks" / "holdfast.json", versioned=True)]
        case "opencode":
            base = root / ".opencode" if root else at.own("XDG_CONFIG_HOME", ".config") / "opencode"
            return [Place(base / "plugins" / "holdfast.js", opencode_plugin(program))]
        case "cline":
            base = root / ".clinerules" / "hooks" if root else at.home / "Documents/Cline/Hooks"
            script = cline_script(program)
            return [Place(base / event, script, executable=True) for event in CLINE_EVENTS]
        case "goose":
            base = (root or at.home) / ".agents" / "plugins" / "holdfast"
            return [
                Place(base / "plugin.json", goose_manifest(), manifest=True),
                Place(base / "hooks" / "hooks.json"),
            ]
        case _:
            raise KeyError(agent)


def server_places(agent: str, scope: str, at: Locations, program: str) -> list[Place]:
    """Where an agent may keep its MCP servers, the usual file first; none where that is not known
    or not a file that we edit."""
    server = server_of(agent, program)
    return [Place(path, hooks=False, server=server) for path in _server_files(agent, scope, at)]


def _server_files(agent: str, scope: str, at: Locations) -> list[Path]:
    root = at.workspace if scope == "project" else None
    match agent:
        case "claude-code":
            return [
                root / ".mcp.json" if root else at.own("CLAUDE_CONFIG_DIR", "") / ".claude.json"
            ]
        case "codex":
            return [(root / ".codex" if root else at.own("CODEX_HOME", ".codex")) / "config.toml"]
        case "gemini":
            return [(root or at.home) / ".gemini" / "settings.json"]
        case "cursor":
            return [(root or at.home) / ".cursor" / "mcp.json"]
        case "copilot":
            own = at.own("COPILOT_HOME", ".copilot") / "mcp-config.json"
            return [root / ".github" / "mcp.json" if root else own]
        case "opencode":
            base = root or at.own("XDG_CONFIG_HOME", ".config") / "opencode"
            return [base / "opencode.json", base / "opencode.jsonc"]
        case "cline" if root is None:
            default = ".cline/data/settings/cline_mcp_settings.json"
            return [at.own("CLINE_MCP_SETTINGS_PATH", default)]
        case _:
            return []


def skill_places(agent: str, scope: str, at: Locations) -> list[Place]:
    """The skills where the agent looks for them; most share one directory."""
    root = at.workspace if scope == "project" else at.home
    base = root / (".claude" if agent == "claude-code" else ".agents") / "skills"
    if agent == "claude-code" and scope == "user":
        base = at.own("CLAUDE_CONFIG_DIR", ".claude") / "skills"
    found = [Place(base / name / "SKILL.md", text) for name, text in skills().items()]
    if agent != "claude-code":
        found += [
            Place(base / name / "agents" / "openai.yaml", text)
            for name, text in codex_policies().items()
        ]
    return found
