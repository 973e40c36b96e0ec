"""The description of a coding agent: the contract of every other module here.

Each module describes one agent: a subclass of `Agent`, and `AGENT`, its only instance. Nothing else
in Holdfast names an agent, so a new agent is one new module. The defaults are the hook schema that
most agents share.

Guarantee: importing such a module loads next to nothing, because a hook does so while its agent
waits. Modules that only the installer, a restore or a transcript needs are imported inside methods.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast import __version__
from holdfast.domain.agent_events import AgentEvent, EventKind, Reply, ToolKind
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.transcript_messages import TranscriptMessage

SCOPES = ("project", "user")
HOOK_SECONDS = 120
END_SECONDS = 3
PLUGIN_MANIFEST: Mapping[str, Any] = {
    "name": "holdfast",
    "version": __version__,
    "description": (
        "Saves the whole workspace before every edit, command and message, and restores it exactly"
    ),
    "license": "Apache-2.0",
    "keywords": ["checkpoint", "undo", "rollback"],
}
PLUGIN_PROGRAM = (
    "for i in 1 2 3 4 5 6 7 8 9 10; do command -v holdfast >/dev/null && break; sleep 0.2; done; "
    "holdfast"
)
"""The program in a plug-in, found by name. It waits, because an upgrade removes the program for a
moment. If it stays missing, the agent shows the shell's error."""
_NONE: Mapping[str, Any] = MappingProxyType({})

Entries = dict[str, list[dict[str, Any]]]
"""The value of `hooks` in an agent's settings: list items by event."""


class Server(NamedTuple):
    """Holdfast's MCP server in an agent's settings: its table and entry. `toml`: the file is TOML,
    not JSON."""

    table: str
    entry: Mapping[str, Any]
    toml: bool = False


class SettingsFile(NamedTuple):
    """One file of an installation. A file with `content` is completely Holdfast's. Other files have
    only Holdfast's entries: `hooks`, and the MCP `server` if given. A `manifest` is removed when
    nothing else remains in its directory."""

    path: Path
    content: str | None = None
    executable: bool = False
    versioned: bool = False
    manifest: bool = False
    hooks: bool = True
    server: Server | None = None


class Locations(NamedTuple):
    """Base directories: the workspace, the user's home, and agent directories set in the
    environment."""

    workspace: Path
    home: Path
    environment: Mapping[str, str]

    def root(self, scope: str) -> Path:
        return self.workspace if scope == "project" else self.home

    def own(self, variable: str, default: str) -> Path:
        return type(self.home)(self.environment.get(variable) or self.home / default)


class Withheld(NamedTuple):
    """Why an agent does not run the hooks in its settings, and what the user can do."""

    reason: str
    cure: str


class Agent:
    """One agent. The first attributes are required; all others have defaults.

    Names: `title` is the official spelling, `spellings` are other common names, and `programs` are
    the names of its process.

    Events: `events` and `tools` extend the common ones. The agent reads the answers to the events
    in `carries`. `project_variable` gives hooks the directory that the agent was opened in.
    `runs_hooks_of` names agents whose hooks it also runs, and `hooks_run_by_others` says that such
    agents exist.

    MCP: the agent sets `server_project_variable` and `server_session_variable` for its servers.
    """

    name: str
    title: str
    programs: tuple[str, ...]
    spellings: tuple[str, ...] = ()

    events: Mapping[str, EventKind] = _NONE
    tools: Mapping[str, ToolKind] = _NONE
    carries: frozenset[EventKind] = frozenset()
    project_variable = ""
    runs_hooks_of: tuple[str, ...] = ()
    hooks_run_by_others = False
    server_project_variable = ""
    server_session_variable = ""
    own_file_marks: tuple[str, ...] = ()
    """Additional text that marks an edited file as Holdfast's."""

    def flatten(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload of an event in the common shape: nested values are moved to the top."""
        return payload

    def render(self, event: AgentEvent, reply: Reply) -> str:
        """The answer to an event: a text for the model, and one for the user."""
        if not reply.text:
            return "{}"
        output = {"hookEventName": event.name, "additionalContext": reply.text}
        shown = {"systemMessage": reply.for_user} if reply.for_user else {}
        return json.dumps({**shown, "hookSpecificOutput": output})

    def is_sender(self, payload: Mapping[str, Any]) -> bool:
        """Whether only this agent sends such a payload to a hook that several agents run."""
        return False

    def may_be_sender(self, payload: Mapping[str, Any]) -> bool:
        """Whether the payload could come from this agent; used if no agent is sure."""
        return False

    @property
    def reads_transcript(self) -> bool:
        return type(self).transcript_message is not Agent.transcript_message

    def transcript_message(self, line: Mapping[str, Any]) -> TranscriptMessage | None:
        """The message on a transcript line; None if the line has none."""
        raise NotImplementedError

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        """Every file that `install` manages, except skills. One location per scope, since agents
        that read several locations run the hooks of all."""
        raise NotImplementedError

    def hook_entries(self, program: str) -> Entries:
        """The events that call Holdfast, as settings entries."""
        raise NotImplementedError

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        """Files that may contain its MCP servers, the usual one first. Empty if they are unknown or
        not editable."""
        return []

    def server(self, program: str) -> Server:
        import shlex

        words = [*shlex.split(program), "mcp"]
        return Server("mcpServers", {"command": words[0], "args": words[1:]})

    def server_by_hand(self, program: str) -> tuple[str, str]:
        """Why its settings are not edited, and what to do instead."""
        raise NotImplementedError

    def own_skills(self, scope: str, at: Locations) -> Path | None:
        """Where it looks for skills; None for the directory that most agents share."""
        return None

    def plugin_files(self) -> dict[str, Any]:
        """The files that it reads in Holdfast's plug-in directory, as JSON by path; empty without
        plug-ins."""
        return {}

    def plugin_record(self, at: Locations) -> Path | None:
        """The file that records Holdfast's plug-in as installed."""
        return None

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        """Why it does not run the hooks in `path`: turned off, or not trusted yet. Reads its files
        as published versions write them. Does not run the agent or change anything."""
        return None

    def without_own_lines(self, text: str) -> str | None:
        """An edited Holdfast file without Holdfast's lines; empty if only they remain. None if they
        were changed."""
        return None

    def program_in(self, text: str) -> str | None:
        """The words by which a Holdfast file calls it; None if they are missing or edited."""
        return None

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Patterns for its memory of one workspace: instructions and memory only, without
        credentials, caches or transcripts."""
        raise NotImplementedError


def hook_command(program: str, agent: str, event: str = "") -> str:
    return f"{program} hook {agent}" + (f" {event}" if event else "")


def hook_group(command: str, matcher: str | None = None, **more: Any) -> dict[str, Any]:
    """An item of the common schema: one command, for the tools that the matcher names."""
    handler = {"type": "command", "command": command, **more}
    return {"hooks": [handler]} if matcher is None else {"matcher": matcher, "hooks": [handler]}


def tool_groups(command: str, tools: str) -> list[dict[str, Any]]:
    """Groups for these tools, and one for MCP tools. They are separate because one pattern in a
    matcher turns every name in it into a pattern."""
    return [hook_group(command, one, timeout=HOOK_SECONDS) for one in (tools, "mcp__.*")]


def own_directory(environment: Mapping[str, str], variable: str, default: str) -> str:
    """An agent's directory as its settings variable gives it, if that is a full path; as a
    pattern."""
    chosen = environment.get(variable, "")
    return literal(chosen.rstrip("/")) if chosen.startswith("/") and chosen != "/" else default


def literal(text: str) -> str:
    """A pattern that matches only this text."""
    return re.sub(r"([*?\[])", r"[\1]", text)
