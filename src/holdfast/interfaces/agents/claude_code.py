"""Claude Code: the wire format that most others follow.

A transcript is `~/.claude/projects/…/<session>.jsonl`. A line is an object with a `type`; `user`
and `assistant` have a `message` whose content is a text or a list of blocks. Other types are
internal: titles (`summary`), events (`system`), progress, file snapshots. Lines from a subagent
(`isSidechain`) are another conversation, and are skipped.

When the context is compacted, a `user` line marked `isCompactSummary` follows and the chain of
`parentUuid` restarts. Messages keep the order of the file. Their key is `uuid`, not that chain or a
number, so earlier messages are unaffected by a compaction.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.agent_events import EventKind, ToolKind
from holdfast.interfaces.agents.agent import (
    END_SECONDS,
    HOOK_SECONDS,
    PLUGIN_MANIFEST,
    PLUGIN_PROGRAM,
    Agent,
    Entries,
    Locations,
    SettingsFile,
    Withheld,
    hook_command,
    hook_group,
    literal,
    own_directory,
    tool_groups,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.transcript_messages import TranscriptMessage

_CHANGING_TOOLS = "Edit|MultiEdit|Write|NotebookEdit|Bash|PowerShell"
# A tuple, not a set: values from the file may be unhashable.
_SILENT_BLOCKS = ("thinking", "redacted_thinking", "tool_use", "tool_result")


class ClaudeCode(Agent):
    name = "claude-code"
    title = "Claude Code"
    programs = ("claude",)
    spellings = ("claude", "claudecode")
    tools: Mapping[str, ToolKind] = {
        "Edit": ToolKind.EDIT,
        "MultiEdit": ToolKind.EDIT,
        "Write": ToolKind.WRITE,
        "NotebookEdit": ToolKind.NOTEBOOK,
        "Bash": ToolKind.SHELL,
        "PowerShell": ToolKind.SHELL,
        "BashOutput": ToolKind.OTHER,
        "KillShell": ToolKind.OTHER,
        "TodoWrite": ToolKind.OTHER,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL})
    project_variable = "CLAUDE_PROJECT_DIR"
    hooks_run_by_others = True
    server_project_variable = "CLAUDE_PROJECT_DIR"
    server_session_variable = "CLAUDE_CODE_SESSION_ID"

    def is_sender(self, payload: Mapping[str, Any]) -> bool:
        return "prompt_id" in payload

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        return [SettingsFile(_settings(scope, at) / "settings.json")]

    def hook_entries(self, program: str) -> Entries:
        command = hook_command(program, self.name)
        waits = [hook_group(command, timeout=HOOK_SECONDS)]
        changing = tool_groups(command, _CHANGING_TOOLS)
        return {
            "SessionStart": waits,
            "UserPromptSubmit": waits,
            "PreToolUse": changing,
            "PostToolUse": changing,
            "PostToolUseFailure": changing,
            "PreCompact": waits,
            "Stop": waits,
            "SessionEnd": [hook_group(command, timeout=END_SECONDS)],
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        if scope == "project":
            return [at.workspace / ".mcp.json"]
        return [at.own("CLAUDE_CONFIG_DIR", "") / ".claude.json"]

    def own_skills(self, scope: str, at: Locations) -> Path:
        return _settings(scope, at) / "skills"

    def plugin_files(self) -> dict[str, Any]:
        """A directory that contains a plug-in is also a marketplace."""
        manifest = {**PLUGIN_MANIFEST, "author": {"name": "Holdfast"}}
        listed = {"name": "holdfast", "source": "./", "description": manifest["description"]}
        hooks = self.hook_entries(PLUGIN_PROGRAM)
        return {
            ".claude-plugin/plugin.json": manifest,
            ".claude-plugin/marketplace.json": {
                "name": "holdfast",
                "owner": {"name": "Holdfast"},
                "metadata": {"description": "Checkpoints for coding agents"},
                "plugins": [listed],
            },
            "hooks/hooks.json": {"description": "Checkpoints before every change", "hooks": hooks},
        }

    def plugin_record(self, at: Locations) -> Path:
        return _settings("user", at) / "plugins" / "installed_plugins.json"

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        from holdfast.interfaces.agent_setup.settings_file import json_settings

        project = _settings("project", at)
        system = "/etc/claude-code"
        if sys.platform == "darwin":
            system = "/Library/Application Support/ClaudeCode"
        managed = type(path)(system)
        said: Path | None = None
        for file in (
            _settings("user", at) / "settings.json",
            project / "settings.json",
            project / "settings.local.json",
            managed / "managed-settings.json",
        ):
            found = json_settings(file)
            if isinstance(found.get("disableAllHooks"), bool):
                said = file if found["disableAllHooks"] else None
            if file.parent == managed and found.get("allowManagedHooksOnly") is True:
                return Withheld(
                    f"allowManagedHooksOnly is set in {file}",
                    "ask the administrator of Claude Code to add the hooks there",
                )
        if said is None:
            return None
        return Withheld(f"disableAllHooks is set in {said}", "remove that from the file")

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(workspace))
        home = own_directory(environment, "CLAUDE_CONFIG_DIR", "~/.claude")
        return (
            "CLAUDE.md",
            "CLAUDE.local.md",
            ".claude",
            f"{home}/projects/{literal(slug)}/memory",
        )

    def transcript_message(self, line: Mapping[str, Any]) -> TranscriptMessage | None:
        from holdfast.domain import transcript_messages as transcript
        from holdfast.domain.story import Role

        spoken = line.get("message")
        if line.get("type") not in ("user", "assistant") or not isinstance(spoken, dict):
            return None
        if line.get("isSidechain") is True:
            return None
        blocks = list(_blocks(spoken.get("content")))
        content = "\n".join(part for block in blocks if (part := _visible(block)))
        calls = tuple(
            transcript.tool_call(block.get("id"), block.get("name"), block.get("input"))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        answered = [block for block in blocks if block.get("type") == "tool_result"]
        role = Role(_role(line, answered=bool(answered) and not content))
        if answered:
            results = "\n".join(text for block in answered if (text := _result(block)))
            content = f"{content}\n{results}" if content and results else content or results
        if not content and not calls and not answered:
            return None  # thinking only
        ids = (block.get("tool_use_id") for block in answered)
        return transcript.message_of_line("claude", line, role, content, calls, ids)


AGENT = ClaudeCode()


def _settings(scope: str, at: Locations) -> Path:
    if scope == "project":
        return at.workspace / ".claude"
    return at.own("CLAUDE_CONFIG_DIR", ".claude")


def _role(line: Mapping[str, Any], *, answered: bool) -> str:
    if line["type"] == "assistant":
        return "assistant"
    if line.get("isMeta") is True or line.get("isCompactSummary") is True:
        return "system"
    return "tool" if answered else "user"


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield {"type": "text", "text": block}
            elif isinstance(block, dict):
                yield block


def _visible(block: Mapping[str, Any]) -> str:
    """The visible part of a block. Pictures and unknown kinds become a placeholder."""
    from holdfast.domain.transcript_messages import text_of

    kind = block.get("type")
    if kind == "text":
        return text_of(block.get("text"))
    if kind in _SILENT_BLOCKS:
        return ""
    return f"[{text_of(kind)[:40] or 'unknown'}]"


def _result(block: Mapping[str, Any]) -> str:
    return "\n".join(part for inner in _blocks(block.get("content")) if (part := _visible(inner)))
