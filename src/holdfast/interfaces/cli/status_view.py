"""The status of a workspace, as data and on a screen."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.ids import short
from holdfast.domain.sessions import RoundStatus, round_title
from holdfast.domain.trees.changes import ChangeType
from holdfast.domain.wording import iso_from_ns
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.checkpoint_view import (
    identifier,
    left_out_words,
    list_skipped,
    title,
)
from holdfast.interfaces.cli.terminal import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Terminal,
    visible,
)
from holdfast.interfaces.cli.text_layout import Part, show_fitted
from holdfast.interfaces.cli.wording import ago, count, iso, moment, percent, size, when_words
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.api.automation import Problem
    from holdfast.api.health import WorkspaceStatus
    from holdfast.api.sessions import ApprovalStatus
    from holdfast.api.views.health import StatusView
    from holdfast.interfaces.agent_setup.protection import Protection

_NAMED = 3
_NEARLY_FULL = 0.8
_PROTECT = f"protect an agent: holdfast install {AGENTS[0]} (or another one)"


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that `status` shows."""

    found: WorkspaceStatus
    watch: dict[str, Any] | None = None
    problems: Sequence[Problem] = ()
    agents: Sequence[Protection] = ()
    chosen: str = ""
    """The `--session` option for suggested commands."""

    session_mark: str = ""
    """The session's display name: its title, else its agent and id."""

    all_checkpoints: int = 0
    """The checkpoints of every session."""

    @property
    def share(self) -> float:
        """The used share of the store's budget."""
        return self.found.store_bytes / self.found.budget_bytes


def status_data(status: Status, now: datetime, *, listed: bool) -> StatusView:
    from holdfast.api.views.health import hook_problems_view, status_view

    return status_view(
        status.found,
        watch=status.watch,
        hook_problems=hook_problems_view(status.problems),
        agents=status.agents,
        next_step=next_words(status, now),
        skipped=listed,
    )


def show_status(terminal: Terminal, status: Status, now: datetime, *, listed: bool) -> None:
    """The position, unsaved changes, the last change, agents and the next step; other facts only if
    they matter. On a terminal each is one row, eight in all."""
    found = status.found
    home = f"{Path.home()}/"
    place = visible(str(found.workspace))
    if terminal.for_people and place.startswith(home):
        place = f"~/{place.removeprefix(home)}"
    git = f"  {visible(found.git)}" if found.git else ""
    _fact(terminal, "workspace", Part(place, elastic=True), Part(git, (DIM,)))
    if found.store is None:
        _fact(terminal, "saved", "nothing yet")
    else:
        _show_session(terminal, status, now)
        _show_head(terminal, status, now)
    _show_last(terminal, status, now)
    _show_agents(terminal, status, now)
    show_problems(terminal, status.problems)
    _show_interrupted(terminal, status)
    _show_degraded(terminal, status)
    _show_store(terminal, status, listed=listed)
    if status.watch is not None and (not status.watch["watched"] or status.watch["differences"]):
        _fact(terminal, "watch", *_watch_words(status.watch))
    _fact(terminal, "next", Part(next_words(status, now, terminal.yes_flag)))
    if listed:
        list_skipped(terminal, found.skipped)
        if any(skip.reason is SkipReason.IGNORED for skip in found.skipped):
            terminal.note("note: to save an ignored file: holdfast config add include FILE")


def next_words(status: Status, now: datetime, sure: str = "") -> str:
    """The most useful next command. Problems that prevent saving come first, then losses, missing
    protection and unsaved changes."""
    found = status.found
    if (blocker := found.blocker) is not None:
        return f"make checkpoints possible again: {visible(blocker.cure)}"
    protect = ""
    unprotected = next((one for one in status.agents if not one.protected), None)
    if unprotected is not None and unprotected.cure:
        protect = f"protect {unprotected.agent}: {visible(unprotected.cure)}"
    if found.store is None:
        begin = "start your agent; its first step saves the project"
        return protect or (begin if status.agents else _PROTECT)
    if found.head is None:
        return f'save this state: holdfast checkpoint "why"{status.chosen}'
    if found.last is not None and found.last.is_in_wrecked_turn(now):
        files = count(found.last.removed_in_turn, "deleted file")
        return f"restore {files}: holdfast undo --turn{sure}"
    if found.last is not None and found.last.is_wreck(now):
        return f"restore {count(found.last.removed, 'deleted file')}: holdfast undo{sure}"
    if protect:
        return protect
    if any(not one.saved for one in status.problems):
        return "find out why agent events failed: holdfast doctor"
    if status.share >= _NEARLY_FULL:
        return "free space in the store: holdfast cleanup"
    if found.changes:
        return f'holdfast checkpoint "why"{status.chosen} to save, holdfast undo to go back'
    if not status.agents:
        return _PROTECT
    return "list the checkpoints you can go back to: holdfast log"


def _show_last(terminal: Terminal, status: Status, now: datetime) -> None:
    found, last = status.found, status.found.last
    if found.redo is not None:
        what = Part(f"undid {visible(found.redo)}", elastic=True)
        _fact(terminal, "last", what, Part(f"  (holdfast redo{terminal.yes_flag})", (DIM,)))
        return
    if last is None:
        return
    when = f", {ago(last.at, now)}" if last.at is not None else ""
    parts = [Part(visible(last.what), elastic=True), Part(when, optional=terminal.for_people)]
    if last.lost:
        _fact(terminal, "last", *parts)
        return
    if not terminal.for_people:
        parts.append(Part(f"  undo it: holdfast undo{terminal.yes_flag}"))
    elif last.is_in_wrecked_turn(now) or not last.is_wreck(now):  # else it is the next step
        parts.append(Part("  (holdfast undo)", (DIM,)))
    _fact(terminal, "last", *parts)


def _show_agents(terminal: Terminal, status: Status, now: datetime) -> None:
    """For each agent, whether its hooks would run. Problems come first."""
    rows: list[list[Part]] = []
    for one in (one for one in status.agents if not one.protected):
        said = Part("NOT protected", (RED,))
        if one.removed_by_user:
            said = Part("not protected", (DIM,))
        finding = Part(f": {visible(one.finding)}", elastic=True)
        rows.append([Part(f"{visible(one.agent)} "), said, finding])
    safe = [one for one in status.agents if one.protected]
    for agent in dict.fromkeys(one.agent for one in safe):
        seen = next((one.last_event for one in safe if one.agent == agent), None)
        last = f", last seen {ago(seen, now)}" if seen is not None else ""
        said = Part("protected", (GREEN,))
        rows.append([Part(f"{visible(agent)} "), said, Part(last, optional=True)])
    if not rows:
        rows.append([Part("none protected here")])
    if terminal.for_people and safe:
        wrong = len(rows) - len({one.agent for one in safe})
        first, *others = rows[wrong:]
        later = [[Part("; "), *row] for row in others]
        rows = [*rows[:wrong], [part for row in (first, *later) for part in row]]
    for row in rows:
        _fact(terminal, "agents", *row)


def _show_store(terminal: Terminal, status: Status, *, listed: bool) -> None:
    """Shown if the store is nearly full or a cleanup deleted something, with left-out paths."""
    found = status.found
    cleaned = _cleanup_words(status)
    left_out = left_out_words(found.skipped)
    full = status.share >= _NEARLY_FULL
    if full or cleaned:
        used = f"{size(found.store_bytes)} of {size(found.budget_bytes)}"
        used = f"{used} ({percent(status.share)})"
        parts = [Part(used, (YELLOW,) if full else ()), Part(cleaned, elastic=True)]
        if left_out and terminal.for_people:
            parts.append(Part(f"; left out: {left_out}"))
        _fact(terminal, "store", *parts)
    if left_out and not (terminal.for_people and (full or cleaned)):
        how = "" if listed else "  (list: holdfast status --skipped)"
        _fact(terminal, "left out", Part(left_out, elastic=True), Part(how, (DIM,), optional=True))


def _cleanup_words(status: Status) -> str:
    """Shown only if the cleanup deleted something."""
    cleanup = status.found.cleanup
    if cleanup is None or not cleanup.deleted:
        return ""
    return f"; deleted {count(cleanup.deleted, 'expired checkpoint')} on {iso(cleanup.at)[:10]}"


def show_problems(terminal: Terminal, problems: Sequence[Problem]) -> None:
    """Agent events without a checkpoint, and conversations that were not recorded."""
    unsaved = [one for one in problems if not one.saved]
    _show_problems(terminal, "without a checkpoint", unsaved)
    _show_problems(terminal, "not recorded", [one for one in problems if one.saved])


def _show_interrupted(terminal: Terminal, status: Status) -> None:
    """Interrupted work, by session, and the two ways to continue."""
    found = status.found
    for session in dict.fromkeys(one.session_id for one in found.interrupted):
        others = session != found.session
        chosen = f" --session {quote(visible(session))}" if others else status.chosen
        for one in (one for one in found.interrupted if one.session_id == session):
            what = f"{one.kind.value} {one.number}: {visible(one.reason)}"
            said = what + (f" (session {visible(session)})" if others else "")
            _fact(terminal, "open", Part(said, (YELLOW,), elastic=True))
            left = found.restorable.get(one.number, one.paths)
            if one.paths and not left:
                terminal.line("  all of its files were new, and all are gone now")
                continue
            paths = "".join(f" {terminal.typed(path)}" for path in left)
            way = f"{short(one.checkpoint)}{paths}{chosen}{terminal.yes_flag}"
            terminal.line(f"  roll it back: holdfast restore {way}")
        terminal.line(f"  or keep it as it is: holdfast attempt --keep{chosen}")


def _show_degraded(terminal: Terminal, status: Status) -> None:
    """Components that the last checkpoint lacks, in whole or in part, and whether they are
    paused."""
    for one in status.found.degraded:
        words = f"{one.name}: {visible(one.reason)}"
        _fact(terminal, "without", Part(words, (YELLOW,), elastic=True))
        if one.left_alone_until_ns is not None:
            until = iso_from_ns(one.left_alone_until_ns)
            terminal.line(f"  {count(one.failures, 'failure')} in a row; paused until {until}")


def _watch_words(watch: dict[str, Any]) -> list[Part]:
    """If the watch is not trusted, a save scans every file: slower, but just as safe."""
    watched = count(watch["directories"], "directory", "directories")
    if watch["watched"]:
        said = Part(f"{watched}, all changes known")
    elif watch["off"]:
        said = Part(f"none: {visible(watch['reason'])}", (YELLOW,), elastic=True)
    else:
        words = f"{watched}; the next save scans every file: {visible(watch['reason'])}"
        said = Part(words, elastic=True)
    wrong = f"  ({count(watch['differences'], 'time')} wrong)" if watch["differences"] else ""
    return [said, Part(wrong, (RED,))]


def _show_session(terminal: Terminal, status: Status, now: datetime) -> None:
    found = status.found
    others = [visible(name) for name in found.sessions if name != found.session][::-1]
    number = count(len(others), "other session")
    if not terminal.for_people:
        number += ": " + ", ".join(others[:_NAMED]) + (", …" if len(others) > _NAMED else "")
    in_all = f"; {count(status.all_checkpoints, 'checkpoint')} in all"
    more = [
        Part(f"  ({number}", (DIM,)),
        Part(in_all, (DIM,), optional=terminal.for_people),
        Part(")", (DIM,)),
    ]
    more = more if others else []
    if found.session is None:
        _fact(terminal, "session", Part("none"), *more)
        return
    name = status.session_mark if terminal.for_people else found.session
    ended = f", {found.session_status}" if found.session_status != "active" else ""
    held = f"{ended}, {count(found.checkpoints, 'checkpoint')}"
    if not terminal.for_people or found.approval is None:
        _fact(terminal, "session", Part(visible(name), elastic=True), Part(held), *more)
        if found.approval is not None:
            words = _approval_words(found.approval, now)
            _fact(terminal, "round", words + _abandoned(terminal, status))
        return
    approved = "not approved yet" if found.approval.has_unapproved else "nothing to approve"
    in_round = Part(f"; {round_title(found.approval.active.name)}: {approved}", optional=True)
    _fact(terminal, "session", Part(visible(name), elastic=True), Part(held), in_round, *more)


def _approval_words(status: ApprovalStatus, now: datetime) -> str:
    """For example `round 2, 3 checkpoints, not approved yet, unsaved changes; last approval 2 hours
    ago`."""
    parts = [round_title(status.active.name), count(status.checkpoints, "checkpoint")]
    parts.append("not approved yet" if status.has_unapproved else "nothing to approve")
    if status.unsaved:
        parts.append("unsaved changes")
    last = status.last_approved_at_ns
    return ", ".join(parts) + (f"; last approval {ago(moment(last), now)}" if last else "")


def _abandoned(terminal: Terminal, status: Status) -> str:
    thrown = [one for one in status.found.rounds if one.status is RoundStatus.ABANDONED]
    words = f"  ({len(thrown):,} abandoned; list: holdfast log --rounds{status.chosen})"
    return terminal.paint(words, DIM) if thrown else ""


def _show_head(terminal: Terminal, status: Status, now: datetime) -> None:
    found = status.found
    if found.head is None:
        why = "HEAD was deleted" if found.checkpoints else "no checkpoint yet"
        _fact(terminal, "HEAD", f'{why}; to create one: holdfast checkpoint "why"{status.chosen}')
        return
    when = when_words(terminal, found.head.created_at, now)
    known = Part(f"{identifier(terminal, found.head)}, {when}: ")
    _fact(terminal, "HEAD", known, Part(title(found.head), elastic=True))
    if not found.changes and not found.files:
        empty = Part("no files left in the project", (YELLOW,))
        _fact(terminal, "unsaved", empty, Part("; nothing changed since HEAD"))
        return
    if not found.changes:
        unchanged = Part("nothing changed since HEAD", (GREEN,))
        if found.last is not None and found.last.lost:
            unchanged = Part("no saved file changed since HEAD", (YELLOW,))
        _fact(terminal, "unsaved", unchanged, Part(f", {count(found.files, 'file')}"))
        return
    files = [change for change in found.changes if not change.is_directory] or found.changes
    counts = Counter(change.type for change in found.changes)
    words = ", ".join(f"{counts[kind]:,} {kind.value}" for kind in ChangeType if counts[kind])
    named = ", ".join(terminal.path(change.path) for change in files[:_NAMED])
    more = ", …" if len(files) > _NAMED else ""
    _fact(
        terminal,
        "unsaved",
        Part(words, (BOLD,)),
        Part(f": {named}{more}", elastic=True),
        Part("  (list: holdfast diff --stat)", (DIM,), optional=True),
    )


def _show_problems(terminal: Terminal, how: str, problems: Sequence[Problem]) -> None:
    if not problems:
        return
    from holdfast.interfaces.hooks.runtime_files import problem_log

    last = problems[-1]
    colour = YELLOW if last.saved else RED
    what = " ".join(part for part in (last.agent, last.event, last.tool) if part)
    reason = f"{visible(what or 'holdfast hook')}: {visible(last.message)}"
    words = f"{count(len(problems), 'agent event')} {how} in the last day"
    if terminal.for_people:
        _fact(terminal, "hooks", Part(words, (colour,)), Part(f"; last: {reason}", elastic=True))
        return
    _fact(terminal, "hooks", terminal.paint(f"{words}, the last one {iso(last.at)}", colour))
    terminal.line(f"  {reason}")
    logs = ", ".join(visible(str(log)) for log in problem_log(os.environ).files())
    terminal.line(f"  (all of them: {logs})", DIM)


def _fact(terminal: Terminal, label: str, *parts: Part | str) -> None:
    shown = [part if isinstance(part, Part) else Part(part) for part in parts]
    show_fitted(terminal, [Part(f"{label:<9} ", (DIM,)), *(part for part in shown if part.text)])
