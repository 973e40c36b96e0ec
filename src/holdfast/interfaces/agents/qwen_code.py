"""Qwen Code: the common format, with its own tool names and trust rules.

Its models receive answers to a message or after a tool, but none before a tool. The message event
also occurs when tool results are sent to the model; it is then empty.

A transcript is `~/.qwen/projects/…/chats/<session>.jsonl`. A line has a `type`; `user`, `assistant`
and `tool_result` have a `message` of `parts`: texts, calls and their answers. A `user` line that no
person wrote has a `provenance` other than `real_user`. Other lines are internal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.agent_events import EventKind, ToolKind
from holdfast.interfaces.agents.agent import (
    END_SECONDS,
    HOOK_SECONDS,
    Agent,
    Entries,
    Locations,
    SettingsFile,
    Withheld,
    hook_command,
    hook_group,
    literal,
    own_directory,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.transcript_messages import TranscriptMessage

# `tool_call` runs a tool that was not offered to the model at first.
_CHANGING_TOOLS = (
    "^(edit|write_file|notebook_edit|run_shell_command|exec|monitor|image_gen|exit_worktree"
    "|tool_call|mcp__.*)$"
)
_CONTEXT = "<qwen:user-prompt-submit-context>"


class QwenCode(Agent):
    name = "qwen-code"
    title = "Qwen Code"
    programs = ("qwen",)
    spellings = ("qwen", "qwencode", "qwen-cli")
    tools: Mapping[str, ToolKind] = {
        "edit": ToolKind.EDIT,
        "write_file": ToolKind.WRITE,
        "notebook_edit": ToolKind.NOTEBOOK,
        "run_shell_command": ToolKind.SHELL,
        "exec": ToolKind.SHELL,
        "monitor": ToolKind.SHELL,
        "image_gen": ToolKind.WRITE,
        "todo_write": ToolKind.OTHER,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.AFTER_TOOL})
    project_variable = "QWEN_PROJECT_DIR"

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Only a typed message counts as one."""
        if payload.get("hook_event_name") != "UserPromptSubmit":
            return payload
        typed = payload.get("submitted_prompt") or payload.get("prompt")
        return {**payload, "prompt": typed} if typed else {**payload, "hook_event_name": "Continue"}

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        return [SettingsFile(_settings(scope, at) / "settings.json")]

    def hook_entries(self, program: str) -> Entries:
        """The timeout is in milliseconds. Early versions accept nothing else, and later ones read a
        number of that size as milliseconds."""
        command = hook_command(program, self.name)
        wait: dict[str, Any] = {"name": "holdfast", "timeout": HOOK_SECONDS * 1000}
        waits = [hook_group(command, **wait)]
        changing = [hook_group(command, _CHANGING_TOOLS, **wait)]
        return {
            "SessionStart": waits,
            "UserPromptSubmit": waits,
            "PreToolUse": changing,
            "PostToolUse": changing,
            "PostToolUseFailure": changing,
            "PreCompact": waits,
            "Stop": waits,
            "SessionEnd": [hook_group(command, **{**wait, "timeout": END_SECONDS * 1000})],
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        return [_settings(scope, at) / "settings.json"]

    def own_skills(self, scope: str, at: Locations) -> Path:
        return _settings(scope, at) / "skills"

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        from holdfast.interfaces.agent_setup.settings_file import is_trusted_folder, json_settings

        own = _settings("user", at)
        for file in (own / "settings.json", _settings("project", at) / "settings.json"):
            if json_settings(file).get("disableAllHooks") is True:
                return Withheld(f"disableAllHooks is set in {file}", "remove that from the file")
        security = json_settings(own / "settings.json").get("security")
        asking = security.get("folderTrust") if isinstance(security, dict) else None
        if scope == "user" or not isinstance(asking, dict) or asking.get("enabled") is not True:
            return None
        trust = at.own("QWEN_CODE_TRUSTED_FOLDERS_PATH", str(own / "trustedFolders.json"))
        if is_trusted_folder(trust, at.workspace):
            return None
        return Withheld(
            "Qwen Code does not trust this directory yet and skips its hooks",
            "start qwen here once and trust the directory, or type /trust in it",
        )

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(workspace))
        home = own_directory(environment, "QWEN_HOME", "~/.qwen")
        kept = own_directory(environment, "QWEN_RUNTIME_DIR", home)
        return ("QWEN.md", "AGENTS.md", ".qwen", f"{kept}/projects/{literal(slug)}/memory")

    def transcript_message(self, line: Mapping[str, Any]) -> TranscriptMessage | None:
        from holdfast.domain import transcript_messages as transcript
        from holdfast.domain.story import Role

        spoken = line.get("message")
        role = _role(line)
        if role is None or not isinstance(spoken, dict):
            return None
        parts = list(_parts(spoken.get("parts")))
        calls = tuple(
            transcript.tool_call(one.get("id"), one.get("name"), one.get("args"))
            for one in _named(parts, "functionCall")
        )
        answers = list(_named(parts, "functionResponse"))
        texts = [*map(_text, parts), *(_answer(one) for one in answers)]
        content = "\n".join(text for text in texts if text)
        if not content and not calls and not answers:
            return None  # thinking only
        ids = (answer.get("id") for answer in answers)
        return transcript.message_of_line("qwen", line, Role(role), content, calls, ids)


AGENT = QwenCode()


def _settings(scope: str, at: Locations) -> Path:
    return at.workspace / ".qwen" if scope == "project" else at.own("QWEN_HOME", ".qwen")


def _role(line: Mapping[str, Any]) -> str | None:
    match line.get("type"):
        case "user":
            return "user" if line.get("provenance", "real_user") == "real_user" else "system"
        case "assistant":
            return "assistant"
        case "tool_result":
            return "tool"
        case _:
            return None


def _parts(parts: object) -> Iterator[Mapping[str, Any]]:
    yield from (part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()


def _named(parts: list[Mapping[str, Any]], name: str) -> Iterator[Mapping[str, Any]]:
    yield from (part[name] for part in parts if isinstance(part.get(name), dict))


def _text(part: Mapping[str, Any]) -> str:
    """The visible part of a message part, without thoughts and text that hooks added."""
    from holdfast.domain.transcript_messages import text_of

    text = text_of(part.get("text"))
    return "" if part.get("thought") is True or text.startswith(_CONTEXT) else text


def _answer(answer: Mapping[str, Any]) -> str:
    from holdfast.domain.transcript_messages import text_of

    said = answer.get("response")
    return text_of(said.get("output") or said.get("error")) if isinstance(said, dict) else ""
