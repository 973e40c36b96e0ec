"""The description of a coding agent: the contract of every other module here.

Each module describes one agent: a subclass of `Agent`, and `AGENT`, its only instance. Nothing else
in Holdfast names an agent, so a new one is one new module. The defaults are the hook schema that
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
"""The program in a plug-in, which has to find it by name: an upgrade takes it away for a moment. If
it stays away, the shell says so, and the agent shows that."""
_NONE: Mapping[str, Any] = MappingProxyType({})

Entries = dict[str, list[dict[str, Any]]]
"""The content of `hooks` in the settings of an agent: by event, the items of its list."""


class Server(NamedTuple):
    """Our MCP server in the settings of an agent: the entry under our name, and its table. `toml`:
    the file is no JSON."""

    table: str
    entry: Mapping[str, Any]
    toml: bool = False


class SettingsFile(NamedTuple):
    """One file that an installation is about. With `content` it is wholly ours; without, our
    entries are among others: `hooks`, and the MCP `server` where that is given. A `manifest` goes
    when nothing else is left in its directory."""

    path: Path
    content: str | None = None
    executable: bool = False
    versioned: bool = False
    manifest: bool = False
    hooks: bool = True
    server: Server | None = None


class Locations(NamedTuple):
    """What paths are relative to: the workspace, the user's home, and where the environment says
    an agent keeps its own."""

    workspace: Path
    home: Path
    environment: Mapping[str, str]

    def root(self, scope: str) -> Path:
        return self.workspace if scope == "project" else self.home

    def own(self, variable: str, default: str) -> Path:
        return type(self.home)(self.environment.get(variable) or self.home / default)


class Withheld(NamedTuple):
    """Why an agent does not run hooks that are in its settings, and what a person can do."""

    reason: str
    cure: str


class Agent:
    """One agent. The first attributes have to be given; everything else has a default.

    Names: `title` is how its makers write it, `spellings` is what people also call it, `programs`
    is what its process is called.

    Events: `events` and `tools` add to what all agents have in common. `carries` are the events
    whose answer the agent reads. `project_variable` tells its hooks which directory it was opened
    on. `runs_hooks_of` names agents whose settings it runs as well, `hooks_run_by_others` says that
    such agents exist.

    MCP: `server_project_variable` and `server_session_variable` are what it sets for its servers.
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
    """Marks of an edited Holdfast file, besides the usual ones."""

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
        """The same, as far as one can tell: asked when no agent is sure."""
        return False

    @property
    def reads_transcript(self) -> bool:
        return type(self).transcript_message is not Agent.transcript_message

    def transcript_message(self, line: Mapping[str, Any]) -> TranscriptMessage | None:
        """The message on a line of its transcript; None when the line holds none."""
        raise NotImplementedError

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        """Every file that `install` is about, skills apart. One location a scope, since agents that
        read several run the hooks of all of them."""
        raise NotImplementedError

    def hook_entries(self, program: str) -> Entries:
        """Which of its events call us, as the entries of its settings."""
        raise NotImplementedError

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        """Where it may keep its MCP servers, the usual file first; none where that is not known or
        not a file that we edit."""
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
        """What it reads in the directory of our plug-in, as JSON by path; nothing if it has no
        plug-ins."""
        return {}

    def plugin_record(self, at: Locations) -> Path | None:
        """The file in which it notes that our plug-in is installed."""
        return None

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        """Why it does not run the hooks in `path`: a switch, or no trust yet. Read from its own
        files as its published versions write them; the agent is not asked, nothing is changed."""
        return None

    def without_own_lines(self, text: str) -> str | None:
        """A Holdfast file with lines added by the user, without Holdfast's lines; empty when
        nothing was added. None when ours are not as they were written."""
        return None

    def program_in(self, text: str) -> str | None:
        """The words by which a Holdfast file calls it; None when it does not, or not as we write
        it."""
        return None

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Where it keeps what it remembers of one workspace, as patterns: instructions and memory
        only; no credentials, no caches, no transcripts."""
        raise NotImplementedError


def hook_command(program: str, agent: str, event: str = "") -> str:
    return f"{program} hook {agent}" + (f" {event}" if event else "")


def hook_group(command: str, matcher: str | None = None, **more: Any) -> dict[str, Any]:
    """An item of the common schema: one command, for the tools that the matcher names."""
    handler = {"type": "command", "command": command, **more}
    return {"hooks": [handler]} if matcher is None else {"matcher": matcher, "hooks": [handler]}


def tool_groups(command: str, tools: str) -> list[dict[str, Any]]:
    """For these tools, and for those of MCP servers in a group of their own: names alone are
    compared as they are, with a pattern among them each would be one."""
    return [hook_group(command, one, timeout=HOOK_SECONDS) for one in (tools, "mcp__.*")]


def own_directory(environment: Mapping[str, str], variable: str, default: str) -> str:
    """Where an agent keeps its files by its settings, if that is a full path, as a pattern."""
    chosen = environment.get(variable, "")
    return literal(chosen.rstrip("/")) if chosen.startswith("/") and chosen != "/" else default


def literal(text: str) -> str:
    """As a pattern that matches nothing but itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)
