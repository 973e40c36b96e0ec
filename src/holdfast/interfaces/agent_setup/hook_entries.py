"""Which events of which agent call Holdfast, as the entries of its settings.

Plain data: what `install` writes, `uninstall` looks for and `doctor` compares with.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from holdfast.interfaces.agent_setup.server_entries import called_by

_SECONDS = 120
_SHORT = 3

Entries = dict[str, list[dict[str, Any]]]
"""By event: the items of its list."""

_CLAUDE_TOOLS = "Edit|MultiEdit|Write|NotebookEdit|Bash|PowerShell"
_OF_SERVERS = "mcp__.*"
"""The tools of MCP servers, in a group of their own: names alone are compared as they are, with a
pattern among them each would be one."""


PLUGIN_PROGRAM = (
    "for i in 1 2 3 4 5 6 7 8 9 10; do command -v holdfast >/dev/null && break; sleep 0.2; done; "
    "holdfast"
)
"""The program in a plug-in, which has to find it by name: an upgrade takes it away for a moment. If
it stays away, the shell says so, and the agent shows that."""


def is_ours(command: Any, agent: str) -> bool:
    """Whether a command is one that `install` wrote, of this version or another, and nothing else:
    what somebody has added to it is theirs."""
    if not calls_us(command, agent):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    called = called_by(words)
    if called is None or words[called : called + 2] != ["hook", agent]:
        return False
    rest = words[called + 2 :]
    rest = rest[:-2] if rest[-2:] == ["||", "true"] else rest
    return len(rest) < 2 and all(word.isalnum() for word in rest)


def calls_us(command: Any, agent: str) -> bool:
    """Whether a command calls our hook for an agent, alone or among other things."""
    if not isinstance(command, str):
        return False
    called = rf"(?:^|[\s/'\"])holdfast['\"]?\s+hook\s+{re.escape(agent)}(?![\w-])"
    return re.search(called, command) is not None


def hook_command(program: str, agent: str, event: str | None = None) -> str:
    return f"{program} hook {agent}" + (f" {event}" if event else "")


def entries_of(agent: str, program: str) -> Entries:
    """What stands under `hooks` in the settings of an agent."""
    return _ENTRIES[agent](program)


def _group(command: str, matcher: Any = None, **more: Any) -> dict[str, Any]:
    handler = {"type": "command", "command": command, **more}
    return {"hooks": [handler]} if matcher is None else {"matcher": matcher, "hooks": [handler]}


def _groups(command: str, tools: str) -> list[dict[str, Any]]:
    return [_group(command, matcher, timeout=_SECONDS) for matcher in (tools, _OF_SERVERS)]


def _claude_code(program: str) -> Entries:
    command = hook_command(program, "claude-code")
    return {
        "SessionStart": [_group(command, timeout=_SECONDS)],
        "UserPromptSubmit": [_group(command, timeout=_SECONDS)],
        "PreToolUse": _groups(command, _CLAUDE_TOOLS),
        "PostToolUse": _groups(command, _CLAUDE_TOOLS),
        "PostToolUseFailure": _groups(command, _CLAUDE_TOOLS),
        "PreCompact": [_group(command, timeout=_SECONDS)],
        "Stop": [_group(command, timeout=_SECONDS)],
        "SessionEnd": [_group(command, timeout=_SHORT)],
    }


def _codex(program: str) -> Entries:
    command = hook_command(program, "codex")
    return {
        "SessionStart": [_group(command, timeout=_SECONDS)],
        "UserPromptSubmit": [_group(command, timeout=_SECONDS)],
        "PreToolUse": _groups(command, "Bash|apply_patch"),
        "PostToolUse": _groups(command, "Bash|apply_patch"),
        "PreCompact": [_group(command, timeout=_SECONDS)],
        "Stop": [_group(command, timeout=_SECONDS)],
        "SessionEnd": [_group(command, timeout=_SHORT)],
    }


def _gemini(program: str) -> Entries:
    command = hook_command(program, "gemini")
    waits: dict[str, Any] = {"name": "holdfast", "timeout": _SECONDS * 1000}
    tools = "write_file|replace|run_shell_command|mcp_.*"
    return {
        "SessionStart": [_group(command, **waits)],
        "BeforeAgent": [_group(command, **waits)],
        "BeforeTool": [_group(command, tools, **waits)],
        "AfterTool": [_group(command, tools, **waits)],
        "PreCompress": [_group(command, **waits)],
        "AfterAgent": [_group(command, **waits)],
        "SessionEnd": [_group(command, **waits)],
    }


def _cursor(program: str) -> Entries:
    command = hook_command(program, "cursor")
    waits = {"command": command, "timeout": _SECONDS}
    tools = "Shell|Write|Delete|EditNotebook|MCP:.*"
    return {
        "sessionStart": [waits],
        "beforeSubmitPrompt": [waits],
        "preToolUse": [{**waits, "matcher": tools}],
        "postToolUse": [{**waits, "matcher": tools}],
        "postToolUseFailure": [{**waits, "matcher": tools}],
        "preCompact": [waits],
        "stop": [waits],
        "sessionEnd": [waits],
    }


def _copilot(program: str) -> Entries:
    """A payload does not name its event, so the command does. A hook before a tool that fails
    denies it, so that a machine without Holdfast must not fail."""
    events = (
        "sessionStart userPromptSubmitted preToolUse postToolUse postToolUseFailure preCompact "
        "agentStop sessionEnd"
    ).split()
    return {
        event: [
            {
                "type": "command",
                "bash": hook_command(program, "copilot", event) + " || true",
                "timeoutSec": _SECONDS,
            }
        ]
        for event in events
    }


def _goose(program: str) -> Entries:
    """Every tool is one of an extension, so that all of them call."""
    command = hook_command(program, "goose")
    return {
        "SessionStart": [_group(command, timeout=_SECONDS)],
        "UserPromptSubmit": [_group(command, timeout=_SECONDS)],
        "PreToolUse": [_group(command, timeout=_SECONDS)],
        "PostToolUse": [_group(command, timeout=_SECONDS)],
        "PostToolUseFailure": [_group(command, timeout=_SECONDS)],
        "Stop": [_group(command, timeout=_SECONDS)],
        "SessionEnd": [_group(command, timeout=_SECONDS)],
    }


_ENTRIES = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "cursor": _cursor,
    "copilot": _copilot,
    "goose": _goose,
}
