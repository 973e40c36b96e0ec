"""Agents' tool calls: the checkpoint before each one, and which of them are running.

    the command's risk → files it names outside the workspace, or among ignored ones → save →
    projects below the workspace that it reaches

Guarantee: when `save_before_tool` returns, the state of the workspace before the call is durable.
The projects below it are saved by `ToolCheckpoint.save_nested`, without the workspace's lock.

The start and end of a call are noted without a lock, so that a save that waits for the tool
continues immediately. An agent without tool call ids has one running call at a time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.app.automation.external_capture import ExternalCapture
from holdfast.app.automation.ignored_capture import IgnoredCapture
from holdfast.app.automation.nested_projects import reached_projects, save_projects
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import EDIT_TOOLS, AgentEvent, EventKind, Notice, ToolKind
from holdfast.domain.checkpoints import Checkpoint, Kind, Position
from holdfast.domain.intent import make_intent
from holdfast.domain.tool_calls import masked, tool_description
from holdfast.ports.agent_tools import RunningTools, session_digest
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.app.automation.host import Host
    from holdfast.domain.intent import SnapshotIntent
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.sessions import Session
    from holdfast.domain.shell.risk import Assessment, Disk

_MOST_COMMAND = 2_000
_MOST_MATCHES = 500
_MOST_PARTS = 2
_ENDS_ALL = (EventKind.MESSAGE, EventKind.TURN_END, EventKind.SESSION_END)


class ToolCheckpoint(NamedTuple):
    """`messages` tell the agent which named files the checkpoint has or lacks. Call `save_nested`
    without the lock; None if the call reaches no nested project."""

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


def intent_after_tool(opened: OpenWorkspace, event: AgentEvent) -> SnapshotIntent:
    """Names the call, because its first checkpoint may have been made for an earlier one."""
    description = tool_description("After", event.tool, _subject(opened, event, None))
    return make_intent(description, tool_calls=[_call(event, event.paths)], confidence=1.0)


def command_risk(opened: OpenWorkspace, event: AgentEvent) -> Assessment | None:
    """The risk of a shell command; None for other tools."""
    if event.tool_kind is not ToolKind.SHELL:
        return None
    from holdfast.domain.shell.risk import assess
    from holdfast.engine.shell_parser import parse

    return assess(
        parse(event.command),
        workspace=str(opened.engine.vault.workspace),
        directory=event.cwd,
        parse=parse,
        disk=_shell_disk(opened.environment.get("HOME")),
    )


def _subject(opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> str:
    """The subject of the headline: of several commands, the one that may destroy most."""
    if risk is not None and risk.grade and risk.gravest:
        return risk.gravest
    return event.command or ", ".join(_shown(opened, path) for path in event.paths)


def _tool_call(
    event: AgentEvent, risk: Assessment | None, external: ExternalCapture
) -> dict[str, Any]:
    call = _call(event, (*event.paths, *(risk.paths if risk is not None else ())))
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


def _call(event: AgentEvent, paths: Sequence[str]) -> dict[str, Any]:
    call: dict[str, Any] = {"tool": event.tool, "kind": event.tool_kind.value}
    if event.command:
        call["command"] = masked(event.command)[:_MOST_COMMAND]
    if paths:
        call["paths"] = list(dict.fromkeys(paths))
    return call


def _shown(opened: OpenWorkspace, path: str) -> str:
    """A workspace path as people know it, whichever links the agent used."""
    directory, _, name = path.rpartition("/")
    try:
        real = f"{os.path.realpath(directory)}/{name}" if directory.startswith("/") else path
    except ValueError:  # not a possible path
        return path
    shown = real.removeprefix(f"{opened.engine.vault.workspace}/")
    return path if shown == real else shown


def _shell_disk(home: str | None) -> Disk:
    """The disk for the shell risk rules; `~` means the directory `home`. Bounded: a pattern with
    many parts, or with more matches than a command can have words, is not looked up. Neither is
    `DIRECTORY/*`: the directory is used instead."""
    from holdfast.domain.external_paths import expand_home
    from holdfast.domain.shell.risk import Disk

    def exists(place: str) -> bool:
        try:
            return os.path.lexists(expand_home(place, home))
        except ValueError:  # not a possible path
            return False

    def is_file(place: str) -> bool:
        path = expand_home(place, home)
        try:
            return os.path.isfile(path) or (os.path.islink(path) and not os.path.isdir(path))
        except ValueError:
            return False

    def matching(pattern: str) -> Sequence[str]:
        path = expand_home(pattern, home)
        if not path.startswith("/") or "\0" in path or exists(path):
            return ()
        return () if path.endswith("/*") else _matches(path)

    return Disk(exists, is_file, os.path.isdir, matching)


def _matches(path: str) -> Sequence[str]:
    import glob

    if sum(glob.has_magic(part) for part in path.split("/")) > _MOST_PARTS:
        return ()
    found = list(islice(glob.iglob(path), _MOST_MATCHES + 1))
    return found if len(found) <= _MOST_MATCHES else ()


def note_begin(opened: OpenWorkspace, event: AgentEvent, saved: Checkpoint) -> None:
    """The tool runs once this event is answered; `saved` has the state before it."""
    if event.kind is EventKind.BEFORE_TOOL:
        edits = event.tool_kind in EDIT_TOOLS and event.paths
        opened.engine.vault.tool_log.begin(
            _key(event),
            _session(event),
            now_ns=opened.engine.vault.clock.now_ns(),
            session_id=saved.session_id,
            tool=event.tool,
            at=saved.id,
            names=_names(event) if edits else None,
        )
    owner = opened.engine.vault.processes.agent_above(event.process or os.getpid())
    if event.kind is not EventKind.BEFORE_TOOL or owner is None:
        return
    _tools(opened).begin(
        _key(event),
        owner=owner,
        session=_session(event),
        tool=event.tool,
        now_ns=opened.engine.vault.clock.now_ns(),
    )


def _names(event: AgentEvent) -> list[bytes]:
    """The files that an edit names, and the targets of links, because an edit writes those. Names
    with lone surrogates cannot exist."""
    names = []
    for path in event.paths:
        with contextlib.suppress(UnicodeEncodeError):
            names.append(os.fsencode(path))
        with contextlib.suppress(OSError, ValueError):
            names.append(os.fsencode(os.path.realpath(os.path.join(event.cwd or "", path))))
    return names


def note_end(opened: OpenWorkspace, event: AgentEvent) -> None:
    """End the tool that the event follows; when a turn begins or ends, end all of them."""
    now_ns = opened.engine.vault.clock.now_ns()
    if event.kind is EventKind.AFTER_TOOL:
        _tools(opened).end(_key(event))
        opened.engine.vault.tool_log.end(_key(event), now_ns)
    elif event.kind in _ENDS_ALL:
        _tools(opened).end_all_of(_session(event))
        opened.engine.vault.tool_log.end_all_of(_session(event), now_ns)


def note_unchanged(opened: OpenWorkspace, saved: Checkpoint) -> None:
    """The call changed nothing since `saved`, so later changes are not its own."""
    now_ns = opened.engine.vault.clock.now_ns()
    opened.engine.vault.tool_log.unchanged(saved.id, now_ns)


def _tools(opened: OpenWorkspace) -> RunningTools:
    return opened.engine.vault.running_tools


def _key(event: AgentEvent) -> str:
    return session_digest(event.agent, event.session, event.tool_use_id or "")


def _session(event: AgentEvent) -> str:
    return session_digest(event.agent, event.session)
