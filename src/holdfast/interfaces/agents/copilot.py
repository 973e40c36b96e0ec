"""GitHub Copilot: camel case, arguments as an object or a JSON string, and no tool call ids.

Copilot denies a tool if the hook before it exits with a non-zero status, so such a hook must never
fail. It also runs Claude Code's hooks, with its own payload.
"""

from __future__ import annotations

import json
import os
import re
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
    Withheld,
    hook_command,
)

if TYPE_CHECKING:
    from pathlib import Path

_EXIT = re.compile(r"<shellId: [^<>]* completed with exit code (\d+)>\s*\Z")
_NOT_ITS_OWN = ("permission_mode", "tool_use_id", "prompt_id")
_EVENTS = (
    "sessionStart userPromptSubmitted preToolUse postToolUse postToolUseFailure preCompact "
    "agentStop sessionEnd"
).split()


class Copilot(Agent):
    name = "copilot"
    title = "GitHub Copilot"
    programs = ("copilot",)
    spellings = ("github-copilot", "copilot-cli")
    events: Mapping[str, EventKind] = {
        "userpromptsubmitted": EventKind.MESSAGE,
        "agentstop": EventKind.TURN_END,
    }
    tools: Mapping[str, ToolKind] = {
        "bash": ToolKind.SHELL,
        "powershell": ToolKind.SHELL,
        "Bash": ToolKind.SHELL,
        "create": ToolKind.WRITE,
        "Write": ToolKind.WRITE,
        "edit": ToolKind.EDIT,
        "Edit": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "read_bash": ToolKind.OTHER,
        "write_bash": ToolKind.SHELL,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.AFTER_TOOL})
    runs_hooks_of = ("claude-code",)

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload does not name its event. If the command line does not either, it is inferred
        from the fields."""
        payload = _with_exit(payload)
        if any(name in payload for name in ("hook_event_name", "hookEventName")):
            return payload
        signs = (
            ("stopReason", "agentStop"),
            ("toolResult", "postToolUse"),
            ("tool_result", "postToolUse"),
            ("error", "postToolUseFailure"),
            ("toolName", "preToolUse"),
            ("tool_name", "preToolUse"),
            ("prompt", "userPromptSubmitted"),
            ("source", "sessionStart"),
            ("reason", "sessionEnd"),
        )
        named = next((event for sign, event in signs if sign in payload), "")
        return {**payload, "hook_event_name": named}

    def render(self, event: AgentEvent, reply: Reply) -> str:
        return json.dumps({"additionalContext": reply.text}) if reply.text else "{}"

    def may_be_sender(self, payload: Mapping[str, Any]) -> bool:
        """Copilot's payload for other agents' hooks has a time and none of the ids. It has the
        transcript only at the end of a turn."""
        if "toolName" in payload and "toolArgs" in payload:
            return True
        if "timestamp" not in payload or any(name in payload for name in _NOT_ITS_OWN):
            return False
        return "transcript_path" not in payload or "stop_reason" in payload

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        base = at.workspace / ".github" if scope == "project" else _own(at)
        return [SettingsFile(base / "hooks" / "holdfast.json", versioned=True)]

    def hook_entries(self, program: str) -> Entries:
        """The payload does not name its event, so the command does. A failed hook denies the tool,
        so the command must succeed even on a machine without Holdfast."""
        return {
            event: [
                {
                    "type": "command",
                    "bash": hook_command(program, self.name, event) + " || true",
                    "timeoutSec": HOOK_SECONDS,
                }
            ]
            for event in _EVENTS
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        if scope == "project":
            return [at.workspace / ".github" / "mcp.json"]
        return [_own(at) / "mcp-config.json"]

    def server(self, program: str) -> Server:
        started = super().server(program).entry
        return Server("mcpServers", {"type": "local", **started, "tools": ["*"]})

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        from holdfast.interfaces.agent_setup.settings_file import json_settings, texts

        own = _own(at)
        shared = at.workspace / ".github" / "copilot"
        places = [own / "settings.json", own / "config.json", path]
        places += [shared / "settings.json", shared / "settings.local.json"]
        for file in places:
            if json_settings(file).get("disableAllHooks") is True:
                return Withheld(f"disableAllHooks is set in {file}", "remove that from the file")
        if scope == "user" or at.environment.get("COPILOT_ALLOW_ALL") == "true":
            return None
        config = json_settings(own / "config.json")
        folders = [*texts(config.get("trustedFolders")), *texts(config.get("trusted_folders"))]
        if any(at.workspace.is_relative_to(os.path.realpath(folder)) for folder in folders):
            return None
        return Withheld(
            "Copilot does not trust this directory yet and skips its hooks; copilot -p does "
            "not ask",
            "start copilot here once and trust the directory permanently, or install the "
            "hooks for all projects: holdfast install copilot --user",
        )

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        return (
            ".github/copilot-instructions.md",
            ".github/instructions",
            ".github/copilot",
            ".github/hooks",
            "AGENTS.md",
        )


AGENT = Copilot()


def _own(at: Locations) -> Path:
    return at.own("COPILOT_HOME", ".copilot")


def _with_exit(payload: dict[str, Any]) -> dict[str, Any]:
    """Copilot reports failed commands as successes; the exit status is only in the model's text."""
    for name, text in (("toolResult", "textResultForLlm"), ("tool_result", "text_result_for_llm")):
        result = payload.get(name)
        if isinstance(result, dict) and (ended := _EXIT.search(str(result.get(text, "")))):
            return {**payload, name: {**result, "exit_code": int(ended[1])}}
    return payload
