"""How our MCP server stands in the settings of each agent, as data.

What `install --mcp` writes, `uninstall` looks for and `doctor` compares with. What is ours is told
by the whole entry: with anything else in it, it is the user's.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.values.classes import dataclass

NAME = "holdfast"


@dataclass(frozen=True, slots=True)
class Server:
    """The entry under our name, and the table that it stands in. `toml`: the file is no JSON."""

    table: str
    entry: Mapping[str, Any]
    toml: bool = False


def server_of(agent: str, program: str) -> Server:
    words = [*shlex.split(program), "mcp"]
    if agent == "cursor":
        words.append("${workspaceFolder}")  # it need not start servers in the project
    started = {"command": words[0], "args": words[1:]}
    match agent:
        case "codex":
            return Server("mcp_servers", started, toml=True)
        case "copilot":
            return Server("mcpServers", {"type": "local", **started, "tools": ["*"]})
        case "opencode":
            return Server("mcp", {"type": "local", "command": words, "enabled": True})
        case _:
            return Server("mcpServers", started)


def called_by(words: Sequence[str]) -> int | None:
    """How many words call our program, in whatever way `install` writes or wrote it; None when it
    is another one."""
    if words and (words[0] == "holdfast" or words[0].endswith("/holdfast")):
        return 1
    for way in (["-P", "-m", "holdfast"], ["-m", "holdfast"]):
        if words[1 : 1 + len(way)] == way and "/" in words[0]:
            return 1 + len(way)
    return None


def is_ours(found: Any, server: Server) -> bool:
    """Whether an entry is what `install` writes, whichever way the program is called."""
    if not isinstance(found, dict) or found.keys() != server.entry.keys():
        return False
    rest = [key for key in found if key not in ("command", "args")]
    if any(found[key] != server.entry[key] for key in rest):
        return False
    given = _arguments(found)
    return given is not None and given == _arguments(server.entry)


def program_of(found: Mapping[str, Any]) -> str:
    """The words by which an entry of ours calls us."""
    command, more = found.get("command"), found.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *_listed(more)]
    return shlex.join(words[: called_by(words)])


def by_hand(agent: str, program: str) -> tuple[str, str]:
    """Why the settings of an agent are not edited, and what to do instead."""
    if agent == "cline":
        return (
            "Cline has no MCP servers for one project",
            "register it for all of them: holdfast install cline --user --mcp",
        )
    words = [*shlex.split(program), "mcp"]
    entry = {"type": "stdio", "name": NAME, "cmd": words[0], "args": words[1:], "enabled": True}
    line = f"  {NAME}: {json.dumps({**entry, 'timeout': 300}, ensure_ascii=False)}"
    way = (
        f"install the hooks without --mcp: holdfast install {agent}; for the server, add this line "
        f"under `extensions:` in ~/.config/goose/config.yaml: {line}"
    )
    return f"the settings of {agent} are YAML, which is not edited", way


def _arguments(entry: Mapping[str, Any]) -> list[str] | None:
    """What a program of ours is called with; None when it is not ours."""
    command, more = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *_listed(more)]
    if not all(isinstance(word, str) for word in words):
        return None
    called = called_by(words)
    return None if called is None else words[called:]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [None]
