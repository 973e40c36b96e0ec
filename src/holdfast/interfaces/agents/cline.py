"""Cline: one script per event; event data is nested under the event's name.

A resumed conversation gets a new `taskId`, and so does each subagent. Their session id is given
beside it. An agent starts with each user message. The typed text is missing, unless the message was
sent while the agent was working.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.interfaces.agents.agent import Agent, Locations, SettingsFile

if TYPE_CHECKING:
    from pathlib import Path

_STARTS = ("agent_start", "agent_resume")
_NESTED = ("preToolUse", "postToolUse", "userPromptSubmit", "tool_call", "tool_result")
_SCRIPTS = (
    "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse PreCompact "
    "TaskComplete SessionShutdown"
).split()
_SIGN = "# holdfast: saves the workspace before Cline changes it."
_CALL = " hook cline "
_YES = """|| echo '{"cancel": false}'"""


class Cline(Agent):
    name = "cline"
    title = "Cline"
    programs = ("cline",)
    events: Mapping[str, EventKind] = {
        "agentstart": EventKind.MESSAGE,
        "agentresume": EventKind.MESSAGE,
        "toolcall": EventKind.BEFORE_TOOL,
        "toolresult": EventKind.AFTER_TOOL,
        "promptsubmit": EventKind.MESSAGE,
        "agentend": EventKind.TURN_END,
        "taskcomplete": EventKind.TURN_END,
        "sessionshutdown": EventKind.SESSION_END,
    }
    tools: Mapping[str, ToolKind] = {
        "execute_command": ToolKind.SHELL,
        "run_commands": ToolKind.SHELL,
        "write_to_file": ToolKind.WRITE,
        "replace_in_file": ToolKind.EDIT,
        "apply_patch": ToolKind.EDIT,
        "editor": ToolKind.EDIT,
    }
    carries = frozenset({EventKind.BEFORE_TOOL})  # answers to a start do not reach the model

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        flat = dict(payload)
        for name in _NESTED:
            inner = payload.get(name)
            if isinstance(inner, dict):
                flat.update(inner)
                if "input" in inner:
                    flat["parameters"] = inner["input"]
                if "name" in inner:
                    flat["toolName"] = inner["name"]
                if "id" in inner:
                    flat["tool_use_id"] = inner["id"]
        context = payload.get("sessionContext")
        if isinstance(context, dict) and isinstance(context.get("rootSessionId"), str):
            flat["session_id"] = context["rootSessionId"]
        if payload.get("hookName") in _STARTS:
            if payload.get("parent_agent_id"):
                flat["hookName"] = "session_start"  # a subagent's work, not a message
            else:
                flat["turn_id"] = payload.get("timestamp")
        for part in flat["output"] if isinstance(flat.get("output"), list) else ():
            if isinstance(part, dict) and part.get("success") is False:  # one of several commands
                flat |= {"success": False, "result": part.get("error") or "failed"}
        return flat

    def render(self, event: AgentEvent, reply: Reply) -> str:
        if not reply.text:
            return json.dumps({"cancel": False})
        return json.dumps({"cancel": False, "contextModification": reply.text})

    def is_sender(self, payload: Mapping[str, Any]) -> bool:
        return "clineVersion" in payload

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        from holdfast.interfaces.agent_setup.shipped_files import sealed

        script = sealed(f"""#!/bin/sh
{_SIGN} "holdfast uninstall cline" removes this.
{program}{_CALL}{_YES}
""")
        base = at.home / "Documents/Cline/Hooks"
        if scope == "project":
            base = at.workspace / ".clinerules" / "hooks"
        return [SettingsFile(base / event, script, executable=True) for event in _SCRIPTS]

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        if scope == "project":
            return []
        default = ".cline/data/settings/cline_mcp_settings.json"
        return [at.own("CLINE_MCP_SETTINGS_PATH", default)]

    def server_by_hand(self, program: str) -> tuple[str, str]:
        return (
            "Cline does not support MCP servers for a single project",
            "register it for all projects: holdfast install cline --user --mcp",
        )

    def without_own_lines(self, text: str) -> str | None:
        lines = text.splitlines(keepends=True)
        signs = [line for line in lines if line.startswith(_SIGN)]
        commands = [line for line in lines if _is_command(line)]
        naming = [line for line in lines if "holdfast" in line]
        if len(signs) != 1 or len(commands) != 1 or naming != [*signs, *commands]:
            return None
        rest = "".join(line for line in lines if line not in (signs[0], commands[0]))
        return "" if rest.split() == ["#!/bin/sh"] else rest

    def program_in(self, text: str) -> str | None:
        found = [line for line in text.splitlines() if _is_command(line)]
        return found[0].partition(_CALL)[0] if found else None

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        return (".clinerules", ".cline", "memory-bank")


AGENT = Cline()


def _is_command(line: str) -> bool:
    import shlex

    from holdfast.interfaces.agent_setup.holdfast_command import own_command_length

    called, hook, rest = line.rstrip("\n").partition(_CALL)
    try:
        words = shlex.split(called)
    except ValueError:
        return False
    return bool(hook) and rest == _YES and own_command_length(words) == len(words)
