"""Codex: the common format; edits are patches whose text is in `tool_input.command`.

A transcript is a rollout (`~/.codex/sessions/…/rollout-….jsonl`). A line has `timestamp`, `type`
and `payload`. The conversation is in the `response_item`s: messages, tool calls and their answers.
`event_msg` repeats parts of it for display, and `session_meta` and `turn_context` describe the
environment; these are skipped. Early versions wrote the items without the envelope.

A `compacted` line replaces the model's input, not the conversation. It becomes a message with the
role `system`, and any history in it is not read a second time.

Items have no reliable id. The key of a message is its whole content, including the time to the
millisecond, so reading the same line again gives the same message.
"""

from __future__ import annotations

import json
import os
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
    Server,
    SettingsFile,
    Withheld,
    hook_command,
    hook_group,
    own_directory,
    tool_groups,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.transcript_messages import TranscriptMessage

# Tuples, not sets: values from the file may be unhashable.
_ENVELOPES = ("session_meta", "response_item", "compacted", "turn_context", "event_msg")
_ANSWERS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# Texts that Codex itself sends in the user's name begin with one of these.
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<recommended_plugins>",
    "<subagent_notification>",
    "<turn_aborted",
    "<skill>",
    "# AGENTS.md instructions",
)


class Codex(Agent):
    name = "codex"
    title = "Codex"
    programs = ("codex",)
    spellings = ("codex-cli", "openai-codex")
    tools: Mapping[str, ToolKind] = {
        "Bash": ToolKind.SHELL,
        "apply_patch": ToolKind.EDIT,
        "Write": ToolKind.WRITE,
        "Edit": ToolKind.EDIT,
    }
    carries = frozenset({EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL})

    def may_be_sender(self, payload: Mapping[str, Any]) -> bool:
        return "turn_id" in payload and "prompt_id" not in payload

    def hook_files(self, scope: str, at: Locations, program: str) -> list[SettingsFile]:
        return [SettingsFile(_settings(scope, at) / "hooks.json")]

    def hook_entries(self, program: str) -> Entries:
        command = hook_command(program, self.name)
        waits = [hook_group(command, timeout=HOOK_SECONDS)]
        changing = tool_groups(command, "Bash|apply_patch")
        return {
            "SessionStart": waits,
            "UserPromptSubmit": waits,
            "PreToolUse": changing,
            "PostToolUse": changing,
            "PreCompact": waits,
            "Stop": waits,
            "SessionEnd": [hook_group(command, timeout=END_SECONDS)],
        }

    def server_files(self, scope: str, at: Locations) -> list[Path]:
        return [_settings(scope, at) / "config.toml"]

    def server(self, program: str) -> Server:
        return Server("mcp_servers", super().server(program).entry, toml=True)

    def plugin_files(self) -> dict[str, Any]:
        hooks = self.hook_entries(PLUGIN_PROGRAM)
        return {
            ".codex-plugin/plugin.json": {
                **PLUGIN_MANIFEST,
                "skills": "./skills/",
                "hooks": "./hooks/codex-hooks.json",
                "mcpServers": "./.mcp.json",
                "interface": {"displayName": "Holdfast"},
            },
            "hooks/codex-hooks.json": {
                "description": "Checkpoints before every change",
                "hooks": hooks,
            },
        }

    def plugin_record(self, at: Locations) -> Path:
        return _settings("user", at) / "config.toml"

    def withheld(self, scope: str, at: Locations, path: Path) -> Withheld | None:
        from holdfast.interfaces.agent_setup.settings_file import toml_settings

        config = _settings("user", at) / "config.toml"
        settings = toml_settings(config)
        features = settings.get("features")
        switch = features if isinstance(features, dict) else {}
        if switch.get("hooks", switch.get("codex_hooks")) is False:
            return Withheld(f"hooks are turned off in {config}", "codex features enable hooks")
        if scope == "project" and not _trusts_project(settings, at.workspace):
            return Withheld(
                "Codex does not trust this directory yet and skips its hooks; codex exec does "
                "not ask",
                "start codex here once and trust the directory, then accept the hooks",
            )
        if not _trusts_hooks(settings, path):
            return Withheld(
                "Codex does not trust these hooks yet and skips them; codex exec does not ask",
                "start codex here once and accept the hooks, or type /hooks in it",
            )
        return None

    def memory(self, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Codex has only one memory for all workspaces."""
        home = own_directory(environment, "CODEX_HOME", "~/.codex")
        return ("AGENTS.md", "AGENTS.override.md", ".codex", ".agents", f"{home}/memories")

    def transcript_message(self, line: Mapping[str, Any]) -> TranscriptMessage | None:
        from holdfast.domain.transcript_messages import text_of

        kind = line.get("type")
        payload = line.get("payload")
        if kind == "compacted" and isinstance(payload, dict):
            summary = text_of(payload.get("message"))
            return _message(line, "system", f"[context compacted]\n{summary}".rstrip())
        if kind == "response_item" and isinstance(payload, dict):
            return _item(line, payload)
        if kind not in _ENVELOPES and "payload" not in line:
            return _item(line, line)
        return None


AGENT = Codex()


def _settings(scope: str, at: Locations) -> Path:
    return at.workspace / ".codex" if scope == "project" else at.own("CODEX_HOME", ".codex")


def _trusts_project(settings: Mapping[str, Any], workspace: Path) -> bool:
    projects = settings.get("projects")
    trusted = {
        os.path.realpath(path)
        for path, said in (projects if isinstance(projects, dict) else {}).items()
        if isinstance(said, dict) and said.get("trust_level") == "trusted"
    }
    return any(str(place) in trusted for place in (workspace, _repository(workspace)))


def _repository(workspace: Path) -> Path:
    """The directory whose trust Codex asks for: the repository root, or the main one for
    worktrees."""
    for place in (workspace, *workspace.parents):
        marker = place / ".git"
        if marker.is_dir():
            return place
        if marker.is_file():
            try:
                link = marker.read_text("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
            except OSError:
                return place
            shared = type(place)(os.path.realpath(place / link)).parent.parent
            return shared.parent if shared.name == ".git" else place
    return workspace


def _trusts_hooks(settings: Mapping[str, Any], path: Path) -> bool:
    """Whether every Holdfast hook in a file is trusted, by its digest."""
    hooks = settings.get("hooks")
    states = hooks.get("state") if isinstance(hooks, dict) else None
    known = states if isinstance(states, dict) else {}
    return all(
        isinstance(state := known.get(key), dict)
        and state.get("trusted_hash") == digest
        and state.get("enabled") is not False
        for key, digest in trusted_digests(path)
    )


def trusted_digests(path: Path) -> Iterator[tuple[str, str]]:
    """The digest by which Codex trusts each Holdfast hook in a file, by Codex's key for the
    hook."""
    from holdfast.interfaces.agent_setup.hooks_edit import is_our_command
    from holdfast.interfaces.agent_setup.settings_file import json_settings

    source = os.path.abspath(path)
    events = json_settings(path).get("hooks")
    for event, groups in (events if isinstance(events, dict) else {}).items():
        label = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
        for group_index, group in enumerate(groups if isinstance(groups, list) else []):
            handlers = group.get("hooks", []) if isinstance(group, dict) else []
            for index, handler in enumerate(handlers):
                if isinstance(handler, dict) and is_our_command(handler.get("command"), AGENT.name):
                    digest = _digest(label, group.get("matcher"), handler)
                    yield f"{source}:{label}:{group_index}:{index}", digest


def _digest(label: str, matcher: Any, handler: Mapping[str, Any]) -> str:
    import hashlib

    timeout = handler.get("timeout", 600)
    normal = {"async": False, **handler, "timeout": timeout}
    identity: dict[str, Any] = {"event_name": label, "hooks": [normal]}
    if matcher is not None and label not in ("user_prompt_submit", "stop"):
        identity["matcher"] = matcher
    said = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _item(line: Mapping[str, Any], item: Mapping[str, Any]) -> TranscriptMessage | None:
    from holdfast.domain.transcript_messages import identifier

    kind = item.get("type")
    if kind == "message":
        content = _text(item.get("content"))
        return _message(line, _role(item.get("role"), content), content) if content else None
    call_id = identifier(item.get("call_id")) or identifier(item.get("id"))
    if kind in _ANSWERS:
        return _message(line, "tool", _answer(item), ids=(call_id,))
    call = _call(item, call_id)
    if call is None:
        return None
    return _message(line, "assistant", "", calls=(call,), ids=(call_id,))


def _message(
    line: Mapping[str, Any],
    role: str,
    content: str,
    *,
    calls: tuple[dict[str, Any], ...] = (),
    ids: tuple[str | None, ...] = (),
) -> TranscriptMessage:
    from holdfast.domain import transcript_messages as transcript
    from holdfast.domain.story import Role

    key = transcript.content_key(line.get("timestamp"), role, content, calls, ids)
    return transcript.TranscriptMessage(
        source_key=f"codex:#{key}",
        role=Role(role),
        content=content,
        at_ns=transcript.nanoseconds(line.get("timestamp")),
        tool_calls=calls,
        tool_use_ids=tuple(call_id for call_id in ids if call_id),
    )


def _role(role: object, content: str) -> str:
    if role == "user":
        return "system" if content.startswith(_INJECTED) else "user"
    return "assistant" if role == "assistant" else "system"


def _call(item: Mapping[str, Any], call_id: str | None) -> dict[str, Any] | None:
    from holdfast.domain.transcript_messages import tool_call

    match item.get("type"):
        case "function_call":
            return tool_call(call_id, item.get("name"), _arguments(item.get("arguments")))
        case "custom_tool_call":
            return tool_call(call_id, item.get("name"), item.get("input"))
        case "local_shell_call":
            return tool_call(call_id, "shell", item.get("action"))
        case "web_search_call":
            return tool_call(call_id, "web_search", item.get("action"))
        case "tool_search_call":
            return tool_call(call_id, "tool_search", item.get("arguments"))
        case _:
            return None


def _arguments(given: object) -> Any:
    """Arguments are JSON in a string; a string that is not JSON is kept."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _answer(item: Mapping[str, Any]) -> str:
    output = item.get("output")
    if isinstance(output, dict):
        output = output.get("content")
    return _text(output)


def _text(content: object) -> str:
    from holdfast.domain.transcript_messages import text_of

    if isinstance(content, str):
        return text_of(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _part(part)))


def _part(part: object) -> str:
    from holdfast.domain.transcript_messages import text_of

    if not isinstance(part, dict):
        return text_of(part)
    if isinstance(part.get("text"), str):
        return text_of(part["text"])
    return f"[{text_of(part.get('type'))[:40] or 'unknown'}]"
