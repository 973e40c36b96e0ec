"""Worktrees and repositories below the workspace that a tool is about to change are saved too.

    paths that the tool names → separate projects that it reaches → a checkpoint in each, reported
    once

The workspace leaves such projects out, because each has its own store. A command may reach several
of them at once, or delete one together with the directory above it. The workspace's own checkpoint
would not contain any of that.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.automation.agent_sessions import ensure_session
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent, Notice
from holdfast.domain.checkpoints import Kind, Position, SkipReason
from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.app.automation.host import Host
    from holdfast.domain.intent import SnapshotIntent
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.shell.risk import Assessment

_LONGEST_NS = 20 * 1_000_000_000
"""An agent eventually gives up on its hook. Projects not saved by then are reported."""
_SHOWN = 5
_GIT_FILE_BYTES = 4096


def reached_projects(
    host: Host,
    opened: OpenWorkspace,
    event: AgentEvent,
    risk: Assessment | None,
    outcome: SaveOutcome,
) -> tuple[Path, ...]:
    """Called after the workspace is saved, because the save reveals which projects it leaves
    out."""
    workspace = opened.engine.vault.workspace
    changed = list(_changed(opened, event, risk))
    touched = [*changed, *_mentioned(risk)]
    if not touched:
        return ()
    found: dict[Path, None] = {}
    for project in _separate_projects(workspace, outcome):
        if any(_is_within(str(project), place) for place in changed):
            found[project] = None
    for place in touched:
        above = Path(place)
        while not os.path.isdir(above) and above != above.parent:
            above = above.parent
        own = host.own_project(workspace, above) if workspace in above.parents else None
        if own is not None:
            found[own] = None
    return tuple(sorted(found))


def save_projects(
    host: Host, event: AgentEvent, projects: tuple[Path, ...], intent: SnapshotIntent, kind: Kind
) -> tuple[Notice, ...]:
    """Save each project, without the workspace's lock; returns the notices."""
    until_ns = host.clock.monotonic_ns() + _LONGEST_NS
    notices, lost = [], []
    for project in projects:
        try:
            if host.clock.monotonic_ns() > until_ns:
                raise HoldfastError("it took too long")
            _save(host, project, event, intent, kind)
        except (HoldfastError, OSError) as error:
            lost.append(f"{project}: {getattr(error, 'message', None) or error}")
            continue
        said = f"{project} is a separate workspace with its own checkpoints"
        way = f"To undo changes there: holdfast -C {project} undo"
        notices.append(Notice(f"below:{project}", f"Holdfast: {said}. {way}", f"{said}. {way}"))
    if lost:
        more = f"; and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        text = (
            "Holdfast could not save everything that this call can change. A restore cannot "
            f"bring these back: {'; '.join(lost[:_SHOWN])}{more}"
        )
        notices.append(Notice(f"store:{text}", text, text))
    return tuple(notices)


def _save(host: Host, project: Path, event: AgentEvent, intent: SnapshotIntent, kind: Kind) -> None:
    purpose = f"holdfast hook {event.agent}"
    with host.open_workspace(project, create=True, purpose=purpose) as found:
        opened = found.with_engine(found.engine.for_hooks().after_waiting())
        with opened.engine.vault.lock.hold():
            session = ensure_session(opened, event).session
            position = Position(tool_use_id=event.tool_use_id)
            opened.engine.save(session.id, intent, kind=kind, position=position)


def _changed(opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> Iterator[str]:
    """The paths that the tool changes, up to the first part that only a shell can expand."""
    from holdfast.domain.external_paths import resolve_paths
    from holdfast.domain.shell.expansion import join

    workspace, home = str(opened.engine.vault.workspace), opened.environment.get("HOME")
    named = [join(event.cwd or workspace, path) for path in event.paths]
    if risk is not None:
        named += [*risk.inside, *risk.places]
    yield from _real(resolve_paths(named, home))


def _mentioned(risk: Assessment | None) -> Iterator[str]:
    """Paths that a changing command names in another way: `git worktree remove b`."""
    yield from _real(risk.mentioned if risk is not None and risk.grade else ())


def _real(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        with suppress(OSError, ValueError):  # not a possible path
            yield os.path.realpath(place)


def _separate_projects(workspace: Path, outcome: SaveOutcome) -> Iterator[Path]:
    """Projects that are separate workspaces, including ignored worktrees, which the save did not
    see."""
    for skip in outcome.skipped:
        if skip.reason in (SkipReason.WORKTREE, SkipReason.REPOSITORY):
            yield workspace / os.fsdecode(skip.path)
    try:
        known = sorted((workspace / ".git" / "worktrees").iterdir())
    except OSError:
        return
    for one in known:
        try:
            with open(one / "gitdir", "rb") as file:
                place = os.fsdecode(file.read(_GIT_FILE_BYTES).rstrip(b"\n"))
        except OSError:
            continue
        top = Path(os.path.realpath(place)).parent
        if workspace in top.parents and top.is_dir():
            yield top


def _is_within(path: str, above: str) -> bool:
    return f"{path}/".startswith(above.rstrip("/") + "/")
