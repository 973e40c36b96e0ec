"""The checkpoint before a tool call: what the call is, how risky it is, and which files it names.

    risk of the command → files it names outside the workspace, or among ignored ones → save →
    projects below the workspace that it reaches

Guarantee: when `save_before_tool` returns, the state of the workspace before the call is durable.
The projects below it are saved by `ToolCheckpoint.save_nested`, without the workspace's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.app.automation.external_capture import ExternalCapture
from holdfast.app.automation.ignored_capture import IgnoredCapture
from holdfast.app.automation.nested_projects import reached_projects, save_projects
from holdfast.domain.agent_events import AgentEvent, Notice, ToolKind
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.intent import make_intent
from holdfast.domain.tool_calls import masked, tool_description

if TYPE_CHECKING:
    from holdfast.app.automation.host import Host
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.risk.assessment import Assessment
    from holdfast.domain.sessions import Session

_MOST_COMMAND = 2_000


class ToolCheckpoint(NamedTuple):
    """`messages` tell the agent which named files the checkpoint holds or lacks. `save_nested` has
    to be called without the lock; None where the call reaches no project below."""

    outcome: SaveOutcome
    messages: tuple[str, ...] = ()
    save_nested: Callable[[], tuple[Notice, ...]] | None = None


def save_before_tool(
    host: Host, opened: OpenWorkspace, event: AgentEvent, session: Session
) -> ToolCheckpoint:
    """Called with the lock held."""
    risk = command_risk(opened, event)
    external = ExternalCapture(opened, event, risk)
    external.remember()
    ignored = IgnoredCapture(opened, event, risk)
    ignored.remember()
    risky = risk is not None and risk.grade.word == "risky"
    description = tool_description(
        "Before",
        event.tool,
        _subject(opened, event, risk),
        risk=risk.grade.word if risk is not None and risk.grade else None,
        reason=risk.reason if risk is not None else None,
    )
    intent = make_intent(
        description, tool_calls=[_tool_call(event, risk, external)], confidence=1.0
    )
    position = Position(tool_use_id=event.tool_use_id)
    kind = Kind.RISKY if risky else Kind.TOOL
    outcome = opened.engine.save(session.id, intent, kind=kind, position=position)
    nested = reached_projects(host, opened, event, risk, outcome)
    save_nested = (lambda: save_projects(host, event, nested, intent, kind)) if nested else None
    messages = (*ignored.messages(outcome.checkpoint), *external.messages(outcome))
    return ToolCheckpoint(outcome, messages, save_nested)


def command_risk(opened: OpenWorkspace, event: AgentEvent) -> Assessment | None:
    """What a shell command may destroy; None for other tools."""
    if event.tool_kind is not ToolKind.SHELL:
        return None
    from holdfast.app.automation.shell_disk import shell_disk
    from holdfast.domain.risk.assessment import assess
    from holdfast.engine.shell_parser import parse

    return assess(
        parse(event.command),
        workspace=str(opened.engine.vault.workspace),
        directory=event.cwd,
        parse=parse,
        disk=shell_disk(opened.environment.get("HOME")),
    )


def _subject(opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> str:
    """What the headline is about: of several commands the one that may destroy most."""
    if risk is not None and risk.grade and risk.gravest:
        return risk.gravest
    return event.command or ", ".join(_shown(opened, path) for path in event.paths)


def _tool_call(
    event: AgentEvent, risk: Assessment | None, external: ExternalCapture
) -> dict[str, Any]:
    paths = [*event.paths, *(risk.paths if risk is not None else ())]
    call: dict[str, Any] = {"tool": event.tool, "kind": event.tool_kind.value}
    if event.command:
        call["command"] = masked(event.command)[:_MOST_COMMAND]
    if paths:
        call["paths"] = list(dict.fromkeys(paths))
    if external.named:
        call["outside"] = list(external.named)
    if external.captured:
        call["external"] = external.captured
    if external.not_captured:
        call["not_captured"] = external.not_captured
    if risk is not None and risk.grade:
        call["risk"] = risk.grade.word
        call["reasons"] = [masked(reason) for reason in risk.reasons]
    return call


def _shown(opened: OpenWorkspace, path: str) -> str:
    """A path of the workspace as people know it, whichever way the agent came there."""
    directory, _, name = path.rpartition("/")
    try:
        real = f"{os.path.realpath(directory)}/{name}" if directory.startswith("/") else path
    except ValueError:  # a text that no path can be
        return path
    shown = real.removeprefix(f"{opened.engine.vault.workspace}/")
    return path if shown == real else shown
