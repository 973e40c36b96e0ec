"""`holdfast status`: show unsaved changes, the last change, and problems."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, NothingSaved
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.automation import Problem
    from holdfast.api.health import Gap
    from holdfast.api.workspace import Workspace
    from holdfast.domain.sessions import Session
    from holdfast.interfaces.agent_setup.protection import Protection
    from holdfast.interfaces.cli.status_view import Status

ANSWERS = True
AGENT_WARNING = False
_DAEMON_S = 2.0


def configure(parser: Parser) -> None:
    parser.usage = "holdfast status [--skipped]"
    parser.description = """\
Show the current checkpoint, unsaved changes, the last change and how to undo it, whether agent
hooks work, and what to do next. Problems are listed too: a store that cannot be written, hook
failures of the last day, a store that is nearly full, paths that are left out. With --skipped, list
every path that is left out, with the reason."""
    parser.epilog = """\
examples:
  $ holdfast status
  $ holdfast status --skipped --json | jq -r '.skipped[].path'"""
    parser.add_argument(
        "--skipped", action="store_true", help="list every path that is left out, with the reason"
    )


def run(invocation: Invocation) -> int:
    try:
        return _run(invocation)
    except HoldfastError as error:
        new = isinstance(error, NothingSaved) and invocation.options.session is None
        if _show_hook_problems(invocation) or not new:
            raise
        return _nothing_saved(invocation)


def _run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.path_arguments import excluded_directory_warning
    from holdfast.interfaces.cli.status_view import Status
    from holdfast.interfaces.daemon.client import ask_about_content

    with invocation.open() as opened:
        listed = [one.id for one in opened.sessions.listed()]
        session = invocation.session_or_none(opened)
        if session not in listed and invocation.options.session is None:
            session = None  # deleted, or not started yet
        known = opened.sessions.get(session) if session is not None else None
        scope = None if invocation.options.session is None else session
        watched = ask_about_content(str(opened.path), _DAEMON_S)
        with invocation.busy("scanning", opened):
            scanned = opened.health.scan(scope, watched.get("scan"))
        found = opened.health.status(session, scanned)
        status = Status(
            found,
            watch=watched.get("watch"),
            problems=_problems(invocation, opened.path),
            agents=_agents(invocation, opened, found.blocker),
            chosen=invocation.chosen_session,
            session_mark=_mark(known),
            all_checkpoints=opened.sessions.checkpoint_count(None),
        )
        unsaved = excluded_directory_warning(invocation.terminal, opened)
    _report(invocation, status)
    if not invocation.json and unsaved is not None:
        invocation.terminal.warn(unsaved)
    _warn_of(invocation, found.gaps)
    return 0


def _warn_of(invocation: Invocation, gaps: Sequence[Gap]) -> None:
    if not invocation.json:
        for gap in gaps:
            invocation.terminal.warn(f"{gap.finding}: {gap.cure}")


def _report(invocation: Invocation, status: Status) -> None:
    from holdfast.interfaces.cli.status_view import show_status, status_data

    listed = invocation.options.skipped
    if invocation.json:
        invocation.emit(status_data(status, invocation.now, listed=listed))
    else:
        shown = listed and status.found.store is not None
        show_status(invocation.terminal, status, invocation.now, listed=shown)


def _nothing_saved(invocation: Invocation) -> int:
    """The status before the first checkpoint, which creates the store."""
    from holdfast.api.health import WorkspaceStatus, write_gaps
    from holdfast.api.stores import workspace_for
    from holdfast.domain.settings.schema import Settings
    from holdfast.interfaces.agent_setup.protection import protections
    from holdfast.interfaces.cli.status_view import Status

    workspace = workspace_for(invocation.directory)
    found = WorkspaceStatus(workspace, Settings().budget, gaps=write_gaps(workspace))
    agents = _ranked(protections(workspace, now=invocation.now), found.blocker)
    _report(invocation, Status(found, agents=agents))
    _warn_of(invocation, found.gaps)
    if invocation.options.skipped and not invocation.json:
        invocation.terminal.note(
            "note: Holdfast lists the files that it leaves out after the first checkpoint: "
            'holdfast checkpoint "why"'
        )
    return 0


def _mark(session: Session | None) -> str:
    if session is None:
        return ""
    return session.title or f"{session.agent or ''} {session.id}".strip()


def _agents(invocation: Invocation, opened: Workspace, blocker: Gap | None) -> Sequence[Protection]:
    from holdfast.interfaces.agent_setup.protection import protections

    seen = opened.sessions.last_checkpoint_by_agent()
    return _ranked(protections(opened.path, seen, now=invocation.now), blocker)


def _ranked(found: Sequence[Protection], blocker: Gap | None) -> Sequence[Protection]:
    """Even working hooks protect nothing while no checkpoint can be made."""
    from holdfast.interfaces.agent_setup.protection import unprotected

    if blocker is not None:
        found = [
            replace(one, protected=False, finding=blocker.finding, cure=blocker.cure)
            if one.protected
            else one
            for one in found
        ]
    return [*(one for one in found if one.protected), *unprotected(found)]


def _show_hook_problems(invocation: Invocation) -> bool:
    """Without a readable store, hook problems are the only thing to show, and often the
    explanation. Returns whether there are any."""
    from holdfast.api.stores import workspace_around
    from holdfast.interfaces.cli.status_view import show_problems

    workspace = invocation.directory.absolute()
    with contextlib.suppress(HoldfastError):
        workspace = workspace_around(workspace) or workspace
    problems = _problems(invocation, workspace)
    if not problems:
        return False
    if invocation.json:
        from holdfast.api.views.health import nothing_saved_view

        invocation.emit(nothing_saved_view(workspace, problems))
    else:
        invocation.terminal.line(f"workspace {visible(str(workspace))}")
        show_problems(invocation.terminal, problems)
    invocation.terminal.flush()
    return True


def _problems(invocation: Invocation, workspace: Path) -> tuple[Problem, ...]:
    """Events of the last day that hooks could not save or record here."""
    from holdfast.interfaces.hooks.runtime_files import problem_log

    return tuple(problem_log(os.environ).problems_of(workspace, invocation.now - timedelta(days=1)))
