"""Gemini CLI: the common envelope with its own event names; only JSON may be printed.

Answers before a tool never reach the model; answers after a tool do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.agent_events import EventKind, ToolKind
from holdfast.interfaces.agents.agent import (
    HOOK_SECONDS,
    Agent,
    Entries,
    Locations,
    SettingsFile,
    Withheld,
    hook_command,
    hook_group,
)

if TYPE_CHECKING:
    from pathlib import Path

_OF_HOOKS = re.compile(r"\A(?:\s*<hook_context>.*?</hook_context>)+\s*", re.DOTALL)
# The line after a command's output; it exists only if the command failed.
_EXIT = re.compile(
    r"^Exit Code: (\d+)\n(?:(?:Signal|Background PIDs|Process Group PGID): .*\n)*\Z", re.M
)


class Gemini(Agent):
    name = "gemini"
    title = "Gemini CLI"
    programs = ("gemini",)
    spellings = ("gemini-cli",)
    events: Mapping[str, EventKind] = {
        "beforetool": EventKind.BEFORE_TOOL,
        "aftertool": EventKind.AFTER_TOOL,
        "beforeagent": EventKind.MESSAGE,
        "precompress": EventKind.COMPACT,
        "afteragent": EventKind.TURN_END,
    }
    tools: Mapping[str, ToolKind] = {
        "write_file": ToolKind.WRITE,
        "replace": ToolKind.EDIT,
        "run_shell_command": ToolKind.SHELL,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.AFTER_TOOL})
    project_variable = "GEMINI_PROJECT_DIR"

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Without a terminal, the session-start hooks' output comes before the message. A command's
        exit status is only in the model's text. Tool names contain the server."""
        flat = dict(payload)
        server = payload.get("mcp_context")
        if isinstance(server, dict) and server.get("tool_name"):
            # `mcp_SERVER_TOOL` does not show where the server's name ends
            flat["tool_name"] = f"mcp__{server.get('server_name')}__{server['tool_name']}"
        prompt, answer = payload.get("prompt"), payload.get("tool_response")
        if isinstance(prompt, str) and "<hook_context>" in prompt:
            flat["prompt"] = _OF_HOOKS.sub("", prompt)
        if isinstance(answer, dict) and payload.get("tool_name") == "run_shell_command":
            text = (
                str(answer.get("llmContent", "")).replace("</untrusted_context>", "").rstrip()
                + "\n"
            )
            if ended := _EXIT.search(text):
                flat["tool_response"] = {**answer, "exit_code": int(ended[1])}
        return flat

    def may_be_sender(self, payload: Mapping[str, Any]) -> bool:
        return payload.get("hook_event_name") in ("BeforeTool", "AfterTool", "BeforeAgent")

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        return [SettingsFile(at.root(scope) / ".gemini" / "settings.json")]

    def hook_entries(self, program: str) -> Entries:
        command = hook_command(program, self.name)
        wait: dict[str, Any] = {"name": "holdfast", "timeout": HOOK_SECONDS * 1000}
        waits = [hook_group(command, **wait)]
        tools = "write_file|replace|run_shell_command|mcp_.*"
        changing = [hook_group(command, tools, **wait)]
        return {
            "SessionStart": waits,
            "BeforeAgent": waits,
            "BeforeTool": changing,
            "AfterTool": changing,
            "PreCompress": waits,
            "AfterAgent": waits,
            "SessionEnd": waits,
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        return [at.root(scope) / ".gemini" / "settings.json"]

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        from holdfast.interfaces.agent_setup.settings_file import (
            is_trusted_folder,
            json_settings,
            texts,
        )

        own = at.own("GEMINI_CLI_HOME", "") / ".gemini"
        files = (own / "settings.json", at.workspace / ".gemini" / "settings.json")
        trusting: object = None
        for file in files:
            found = json_settings(file)
            switches = found.get("hooksConfig")
            switches = switches if isinstance(switches, dict) else {}
            if switches.get("enabled") is False:
                return Withheld(
                    f"hooksConfig.enabled is false in {file}", "remove that from the file"
                )
            if "holdfast" in texts(switches.get("disabled")):
                return Withheld(
                    f"hooksConfig.disabled names holdfast in {file}",
                    "type /hooks enable holdfast in gemini",
                )
            security = found.get("security")
            folder_trust = security.get("folderTrust") if isinstance(security, dict) else None
            if file.parent == own and isinstance(folder_trust, dict):
                trusting = folder_trust.get("enabled")
        if trusting is False or at.environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
            return None
        folders = at.environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
        trust = type(path)(folders) if folders else own / "trustedFolders.json"
        if is_trusted_folder(trust, at.workspace):
            return None
        return Withheld(
            "Gemini does not trust this directory yet and skips its hooks",
            "start gemini here once and trust the directory, or type /permissions in it",
        )

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        import hashlib

        digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()
        name = re.sub(r"[^a-z0-9]+", "-", workspace.name.lower()).strip("-")
        named = (f"~/.gemini/tmp/{name}/memory",) if name else ()
        return ("GEMINI.md", ".gemini", f"~/.gemini/tmp/{digest}/memory", *named)


AGENT = Gemini()
