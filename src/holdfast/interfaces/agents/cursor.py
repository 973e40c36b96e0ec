"""Cursor: camel case names. An empty answer counts as a failed hook, so the minimum is `{}`.

It also runs hooks from `.claude/settings.json`, with the same payload as its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.agents.agent import (
    HOOK_SECONDS,
    Agent,
    Entries,
    Locations,
    Server,
    SettingsFile,
    hook_command,
)

if TYPE_CHECKING:
    from pathlib import Path


class Cursor(Agent):
    name = "cursor"
    title = "Cursor"
    programs = ("cursor-agent",)
    events: Mapping[str, EventKind] = {
        "beforesubmitprompt": EventKind.MESSAGE,
        "beforeshellexecution": EventKind.BEFORE_TOOL,
        "aftershellexecution": EventKind.AFTER_TOOL,
        "afterfileedit": EventKind.AFTER_TOOL,
    }
    tools: Mapping[str, ToolKind] = {
        "Shell": ToolKind.SHELL,
        "Write": ToolKind.WRITE,
        "Edit": ToolKind.EDIT,
        "Delete": ToolKind.WRITE,
        "EditNotebook": ToolKind.NOTEBOOK,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL})
    project_variable = "CURSOR_PROJECT_DIR"
    runs_hooks_of = ("claude-code",)

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Shell events have the command at the top level."""
        if "command" in payload and "tool_name" not in payload:
            given = {"command": payload["command"]}
            return {**payload, "tool_name": "Shell", "tool_input": given}
        if "file_path" in payload and "tool_name" not in payload:
            given = {"file_path": payload["file_path"]}
            return {**payload, "tool_name": "Edit", "tool_input": given}
        return payload

    def render(self, event: AgentEvent, reply: Reply) -> str:
        if not reply.text:
            return "{}"
        shown = {"user_message": reply.for_user} if reply.for_user else {}
        return json.dumps({**shown, "additional_context": reply.text})

    def is_sender(self, payload: Mapping[str, Any]) -> bool:
        return "cursor_version" in payload

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        return [SettingsFile(at.root(scope) / ".cursor" / "hooks.json", versioned=True)]

    def hook_entries(self, program: str) -> Entries:
        wait = {"command": hook_command(program, self.name), "timeout": HOOK_SECONDS}
        changing = [{**wait, "matcher": "Shell|Write|Delete|EditNotebook|MCP:.*"}]
        return {
            "sessionStart": [wait],
            "beforeSubmitPrompt": [wait],
            "preToolUse": changing,
            "postToolUse": changing,
            "postToolUseFailure": changing,
            "preCompact": [wait],
            "stop": [wait],
            "sessionEnd": [wait],
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        return [at.root(scope) / ".cursor" / "mcp.json"]

    def server(self, program: str) -> Server:
        """Cursor may start servers outside the project, so the project is an argument."""
        server = super().server(program)
        arguments = [*server.entry["args"], "${workspaceFolder}"]
        return server._replace(entry={**server.entry, "args": arguments})

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        return (".cursor", ".cursorrules", "AGENTS.md")


AGENT = Cursor()
