"""Goose: `event` and `working_dir`. Before a tool, an empty answer means yes, and `{}` does not.

It reads answers before a tool and at the end of a turn, and passes on their text only with a
refusal. Holdfast never refuses a tool, so notices come at the end of a turn. The model then gets
one more turn, with the text.
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
    SettingsFile,
    hook_command,
    hook_group,
)

if TYPE_CHECKING:
    from pathlib import Path

_PASS_ON = "Tell the user what this says. Then end your turn, unless it changes what is left to do."
_DESCRIPTION = "Saves the workspace before goose changes it"
_EVENTS = (
    "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SessionEnd"
).split()


class Goose(Agent):
    name = "goose"
    title = "Goose"
    programs = ("goose",)
    events: Mapping[str, EventKind] = {
        "beforeshellexecution": EventKind.OTHER,
        "aftershellexecution": EventKind.OTHER,
    }
    tools: Mapping[str, ToolKind] = {
        "developer__shell": ToolKind.SHELL,
        "developer__write": ToolKind.WRITE,
        "developer__edit": ToolKind.EDIT,
        "developer__text_editor": ToolKind.EDIT,
        "developer__analyze": ToolKind.OTHER,
        "developer__read_image": ToolKind.OTHER,
        "todo__todo_write": ToolKind.OTHER,
    }
    carries = frozenset({EventKind.TURN_END})

    def render(self, event: AgentEvent, reply: Reply) -> str:
        if event.kind is not EventKind.TURN_END or not reply.text:
            return ""
        return json.dumps({"decision": "block", "reason": f"{reply.text}\n\n{_PASS_ON}"})

    def is_sender(self, payload: Mapping[str, Any]) -> bool:
        return "event" in payload and ("working_dir" in payload or "matcher_context" in payload)

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        from holdfast import __version__

        base = at.root(scope) / ".agents" / "plugins" / "holdfast"
        said = {"name": "holdfast", "version": __version__, "description": _DESCRIPTION}
        manifest = json.dumps(said, indent=2) + "\n"
        return [
            SettingsFile(base / "plugin.json", manifest, manifest=True),
            SettingsFile(base / "hooks" / "hooks.json"),
        ]

    def hook_entries(self, program: str) -> Entries:
        """Every tool belongs to an extension, so all of them call Holdfast."""
        command = hook_command(program, self.name)
        return {event: [hook_group(command, timeout=HOOK_SECONDS)] for event in _EVENTS}

    def server_by_hand(self, program: str) -> tuple[str, str]:
        started = super().server(program).entry
        entry = {"type": "stdio", "name": "holdfast", "cmd": started["command"]}
        entry |= {"args": started["args"], "enabled": True, "timeout": 300}
        line = f"  holdfast: {json.dumps(entry, ensure_ascii=False)}"
        way = (
            "install the hooks without --mcp: holdfast install goose; for the server, add this "
            f"line under `extensions:` in ~/.config/goose/config.yaml: {line}"
        )
        return "the settings of goose are YAML, which Holdfast does not edit", way

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        return (".goosehints", ".goose")


AGENT = Goose()
