"""`holdfast status`: where the work stands, what changed, what is left out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import HoldfastError, NothingSaved, NothingToUndo, StoreDamaged
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.wording import iso

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.bootstrap.maintenance import Gap
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.sessions import Session
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.breaker import Degraded
    from holdfast.engine.scan.scanner import Scan
    from holdfast.engine.undo.undo import UndoStep
    from holdfast.engine.vault import Vault
    from holdfast.interfaces.agent_setup.protection import Protection
    from holdfast.interfaces.cli.status_view import LastThing
    from holdfast.interfaces.hooks.problems import Problem

ANSWERS = True
AGENT_WARNING = False
_DAEMON_S = 2.0


def configure(parser: Parser) -> None:
    parser.usage = "holdfast status [--skipped]"
    parser.description = """\
Show where you are, what is not saved, what happened last and how to take it back, whether the hooks
of agents would really run, and what to do next. Trouble is listed when there is any: what hooks
could not save in the last day, a store that is nearly full, paths that are left out. With
--skipped, every path that is left out, with its reason."""
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
        if _tell_of_problems(invocation) or not new:
            raise
        return _nothing_saved(invocation)


def _run(invocation: Invocation) -> int:
    from holdfast.engine.edits.attempts import cut_off, still_to_put_back
    from holdfast.engine.history.head import standing_on
    from holdfast.engine.sessions.approval import rounds_in
    from holdfast.engine.sessions.overview import effective_status, listed_sessions
    from holdfast.interfaces.cli.path_arguments import not_saved_here
    from holdfast.interfaces.cli.status_view import Status, show_status, status_as_json

    with invocation.open() as opened:
        engine = opened.engine
        listed = tuple(one.id for one in listed_sessions(engine.vault))
        session = invocation.session_or_none(opened)
        if session not in listed and invocation.options.session is None:
            session = None  # deleted, or it has not begun
        known = engine.vault.catalog.session(session) if session is not None else None
        with invocation.busy("scanning", opened):
            scan = engine.look()
            chosen = None if invocation.options.session is None else session
            head = standing_on(engine.vault, chosen)
            changes = engine.changes_in(scan, head) if head is not None else []
        left = cut_off(engine.vault, chosen)
        status = Status(
            workspace=engine.vault.workspace,
            store=opened.store.directory,
            store_bytes=opened.store.space.size_bytes(),
            budget_bytes=engine.vault.settings.budget,
            cleanup=_last_cleanup(engine.vault),
            session=session,
            session_status=effective_status(engine.vault, known).value if known else None,
            sessions=listed,
            checkpoints=engine.vault.catalog.counts(session).checkpoints if session else 0,
            head=head,
            changes=changes,
            skipped=scan.skipped,
            files=scan.files,
            approval=engine.approval(session, scan) if head is not None and session else None,
            rounds=rounds_in(engine.vault, session) if head is not None and session else (),
            watch=_watch(engine.vault.workspace),
            problems=_problems(invocation, engine.vault.workspace),
            cut_off=left,
            to_put_back={one.number: still_to_put_back(engine.vault, scan, one) for one in left},
            degraded=_degraded(opened, head),
            git=_git(opened, scan),
            last=_last(opened, scan),
            redo=_redo(opened, scan),
            agents=_agents(invocation, opened),
            chosen=invocation.chosen_session,
            session_mark=_mark(known),
        )
        unsaved = not_saved_here(invocation.terminal, opened)
        gaps = _gaps(opened, scan)
    if invocation.json:
        described = status_as_json(status, invocation.now, listed=invocation.options.skipped)
        invocation.emit(described | {"warnings": [gap.finding for gap in gaps]})
    else:
        show_status(invocation.terminal, status, invocation.now, listed=invocation.options.skipped)
        if unsaved is not None:
            invocation.terminal.warn(unsaved)
        for gap in gaps:
            invocation.terminal.warn(f"{gap.finding}: {gap.cure}")
    return 0


def _nothing_saved(invocation: Invocation) -> int:
    """Before the first checkpoint. The store is created with it, so there is none to open."""
    from holdfast.bootstrap.workspace_choice import workspace_for
    from holdfast.domain.settings.schema import Settings
    from holdfast.interfaces.agent_setup.protection import protections
    from holdfast.interfaces.cli.status_view import Status, show_status, status_as_json

    workspace = workspace_for(invocation.directory)
    status = Status(
        workspace=workspace,
        store=None,
        store_bytes=0,
        budget_bytes=Settings().budget,
        session=None,
        session_status=None,
        sessions=(),
        checkpoints=0,
        head=None,
        changes=(),
        skipped=(),
        files=0,
        agents=_told(protections(workspace, now=invocation.now)),
    )
    if invocation.json:
        described = status_as_json(status, invocation.now, listed=invocation.options.skipped)
        invocation.emit(described | {"warnings": []})
    else:
        show_status(invocation.terminal, status, invocation.now, listed=False)
    return 0


def _git(opened: Workspace, scan: Scan) -> str | None:
    from holdfast.engine.components.git_drift import present_git

    place = present_git(opened.engine.vault, scan=scan)
    return None if place is None else str(place)


def _mark(session: Session | None) -> str:
    if session is None:
        return ""
    return session.title or f"{session.agent or ''} {session.id}".strip()


def _last(opened: Workspace, scan: Scan) -> LastThing | None:
    """What `undo` would take back; None where there is nothing, or it cannot be told."""
    from holdfast.domain.checkpoints import SETUP_TAG
    from holdfast.engine.undo.description import loss_words, undone_words
    from holdfast.interfaces.cli.status_view import LastThing
    from holdfast.interfaces.cli.undo_dialog import moment_of

    engine = opened.engine
    try:
        try:
            step, loss = engine.last_step(scan), None
        except NothingToUndo:
            step, loss = None, engine.last_loss()
        if step is not None:
            loss = step.loss
        if loss is not None:
            then = datetime.fromtimestamp(loss.cause.at_ns / 1e9, tz=UTC)
            return LastThing(loss_words(engine.vault, loss), then, lost=True)
        if step is None:
            return None
        words, at = undone_words(engine.vault, step), moment_of(step)
        setup = step.saved is not None and SETUP_TAG in step.saved.intent.tags
        if step.undone is not None or setup:
            return LastThing(words, at)
        removed, added = _removed_and_added(opened, scan, step)
        in_turn = _removed_in_turn(opened, scan) if step.causes else 0
        return LastThing(words, at, removed, added, in_turn if in_turn > removed else 0)
    except HoldfastError:
        return None


def _removed_in_turn(opened: Workspace, scan: Scan) -> int:
    """How many files the last turn deleted, if it deleted more than it made."""
    try:
        turn = opened.engine.last_step(scan, turn=True)
    except NothingToUndo:
        return 0
    removed, added = _removed_and_added(opened, scan, turn)
    return removed if removed > added else 0


def _removed_and_added(opened: Workspace, scan: Scan, step: UndoStep) -> tuple[int, int]:
    from holdfast.domain.trees.changes import ChangeType

    changes = opened.engine.changes_in(scan, step.request.target)
    files = [one.type for one in changes if not one.is_directory and not _is_there(scan, one)]
    return files.count(ChangeType.REMOVED), files.count(ChangeType.ADDED)


def _redo(opened: Workspace, scan: Scan) -> str | None:
    """What `redo` would bring back, directly after an undo."""
    from holdfast.engine.undo.description import undone_words

    engine = opened.engine
    try:
        step = engine.next_step()
        seen = step.request.seen
        if seen is None or seen.tree != scan.tree:
            return None
        return undone_words(engine.vault, step)
    except HoldfastError:
        return None


def _is_there(scan: Scan, change: Change) -> bool:
    """Whether a path that the next checkpoint would lack is only left out: it cannot be read, or a
    rule matches it now."""
    from holdfast.domain.paths import is_within
    from holdfast.domain.trees.changes import ChangeType

    return change.type is ChangeType.REMOVED and any(
        is_within(change.path, skip.path) for skip in scan.skipped if skip.path
    )


def _agents(invocation: Invocation, opened: Workspace) -> Sequence[Protection]:
    from holdfast.interfaces.agent_setup.protection import last_events, protections

    workspace = opened.engine.vault.workspace
    return _told(protections(workspace, last_events(opened.opened), now=invocation.now))


def _told(found: Sequence[Protection]) -> Sequence[Protection]:
    from holdfast.interfaces.agent_setup.protection import unprotected

    return [*(one for one in found if one.protected), *unprotected(found)]


def _gaps(opened: Workspace, scan: Scan) -> list[Gap]:
    """Where protection is less than a person may expect."""
    from holdfast.bootstrap.maintenance import ignored_by_far, protection_gaps

    ignored = ignored_by_far(scan.skipped, scan.files)
    gaps = protection_gaps(opened.engine.vault.workspace, opened.setting_problems)
    return [*gaps, *([] if ignored is None else [ignored])]


def _tell_of_problems(invocation: Invocation) -> bool:
    """Where there is no store, or none that can be read, this is all there is to tell, and often
    what explains it. Whether there were any."""
    from holdfast.bootstrap.workspace_choice import workspace_around
    from holdfast.interfaces.cli.status_view import problems_as_json, show_problems
    from holdfast.interfaces.cli.terminal import visible

    workspace = invocation.directory.absolute()
    with contextlib.suppress(HoldfastError):
        workspace = workspace_around(workspace) or workspace
    problems = _problems(invocation, workspace)
    if not problems:
        return False
    if invocation.json:
        invocation.emit({"workspace": str(workspace), **problems_as_json(problems)})
    else:
        invocation.terminal.line(f"workspace {visible(str(workspace))}")
        show_problems(invocation.terminal, problems)
    invocation.terminal.flush()
    return True


def _degraded(opened: Workspace, head: Checkpoint | None) -> Sequence[Degraded]:
    """What the last checkpoint is without; one that cannot be read is for `check` to tell."""
    from holdfast.engine.components.breaker import degraded

    try:
        return degraded(opened.engine.vault, head)
    except StoreDamaged:
        return ()


def _watch(workspace: Path) -> dict[str, Any] | None:
    """What a daemon says about its watch over this workspace; None without daemon or watch."""
    from holdfast.interfaces.daemon.client import DaemonError, NoDaemon, ask

    try:
        answer = ask("status", {"workspace": str(workspace)}, answer_s=_DAEMON_S)
    except (NoDaemon, DaemonError):
        return None
    found = answer.get("workspaces")
    return dict(found[0]["watch"]) if found else None


def _problems(invocation: Invocation, workspace: Path) -> tuple[Problem, ...]:
    """What hooks could not save or record here in the last day."""
    from holdfast.interfaces.hooks.problems import problems_of

    return tuple(problems_of(workspace, invocation.now - timedelta(days=1)))


def _last_cleanup(vault: Vault) -> dict[str, Any] | None:
    noted = vault.space.read_upkeep()
    if "cleaned_ns" not in noted:
        return None
    at = datetime.fromtimestamp(noted["cleaned_ns"] / 1e9, tz=UTC)
    return {
        "at": iso(at),
        "deleted": noted.get("dropped", 0),
        "freed_bytes": noted.get("freed_bytes", 0),
    }
