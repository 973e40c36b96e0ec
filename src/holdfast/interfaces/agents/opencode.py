"""OpenCode: its hooks are JavaScript. Holdfast's plug-in forwards events and appends the answers.

The plug-in is the file `opencode.js` beside this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.agents.agent import Agent, Locations, Server, SettingsFile

if TYPE_CHECKING:
    from pathlib import Path


class OpenCode(Agent):
    name = "opencode"
    title = "OpenCode"
    programs = ("opencode",)
    spellings = ("open-code",)
    events: Mapping[str, EventKind] = {
        "toolexecutebefore": EventKind.BEFORE_TOOL,
        "toolexecuteafter": EventKind.AFTER_TOOL,
        "chatmessage": EventKind.MESSAGE,
        "experimentalsessioncompacting": EventKind.COMPACT,
        "sessioncreated": EventKind.SESSION_START,
        "sessionidle": EventKind.TURN_END,
        "sessiondeleted": EventKind.SESSION_END,
    }
    tools: Mapping[str, ToolKind] = {
        "bash": ToolKind.SHELL,
        "edit": ToolKind.EDIT,
        "multiedit": ToolKind.EDIT,
        "patch": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "write": ToolKind.WRITE,
        "todowrite": ToolKind.OTHER,
    }
    carries = frozenset({EventKind.MESSAGE, EventKind.BEFORE_TOOL})
    own_file_marks = ('"hook", "opencode"',)

    def render(self, event: AgentEvent, reply: Reply) -> str:
        if not reply.text:
            return "{}"
        shown = {"notice": reply.for_user} if reply.for_user else {}
        return json.dumps({**shown, "context": reply.text})

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        base = _own(at)
        if scope == "project":
            base = at.workspace / ".opencode"
        return [SettingsFile(base / "plugins" / "holdfast.js", plugin(program))]

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        base = at.workspace if scope == "project" else _own(at)
        return [base / "opencode.json", base / "opencode.jsonc"]

    def server(self, program: str) -> Server:
        import shlex

        words = [*shlex.split(program), "mcp"]
        return Server("mcp", {"type": "local", "command": words, "enabled": True})

    def program_in(self, text: str) -> str | None:
        import shlex

        listed = re.search(r"^const COMMAND = (\[.*\])\r?$", text, re.MULTILINE)
        try:
            return None if listed is None else shlex.join(json.loads(listed[1]))
        except (ValueError, TypeError):
            return None

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        return ("AGENTS.md", ".opencode", "opencode.json", "opencode.jsonc")


AGENT = OpenCode()


def plugin(program: str) -> str:
    """The plug-in, with the command that it calls."""
    import shlex
    from pathlib import Path

    from holdfast.interfaces.agent_setup.shipped_files import sealed

    text = Path(__file__).with_suffix(".js").read_text("utf-8")
    return sealed(text.replace('["holdfast"]', json.dumps(shlex.split(program))))


def _own(at: Locations) -> Path:
    return at.own("XDG_CONFIG_HOME", ".config") / "opencode"
