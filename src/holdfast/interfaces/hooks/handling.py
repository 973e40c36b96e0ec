"""What is done about an event: save before a change, look after it, take a failure back.

    open the workspace's store → lock → seen a moment ago? → session → save → note → notices

Notices come with a claim, which whoever answers settles: `holdfast.interfaces.hooks.telling`.

Guarantee: when `handle` returns for an event before a change, the state before it is durable, or
the trigger is turned off in the settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.app.automation.agent_sessions import end_session, ensure_session, find_session
from holdfast.app.automation.event_dedupe import EventDedupe
from holdfast.app.automation.external_capture import Outside
from holdfast.app.automation.ignored_capture import NamedIgnored, made_ignored
from holdfast.app.automation.merges import keep_merge
from holdfast.app.automation.nested_projects import reached_below, save_below
from holdfast.app.automation.save_notices import (
    not_applied,
    too_large_notices,
    turned_off,
    without_notices,
)
from holdfast.app.automation.tool_tracking import note_begin, note_end, note_unchanged
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.event_workspace import workspace_of
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.agent_events import AgentEvent, EventKind, Notice, Reply, ToolKind
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.errors import Busy, HoldfastError, NotFound, StoreMissing
from holdfast.domain.intent import make_intent
from holdfast.domain.masking import masked
from holdfast.domain.sessions import SessionStatus
from holdfast.domain.tool_calls import message_description, tool_description
from holdfast.engine.save.save import was_last_at
from holdfast.interfaces.hooks.conversation import note_message, note_who_speaks, read_what_is_new
from holdfast.interfaces.hooks.protection_notices import fresh

if TYPE_CHECKING:
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.domain.risk.assessment import Assessment
    from holdfast.domain.sessions import Session

BEGINS = (EventKind.SESSION_START, EventKind.MESSAGE, EventKind.BEFORE_TOOL)
_ENDS = {
    EventKind.COMPACT: "Before the agent compacts its context",
    EventKind.TURN_END: "After the agent's turn",
    EventKind.SESSION_END: "When the session ended",
}
_MOST_COMMAND = 2_000
_CONFIDENCE = 1.0


def handle(event: AgentEvent, when_open: Callable[[OpenWorkspace], None] | None = None) -> Reply:
    """Deal with an event that is known; errors are the caller's to note."""
    begins = event.kind in BEGINS
    try:
        opened = open_workspace(
            workspace_of(event),
            create=begins,
            protect=True,
            spare_repositories=True,
            purpose=f"holdfast hook {event.agent}",
            for_hook=True,
        )
    except (NotFound, StoreMissing):
        if begins:
            raise
        # Nothing to compare with; what an event before it could not say is said now.
        return fresh(event, Reply(), saved=False)
    with opened:
        if when_open is not None:
            when_open(opened)
        return handle_in(opened, event)


def handle_in(opened: OpenWorkspace, event: AgentEvent) -> Reply:
    """The same in a workspace that is open already."""
    if event.kind is EventKind.OTHER:
        return notices_in(opened, event)
    note_end(opened, event)
    read_what_is_new(opened, event)
    engine = opened.engine.for_hooks()
    # An event that saves waits for edits now, before others have to wait for the lock.
    opened = opened.with_engine(engine.having_waited() if event.kind in BEGINS else engine)
    with engine.vault.lock.hold():
        first = is_checked(opened, event) and _deliveries(opened).seen(event) is None
        reply = _with_notices(opened, event, _act(opened, event))
        saved = reply.checkpoint is not None
        reply = _with_news(opened, reply)
        if reply.then is None:
            reply = fresh(event, reply, saved=saved)
        before = _to_be_checked(opened, event) if first else None
        if event.kind is EventKind.MESSAGE:
            note_message(opened, event, _deliveries(opened))
            note_who_speaks(opened, event)
    if reply.then is not None:
        reply = reply._replace(notices=(*reply.notices, *reply.then()), then=None)
        reply = fresh(event, reply, saved=saved)
    return reply if before is None else _checked(opened, event, reply, before)


def notices_in(opened: OpenWorkspace, event: AgentEvent) -> Reply:
    """Just what the agent has to be told, if nobody is at work: it is not kept waiting for that,
    and hears of it the next time."""
    try:
        with opened.engine.vault.lock.hold(wait=False):
            return fresh(event, _with_notices(opened, event.only_asking(), Reply()), saved=False)
    except Busy:
        return Reply()


def _act(opened: OpenWorkspace, event: AgentEvent) -> Reply:
    vault = opened.engine.vault
    deliveries = _deliveries(opened)
    if event.kind is EventKind.SESSION_END:
        return _at_the_end(opened, event, deliveries)
    deliveries.ended(event)
    seen = deliveries.seen(event)
    if seen is not None:
        return Reply(seen or None, deduplicated=True)
    if event.kind in (EventKind.AFTER_TOOL, EventKind.COMPACT, EventKind.TURN_END):
        return _after(opened, event, deliveries)
    if not _is_wanted(opened, event):
        if event.kind is not EventKind.BEFORE_TOOL:
            return Reply()
        deliveries.not_saved_before(event)
        return Reply(
            notices=(turned_off("shell" if event.tool_kind is ToolKind.SHELL else "edit"),)
        )
    session, resumed = ensure_session(opened, event)
    context = (_resumed(session),) if resumed else ()
    keep_merge(opened, session.id)
    if event.kind is EventKind.SESSION_START:
        head = vault.catalog.session(session.id).head  # type: ignore[union-attr]
        return Reply(head, context=context)
    try:
        saved = _save_before(opened, event, session)
    except BaseException:
        deliveries.not_saved_before(event)
        raise
    outcome = saved.outcome
    # Only now: what was seen before the save began may not count as later than it.
    _deliveries(opened).note(event, outcome.checkpoint.id, before=True)
    note_begin(opened, event, outcome.checkpoint)
    if vault.settings.check_command and event.kind is EventKind.BEFORE_TOOL:
        from holdfast.app.automation.checks import remember_checks

        remember_checks(os.environ)
    opened.news = (*opened.news, *saved.said)
    large = too_large_notices(vault, session, outcome.skipped)
    notices = (*without_notices(outcome), *large)
    return Reply(
        outcome.checkpoint.id, outcome.deduplicated, context, notices=notices, then=saved.then
    )


def _resumed(session: Session) -> str:
    head = f", and goes on from checkpoint {session.head[:10]}" if session.head else ""
    return (
        f"The session {session.id} had ended. It is active again{head}: holdfast log lists what it "
        "has, holdfast diff what changed since."
    )


def _deliveries(opened: OpenWorkspace) -> EventDedupe:
    return EventDedupe(opened.store.directory, opened.engine.vault.clock.now_ns())


def _is_wanted(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the trigger is turned on (AU-1)."""
    settings = opened.engine.vault.settings
    if event.kind is EventKind.MESSAGE:
        return settings.auto_message == "on"
    if event.kind in _ENDS:
        return settings.auto_turn_end == "on"
    shell = event.tool_kind is ToolKind.SHELL
    if event.kind is EventKind.AFTER_TOOL:
        return shell and settings.auto_after_shell == "on"
    if event.kind is EventKind.BEFORE_TOOL:
        return (settings.auto_shell if shell else settings.auto_edit) == "on"
    return True


class _Saved(NamedTuple):
    """What was saved, what there is to tell about what it holds, and what is left to save."""

    outcome: SaveOutcome
    said: tuple[str, ...] = ()
    then: Callable[[], tuple[Notice, ...]] | None = None


def _save_before(opened: OpenWorkspace, event: AgentEvent, session: Session) -> _Saved:
    if event.kind is EventKind.MESSAGE:
        intent = make_intent(message_description(event.prompt), confidence=_CONFIDENCE)
        return _Saved(opened.engine.save(session.id, intent, kind=Kind.MESSAGE))
    risk = _risk(opened, event)
    outside = Outside(opened, event, risk)
    outside.remember()
    ignored = NamedIgnored(opened, event, risk)
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
        description, tool_calls=[_tool_call(event, risk, outside)], confidence=_CONFIDENCE
    )
    position = Position(tool_use_id=event.tool_use_id)
    kind = Kind.RISKY if risky else Kind.TOOL
    outcome = opened.engine.save(session.id, intent, kind=kind, position=position)
    below = reached_below(opened, event, risk, outcome)
    then = (lambda: save_below(event, below, intent, kind)) if below else None
    said = (*ignored.said(outcome.checkpoint), *outside.said(outcome))
    return _Saved(outcome, said, then)


def _subject(opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> str:
    """What the headline is about: of several commands the one that may destroy most."""
    if risk is not None and risk.grade and risk.gravest:
        return risk.gravest
    return event.command or ", ".join(_shown(opened, path) for path in event.paths)


def _risk(opened: OpenWorkspace, event: AgentEvent) -> Assessment | None:
    if event.tool_kind is not ToolKind.SHELL:
        return None
    from holdfast.app.automation.shell_disk import shell_disk
    from holdfast.domain.risk.assessment import assess
    from holdfast.engine.shell.parsing import parse

    workspace = str(opened.engine.vault.workspace)
    return assess(
        parse(event.command),
        workspace=workspace,
        directory=event.cwd,
        parse=parse,
        disk=shell_disk(),
    )


def _tool_call(event: AgentEvent, risk: Assessment | None, outside: Outside) -> dict[str, Any]:
    paths = [*event.paths, *(risk.paths if risk is not None else ())]
    call: dict[str, Any] = {"tool": event.tool, "kind": event.tool_kind.value}
    if event.command:
        call["command"] = masked(event.command)[:_MOST_COMMAND]
    if paths:
        call["paths"] = list(dict.fromkeys(paths))
    if outside.named:
        call["outside"] = list(outside.named)
    if outside.captured:
        call["external"] = outside.captured
    if outside.not_captured:
        call["not_captured"] = outside.not_captured
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


def _at_the_end(opened: OpenWorkspace, event: AgentEvent, deliveries: EventDedupe) -> Reply:
    """A turn that a person interrupted has no end of its own: what it left is saved now."""
    session = find_session(opened, event)
    try:
        if session is None or session.status is not SessionStatus.ACTIVE:
            return Reply()
        return _after(opened, event, deliveries)
    finally:
        end_session(opened, event)


def _after(opened: OpenWorkspace, event: AgentEvent, deliveries: EventDedupe) -> Reply:
    session = find_session(opened, event)
    if session is None:
        return Reply()
    if event.failure is not None and opened.engine.vault.settings.restore_on_failure == "on":
        return _take_back(opened, event, session, deliveries)
    if keep_merge(opened, session.id).kept is not None:
        session = find_session(opened, event) or session
    _tell_made_ignored(opened, event, deliveries)
    if not _is_wanted(opened, event) or deliveries.overtaken(event):
        return Reply()
    vault = opened.engine.vault
    head = vault.catalog.checkpoint(session.id, str(session.head))
    if (
        head is not None
        and was_last_at(vault, head.tree)
        and opened.engine.look().tree == head.tree
    ):
        note_unchanged(opened, head)
        return Reply(head.id, deduplicated=True)
    if event.kind in _ENDS:
        description = _ENDS[event.kind]
    else:
        description = tool_description("After", event.tool, event.command)
    intent = make_intent(description, confidence=_CONFIDENCE)
    position = Position(tool_use_id=event.tool_use_id)
    outcome = opened.engine.save(session.id, intent, kind=Kind.TOOL, position=position)
    deliveries.note(event, outcome.checkpoint.id, before=False)
    return Reply(outcome.checkpoint.id, outcome.deduplicated)


def _tell_made_ignored(opened: OpenWorkspace, event: AgentEvent, deliveries: EventDedupe) -> None:
    before = deliveries.checkpoint_before(event) if event.kind is EventKind.AFTER_TOOL else None
    vault = opened.engine.vault
    found = vault.catalog.checkpoint(None, before) if before else None
    if found is not None and event.tool_kind is ToolKind.SHELL and vault.files.named_paths():
        told = made_ignored(opened, event, _risk(opened, event), found)
        opened.news = (*opened.news, *told)


def _take_back(
    opened: OpenWorkspace, event: AgentEvent, session: Session, deliveries: EventDedupe
) -> Reply:
    """Return the workspace to before a tool call that failed (AU-5)."""
    why = f"to before {event.tool} failed ({event.failure})"
    target = deliveries.checkpoint_before(event)
    if target is None or opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        target = _saved_before(opened, event, session) or target
    if target is None:
        # A call that saves nothing has nothing to be rolled back either.
        return _not_restored(why) if event.tool_kind.changes_files else Reply()
    reply = _restored(opened, session, target, why)
    deliveries.note(event, target, before=False)
    return reply


def _not_restored(why: str) -> Reply:
    told = (
        f"Holdfast could not take the workspace back {why}: that checkpoint is gone, and nothing "
        "was changed. Look at the files, or choose another checkpoint: holdfast log"
    )
    return Reply(context=(told,))


def _restored(opened: OpenWorkspace, session: Session, target: str, why: str) -> Reply:
    if opened.engine.vault.catalog.checkpoint(session.id, target) is None:
        return _not_restored(why)
    request = opened.engine.restore_request(session.id, target, only_changes=True)
    outcome = opened.engine.restore(request)
    if not outcome.steps:
        return Reply(target)
    one = outcome.files_changed == 1
    files = "1 file was" if one else f"{outcome.files_changed:,} files were"
    told = (
        f"Holdfast took the workspace back {why}: "
        f"{files} put back to checkpoint {target[:10]}. "
        "Read files again before you edit them. To have the failed state: holdfast undo"
    )
    return Reply(target, context=(told,))


def is_checked(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the user wants what this tool call left to be checked."""
    after = event.kind is EventKind.AFTER_TOOL and event.failure is None
    return after and bool(opened.engine.vault.settings.check_command)


def _to_be_checked(opened: OpenWorkspace, event: AgentEvent) -> str | None:
    """The checkpoint before the tool call, if that changed anything; the event is then noted, so
    that it is checked once."""
    session = find_session(opened, event)
    deliveries = _deliveries(opened)
    if session is None or deliveries.overtaken(event):
        return None
    target = deliveries.checkpoint_before(event) or _saved_before(opened, event, session)
    if target is None:
        return None
    before = opened.engine.vault.catalog.checkpoint(session.id, target)
    if before is None or opened.engine.look().tree == before.tree:
        return None
    deliveries.note(event, session.head, before=False)
    return target


def _checked(opened: OpenWorkspace, event: AgentEvent, reply: Reply, before: str) -> Reply:
    """Run the user's check, without the lock; a failure is told, or taken back (AU-5)."""
    from holdfast.app.automation.checks import CheckNotRun, run_check, shown
    from holdfast.interfaces.hooks.problems import note_problem

    settings = opened.engine.vault.settings
    command = settings.check_command
    try:
        result = run_check(command, opened.engine.vault.workspace, settings.check_timeout)
    except CheckNotRun as error:
        note_problem(event.agent, event, error)
        return reply._replace(context=(*reply.context, f"{error}."))
    if result.status == 0:
        return reply
    failed = f"the check {shown(command)} failed after {event.tool} ({result.failure})"
    told = f"{failed[0].upper()}{failed[1:]}."
    if settings.restore_on_failure == "on":
        with opened.engine.vault.lock.hold():
            session = find_session(opened, event)
            if session is None or _deliveries(opened).overtaken(event):
                told += " Nothing was taken back, because work has gone on meanwhile."
            else:
                why = f"to before {event.tool}, because {failed}"
                told = _restored(opened, session, before, why).text or told
    ended = (f"What it printed last:\n{result.tail}",) if result.tail else ()
    return reply._replace(context=(*reply.context, told, *ended))


def _saved_before(opened: OpenWorkspace, event: AgentEvent, session: Session) -> str | None:
    """When the notes are lost: the checkpoint that says that it was taken before this call."""
    for found in opened.engine.vault.catalog.history(session.id, limit=20):
        same = event.tool_use_id is not None and found.tool_use_id == event.tool_use_id
        if same and found.intent.reasoning.startswith("Before "):
            return found.id
    return None


def _with_news(opened: OpenWorkspace, reply: Reply) -> Reply:
    """What has to be said about the store itself, because it was made just now, and about settings
    that cannot be used."""
    news, opened.news = opened.news, ()
    notices = [Notice(f"store:{text}", text, text) for text in news]
    notices += [not_applied(problem) for problem in opened.setting_problems]
    return reply._replace(notices=(*reply.notices, *notices))


def _with_notices(opened: OpenWorkspace, event: AgentEvent, reply: Reply) -> Reply:
    asked = event.must_wait or event.kind is EventKind.OTHER
    session = find_session(opened, event) if event.carries and asked else None
    if session is None:
        return reply
    if not opened.engine.vault.catalog.restores_since(session.id, limit=1):
        return reply  # most events: nothing more is loaded or opened
    from holdfast.engine.conversation.notices import claim_notices
    from holdfast.interfaces.hooks.problems import note_trouble

    try:
        claim = claim_notices(opened.engine.vault, session.id)
    except HoldfastError as error:  # what was said cannot be read: what was saved counts
        note_trouble(event, "the agent was not told what was taken back", error)
        return reply
    if claim is None:
        return reply
    return reply._replace(context=(*reply.context, *claim.texts), claim=claim)
