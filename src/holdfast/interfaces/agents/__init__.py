"""The agents, one file each; only the one that calls is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.interfaces.hooks.normaliser import Dialect

_OF_CLAUDE = ("permission_mode", "tool_use_id", "prompt_id")
AGENTS = ("claude-code", "codex", "gemini", "cursor", "copilot", "opencode", "cline", "goose")


def dialect_of(agent: str) -> Dialect:
    """`KeyError` for an agent that is not known."""
    from importlib import import_module

    if agent not in AGENTS:
        raise KeyError(agent)
    module = import_module(f"holdfast.interfaces.agents.{agent.replace('-', '_')}")
    found: Dialect = module.DIALECT
    return found


def sender(called: str, payload: dict[str, Any]) -> str:
    """The agent that really sent an event: some run the hooks that were set up for another."""
    if "cursor_version" in payload:
        return "cursor"
    if "clineVersion" in payload:
        return "cline"
    if "event" in payload and ("working_dir" in payload or "matcher_context" in payload):
        return "goose"
    if called == "claude-code":
        if "toolName" in payload and "toolArgs" in payload:
            return "copilot"
        if "turn_id" in payload and "prompt_id" not in payload:
            return "codex"
        if payload.get("hook_event_name") in ("BeforeTool", "AfterTool", "BeforeAgent"):
            return "gemini"
        if _is_of_copilot(payload):
            return "copilot"
    return called


def _is_of_copilot(payload: dict[str, Any]) -> bool:
    """Its payload for the hooks of Claude Code: the time is told, and none of the ids; the
    transcript with the end of a turn only."""
    if "timestamp" not in payload or any(name in payload for name in _OF_CLAUDE):
        return False
    return "transcript_path" not in payload or "stop_reason" in payload
