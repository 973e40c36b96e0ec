"""Handles an agent event: save before a change, check after it, roll back a failure.

    known? → in the workspace: tool's end → conversation → lock → duplicate? → session →
    save, or restore → notices → the user's check

Notices come with the reply; the interface that answers the agent reports delivery with `settle`.

Guarantee: once an event before a change is handled, the state before the change is durable. After a
change, so is the state after it, unless the settings turn the trigger off. So changes that a person
makes after the agent has its answer are not part of the agent's change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.app.automation.agent_sessions import (
    ConversationCapture,
    end_session,
    ensure_session,
    find_session,
)
from holdfast.app.automation.event_dedupe import EventDedupe
from holdfast.app.automation.host import OpenedForEvent
from holdfast.app.automation.merges import keep_merge
from holdfast.app.automation.notices import (
    SessionNotices,
    setting_notice,
    skip_notices,
    too_large_notices,
    trigger_off_notice,
)
from holdfast.app.automation.problem_log import ProblemLog
from holdfast.app.automation.tool_checkpoint import (
    ToolCheckpoint,
    command_risk,
    intent_after_tool,
    note_begin,
    note_end,
    note_unchanged,
    save_before_tool,
)
from holdfast.domain.agent_events import EDIT_TOOLS, AgentEvent, EventKind, Notice, Reply, ToolKind
from holdfast.domain.checkpoints import Checkpoint, Kind, Position
from holdfast.domain.errors import HoldfastError
from holdfast.domain.intent import make_intent
from holdfast.domain.sessions import SessionStatus
from holdfast.domain.tool_calls import message_description
from holdfast.engine.save.save import was_last_at
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.app.automation.agent_sessions import AgentProcesses
    from holdfast.app.automation.host import EventWorkspace, Host
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import NoticeClaim
    from holdfast.domain.sessions import Session

_ENDS = {
    EventKind.COMPACT: "Before the agent compacts its context",
    EventKind.TURN_END: "After the agent's turn",
    EventKind.SESSION_END: "When the session ended",
}
_CONFIDENCE = 1.0


class _Action(NamedTuple):
    """The result of the work under the lock, and what is left to save without it."""

    reply: Reply
    save_nested: Callable[[], tuple[Notice, ...]] | None = None


class EventHandler:
    """Handles the events of one user's agents, in any process."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.problems = ProblemLog(host)
        self.notices = SessionNotices(host)
        self._conversation = ConversationCapture(self.problems)

    @cached_property
    def agents(self) -> AgentProcesses:
        """The agent processes that events came from, for a process that outlives them."""
        from holdfast.app.automation.agent_sessions import AgentProcesses

        return AgentProcesses(self.host.processes)

    def workspace_for(self, event: AgentEvent) -> OpenedForEvent:
        """For a process that handles only this event."""
        return OpenedForEvent(self.host, event)

    def handle_event(self, event: AgentEvent, workspace: EventWorkspace) -> Reply:
        """The caller reports errors with `failed`."""
        if not event.is_known:
            return Reply()
        reply = workspace.use(event, lambda opened: self.handle_in(opened, event))
        if reply is None:
            # There is no store. Waiting notices go with this reply.
            return self.notices.due(event, Reply(), saved=False)
        return reply

    def failed(self, event: AgentEvent, error: BaseException) -> Reply:
        """No checkpoint could be made: log it and notify the agent."""
        self.problems.note_problem(event.agent, event, error)
        return self.notices.of_failure(event, error)

    def settle(
        self, event: AgentEvent, workspace: EventWorkspace, reply: Reply, *, delivered: bool
    ) -> None:
        """Record whether the agent received the answer. If not, the next event repeats its notices.

        Guarantee: an undelivered notice is repeated with the next event. If the process is killed
        just after sending the answer, the notice is given twice.
        """
        if reply.claim is not None:
            self._settle_claim(event, workspace, reply.claim, delivered=delivered)
        if reply.notices and delivered:
            self.notices.note_delivered(event, reply.notices)

    def _settle_claim(
        self, event: AgentEvent, workspace: EventWorkspace, claim: NoticeClaim, *, delivered: bool
    ) -> None:
        from holdfast.engine.conversation.notices import settle_claim

        try:
            purpose = f"holdfast hook {event.agent}"
            with self.host.open_workspace(workspace.path, create=False, purpose=purpose) as opened:
                settle_claim(opened.engine.vault, claim, delivered=delivered)
        except Exception as error:  # the agent has its answer, and the claim expires
            self.problems.note_trouble(event, "could not record that the agent was notified", error)

    def handle_in(self, opened: OpenWorkspace, event: AgentEvent) -> Reply:
        """Handle an event in an open workspace."""
        note_end(opened, event)
        self._conversation.read_transcript(opened, event)
        engine = opened.engine.for_hooks()
        # An event that saves waits for edits now, before it makes others wait for the lock.
        opened = opened.with_engine(engine.after_waiting() if event.begins else engine)
        with engine.vault.lock.hold():
            dedupe = EventDedupe.of(opened)
            first = is_checked(opened, event) and dedupe.earlier_checkpoint(event) is None
            action = self._act(opened, event, dedupe)
            reply = self._with_restores(opened, event, action.reply)
            saved = reply.checkpoint is not None
            reply = _with_news(opened, reply)
            if action.save_nested is None:
                reply = self.notices.due(event, reply, saved=saved)
            before = _checkpoint_to_check(opened, event) if first else None
            if event.kind is EventKind.MESSAGE:
                self._conversation.note_message(opened, event, EventDedupe.of(opened))
        if action.save_nested is not None:
            reply = reply._replace(notices=(*reply.notices, *action.save_nested()))
            reply = self.notices.due(event, reply, saved=saved)
        if before is None:
            return reply
        from holdfast.app.automation.auto_restore import check_after_tool

        return check_after_tool(opened, event, reply, before, self.problems)

    def _act(self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> _Action:
        if event.kind is EventKind.SESSION_END:
            return _Action(self._at_session_end(opened, event, dedupe))
        dedupe.ended(event)
        seen = dedupe.earlier_checkpoint(event)
        if seen is not None:
            return _Action(Reply(seen or None, deduplicated=True))
        if event.kind in (EventKind.AFTER_TOOL, EventKind.COMPACT, EventKind.TURN_END):
            return _Action(self._after(opened, event, dedupe))
        if not is_trigger_on(opened, event):
            if event.kind is not EventKind.BEFORE_TOOL:
                return _Action(Reply())
            dedupe.forget_checkpoint(event)
            trigger = "shell" if event.tool_kind is ToolKind.SHELL else "edit"
            return _Action(Reply(notices=(trigger_off_notice(trigger),)))
        return self._before(opened, event, dedupe)

    def _before(self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> _Action:
        vault = opened.engine.vault
        session, created, resumed = ensure_session(opened, event)
        context = (_resumed(session),) if resumed else ()
        starts = event.kind is EventKind.SESSION_START
        # `RunningTools` has the process of each tool call, so no story is opened for one only.
        begun = (created or resumed) and event.kind is EventKind.BEFORE_TOOL
        if starts or (begun and vault.has_story()):
            self._conversation.note_beginning(opened, event, session)
        keep_merge(opened, session.id)
        if starts:
            head = vault.catalog.session(session.id).head  # type: ignore[union-attr]
            return _Action(Reply(head, context=context))
        try:
            saved = self._save(opened, event, session)
        except BaseException:
            dedupe.forget_checkpoint(event)
            raise
        outcome = saved.outcome
        # Only now, because its time must not be older than the save.
        EventDedupe.of(opened).note(event, outcome.checkpoint.id, before=True)
        note_begin(opened, event, outcome.checkpoint)
        opened.news = (*opened.news, *saved.messages)
        large = too_large_notices(vault, session, outcome.skipped)
        notices = (*skip_notices(outcome), *large)
        reply = Reply(outcome.checkpoint.id, outcome.deduplicated, context, notices=notices)
        return _Action(reply, saved.save_nested)

    def _save(self, opened: OpenWorkspace, event: AgentEvent, session: Session) -> ToolCheckpoint:
        if event.kind is EventKind.MESSAGE:
            intent = make_intent(message_description(event.prompt), confidence=_CONFIDENCE)
            return ToolCheckpoint(opened.engine.save(session.id, intent, kind=Kind.MESSAGE))
        return save_before_tool(self.host, opened, event, session)

    def _at_session_end(
        self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe
    ) -> Reply:
        """An interrupted turn has no end event, so its changes are saved now."""
        session = find_session(opened, event)
        try:
            if session is None or session.status is not SessionStatus.ACTIVE:
                return Reply()
            return self._after(opened, event, dedupe)
        finally:
            end_session(opened, event)

    def _after(self, opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> Reply:
        session = find_session(opened, event)
        if session is None:
            return Reply()
        vault = opened.engine.vault
        if event.failure is not None and vault.settings.restore_on_failure == "on":
            from holdfast.app.automation.auto_restore import restore_after_failure

            return restore_after_failure(opened, event, session, dedupe)
        if keep_merge(opened, session.id).kept is not None:
            session = find_session(opened, event) or session
        _report_created_ignored(opened, event, dedupe)
        edited = event.kind is EventKind.AFTER_TOOL and event.tool_kind in EDIT_TOOLS
        if edited and event.paths and event.failure is None:
            from holdfast.app.automation.reported_edits import record_edit

            record_edit(opened, event, session, dedupe)
        if not is_trigger_on(opened, event) or dedupe.is_superseded(event):
            return Reply()
        head = vault.catalog.checkpoint(session.id, str(session.head))
        if head is not None and was_last_at(vault, head.tree):
            if opened.engine.scan().tree == head.tree and not _is_changed_outside(opened, head):
                note_unchanged(opened, head)
                return Reply(head.id, deduplicated=True)
        elif (
            edited
            and was_last_at(vault, opened.engine.scan().tree)
            and not _is_changed_outside(opened, head)
        ):
            return Reply()  # another session has saved it since
        if event.kind in _ENDS:
            intent = make_intent(_ENDS[event.kind], confidence=_CONFIDENCE)
        else:
            intent = intent_after_tool(opened, event)
        position = Position(tool_use_id=event.tool_use_id)
        outcome = opened.engine.save(session.id, intent, kind=Kind.TOOL, position=position)
        dedupe.note(event, outcome.checkpoint.id, before=False)
        return Reply(outcome.checkpoint.id, outcome.deduplicated)

    def _with_restores(self, opened: OpenWorkspace, event: AgentEvent, reply: Reply) -> Reply:
        """Add the agent's notices about restores since its last event."""
        session = find_session(opened, event) if event.carries else None
        if session is None:
            return reply
        if not opened.engine.vault.catalog.restores_since(session.id, limit=1):
            return reply  # for most events, nothing more is loaded or opened
        from holdfast.engine.conversation.notices import claim_notices

        try:
            claim = claim_notices(opened.engine.vault, session.id)
        except HoldfastError as error:  # the story cannot be read; the checkpoint is made anyway
            self.problems.note_trouble(event, "could not notify the agent of the rollback", error)
            return reply
        if claim is None:
            return reply
        return reply._replace(context=(*reply.context, *claim.texts), claim=claim)


def _is_changed_outside(opened: OpenWorkspace, head: Checkpoint | None) -> bool:
    """Whether files outside the workspace that tools named have changed since."""
    if head is None or not opened.engine.vault.parts.external_paths.exist():
        return False
    from holdfast.engine.undo.outside_files import is_changed_now

    return is_changed_now(opened.engine.vault, head)


def is_trigger_on(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the settings want a checkpoint for this event (AU-1)."""
    settings = opened.engine.vault.settings
    if event.kind is EventKind.MESSAGE:
        return settings.auto_message == "on"
    if event.kind in _ENDS:
        return settings.auto_turn_end == "on"
    shell = event.tool_kind is ToolKind.SHELL
    if event.kind is EventKind.AFTER_TOOL and shell:
        return settings.auto_after_shell == "on"
    if event.kind is EventKind.AFTER_TOOL:
        # A failed edit normally changes nothing, and the agent waits for this answer.
        return event.failure is None and settings.auto_after_edit == "on"
    if event.kind is EventKind.BEFORE_TOOL:
        return (settings.auto_shell if shell else settings.auto_edit) == "on"
    return True


def is_checked(opened: OpenWorkspace, event: AgentEvent) -> bool:
    """Whether the user wants this tool call to be checked."""
    after = event.kind is EventKind.AFTER_TOOL and event.failure is None
    return after and bool(opened.engine.vault.settings.check_command)


def _checkpoint_to_check(opened: OpenWorkspace, event: AgentEvent) -> str | None:
    """The checkpoint before the tool call, if the call changed anything. The event is noted, so
    that it is checked once."""
    from holdfast.app.automation.auto_restore import checkpoint_by_intent

    session = find_session(opened, event)
    dedupe = EventDedupe.of(opened)
    if session is None or dedupe.is_superseded(event):
        return None
    target = dedupe.checkpoint_before(event) or checkpoint_by_intent(opened, event, session)
    if target is None:
        return None
    before = opened.engine.vault.catalog.checkpoint(session.id, target)
    if before is None or opened.engine.scan().tree == before.tree:
        return None
    dedupe.note(event, session.head, before=False)
    return target


def _resumed(session: Session) -> str:
    head = f", and continues from checkpoint {session.head[:10]}" if session.head else ""
    return (
        f"The session {session.id} had ended and is active again{head}. holdfast log lists its "
        "checkpoints, holdfast diff shows changes since the last one."
    )


def _report_created_ignored(opened: OpenWorkspace, event: AgentEvent, dedupe: EventDedupe) -> None:
    before = dedupe.checkpoint_before(event) if event.kind is EventKind.AFTER_TOOL else None
    vault = opened.engine.vault
    found = vault.catalog.checkpoint(None, before)
    if found is not None and event.tool_kind is ToolKind.SHELL and vault.parts.named_paths.load():
        from holdfast.app.automation.ignored_capture import created_ignored

        messages = created_ignored(opened, event, command_risk(opened, event), found)
        opened.news = (*opened.news, *messages)


def _with_news(opened: OpenWorkspace, reply: Reply) -> Reply:
    """Add notices about the store, such as one created in place of a lost one, and about invalid
    settings."""
    news, opened.news = opened.news, ()
    notices = [Notice(f"store:{text}", text, text) for text in news]
    notices += [setting_notice(problem) for problem in opened.setting_problems]
    return reply._replace(notices=(*reply.notices, *notices))
