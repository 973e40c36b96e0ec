"""The dialog of `restore`, `undo`, `redo` and `reset`: preview, question, restore, report."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from holdfast.domain.diff.hunk_choice import NumberedHunk
from holdfast.domain.errors import HoldfastError, Refused
from holdfast.domain.git.drift import TO_RESTORE_GIT
from holdfast.domain.ids import short
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import NOTHING_CHANGED, RESTORE_DONE, RestoreOutcome
from holdfast.domain.paths import GIT_DIRECTORY, basename, is_within, parent, to_text
from holdfast.domain.restore.plan import FAILED, Missing, RestorePlan
from holdfast.domain.sessions import round_title
from holdfast.domain.wording import reworded
from holdfast.interfaces.agent_setup.lost_hooks import with_lost_hooks
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.restore_view import (
    action_words,
    component_words,
    missing_to_report,
    show_components_outcome,
    show_nothing_to_do,
    show_outcome,
    show_plan,
    shown_missing,
    summary,
    target_words,
)
from holdfast.interfaces.cli.standard_input import can_ask, require_confirmation
from holdfast.interfaces.cli.terminal import DIM, Terminal, visible

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest
    from holdfast.api.views.restores import RestoreView, StoppedAgentView, UndoneView
    from holdfast.api.workspace import Workspace

EXTERNAL = "external"
"""The component of files outside the workspace."""
_MOST_LOOKED_FOR = 5
_HINT = "preview it with --dry-run; confirm it with --yes"


class RestoreDialog:
    """One restore with its preview, question and report. `what` and `undone` describe the step that
    it undoes, as words and as data. `steps_back` is the number of undo or redo steps that revert
    it."""

    def __init__(
        self,
        invocation: Invocation,
        opened: Workspace,
        request: RestoreRequest,
        hunks: Sequence[NumberedHunk] = (),
        *,
        what: str | None = None,
        undone: UndoneView | None = None,
        steps_back: int = 1,
    ) -> None:
        self._invocation = invocation
        self._terminal = invocation.terminal
        self._opened = opened
        self._request = request
        self._hunks = hunks
        self._what = what
        self._undone = undone
        self._steps_back = steps_back

    def run_with_external(self) -> int:
        """Like `run`, after the user chose among the files outside the workspace."""
        incomplete = False
        if any(name == EXTERNAL for name, _ in self._request.components):
            from holdfast.interfaces.cli.restore_choices import choose_external

            self._request, incomplete = choose_external(
                self._invocation, self._opened, self._request
            )
        return self.run() or (PARTIAL * incomplete)

    def run(self) -> int:
        """Carry out the request, or only show it; returns the exit status."""
        with self._hints_with_options():
            if self._invocation.options.dry_run:
                self._preview()
                return 0
            return self._carry_out()

    @contextmanager
    def _hints_with_options(self) -> Iterator[None]:
        """Undo, redo and reset have no --best-effort; a restore to the same checkpoint has."""
        try:
            yield
        except HoldfastError as error:
            if error.hint is not None and not hasattr(self._invocation.options, "best_effort"):
                restore = f"holdfast restore {short(self._request.target.id)} --best-effort"
                error.hint = error.hint.replace("--best-effort", restore)
            raise

    def _carry_out(self) -> int:
        invocation, opened, request = self._invocation, self._opened, self._request
        working: tuple[str, ...] = ()
        shown = None
        if invocation.options.yes:
            working = opened.restores.working_agents(request)
            if not invocation.json:
                self._terminal.warn(*working)
        else:
            shown = self._confirm()
        agents = self._stop_agents()
        invocation.cancel_note = None
        with invocation.busy("restoring", opened), _acknowledge_ctrl_c(invocation):
            wanted = request if shown is None else partial(self._as_shown, shown)
            outcome = with_lost_hooks(opened, opened.restores.restore(wanted))
        invocation.cancel_note = RESTORE_DONE if outcome.recorded else NOTHING_CHANGED
        reset = None
        if request.kind is OperationKind.RESET:
            reset = opened.rounds.reset_outcome(request.session_id, outcome)
        if invocation.json:
            from holdfast.api.views.restores import restored_view

            git, took_ms = opened.restores.git_now(outcome), invocation.elapsed_ms
            undone, hunks = self._undone, self._hunks
            view = restored_view(
                outcome, took_ms, git, working, reset=reset, undone=undone, hunks=hunks
            )
            self._emit(view, agents)
        else:
            self._show_outcome(outcome, shown)
            self._show_head(outcome)
            self._show_fixes(outcome.missing)
            if shown is None:
                self._show_other_references(self._terminal, outcome)
            if reset is not None and reset.abandoned is not None:
                ended, begun = round_title(reset.abandoned), round_title(reset.new_round)
                self._terminal.sentence(f"  {ended} is abandoned; {begun} begins", DIM)
        failed = any(component.status == FAILED for component in outcome.components)
        failed = failed or self._lacks_files(outcome)
        return PARTIAL if outcome.skipped or failed or not outcome.verified else 0

    def _emit(self, view: RestoreView, agents: list[StoppedAgentView] | None) -> None:
        if agents is not None:
            view["agents"] = agents
        self._invocation.emit(view)

    def _plan(self) -> RestorePlan:
        with self._invocation.busy("planning", self._opened):
            return with_lost_hooks(self._opened, self._opened.restores.plan(self._request))

    def _preview(self) -> None:
        invocation, terminal, restores = self._invocation, self._terminal, self._opened.restores
        plan = self._plan()
        agents = self._agents_to_stop()
        if invocation.json:
            from holdfast.api.views.restores import planned_view

            view = planned_view(
                self._request.target,
                plan,
                invocation.elapsed_ms,
                restores.git_now(),
                best_effort=self._request.best_effort,
                abandoned=self._abandoned_round(plan),
                undone=self._undone,
                hunks=self._hunks,
            )
            self._emit(view, agents)
            return
        self._show_plan(terminal, plan)
        self._show_fixes(plan.missing)
        self._show_other_references(terminal)
        if self._hunks:
            from holdfast.interfaces.cli.restore_choices import show_hunks

            show_hunks(terminal, self._hunks)
        self._show_warnings(terminal, plan.warnings, answering=True)
        for one in agents or ():
            terminal.sentence(f"would ask {visible(one['agent'])} to end{_process(one)}")
        terminal.sentence("Nothing was changed (dry run).")

    def _confirm(self) -> RestorePlan | None:
        """The plan, if the user has seen and confirmed it. There is no question for a single
        affected file, or if the engine will refuse anyway. On a terminal, the effect of an undo is
        always shown first."""
        request, plan = self._request, self._plan()
        others = [step for step in plan.components if step.actions]
        obstacles = plan.blocked or any(step.blocked for step in plan.components)
        if obstacles and not request.best_effort:
            return None
        asks = can_ask(self._invocation)
        few = len(plan.affected_files) <= 1 and not others
        if few and not (asks and self._what is not None and plan.steps):
            return None
        if asks:
            aside = self._terminal.stderr_copy()
            self._show_plan(aside, plan)
            self._show_other_references(aside)
            self._show_warnings(aside, plan.warnings, answering=True)
        require_confirmation(
            self._invocation,
            f"{action_words(request, self._what)} needs confirmation: {_changed(plan)}",
            f"{request.kind.value.capitalize()}?",
            hint=_HINT,
        )
        return plan if asks else None

    def _as_shown(self, shown: RestorePlan) -> RestoreRequest:
        """The request, unless it would change files that the user was not shown. Called with the
        store's lock held."""
        plan = self._opened.restores.plan(self._request)
        new = sorted(set(plan.affected_files) - set(shown.affected_files))
        if new:
            raise Refused(
                f"{to_text(new[0])} has changed since the preview, so nothing was restored",
                hint="run the command again, and look at the new preview",
            )
        return self._request

    def _show_plan(self, terminal: Terminal, plan: RestorePlan) -> None:
        abandoned, rows = self._abandoned_round(plan), self._opened.restores.changed_rows(plan)
        show_plan(terminal, self._request, plan, abandoned, self._what, rows)

    def _abandoned_round(self, plan: RestorePlan) -> str | None:
        """The round that a reset would abandon; None for other restores, or if there is nothing to
        reset."""
        if self._request.kind is not OperationKind.RESET:
            return None
        return self._opened.rounds.abandoned_by(self._request, plan)

    def _agents_to_stop(self) -> list[StoppedAgentView] | None:
        if not self._invocation.options.stop_agents:
            return None
        from holdfast.api.views.restores import stopped_agent_view

        return [stopped_agent_view(one, "active") for one in self._opened.sessions.active_agents()]

    def _stop_agents(self) -> list[StoppedAgentView] | None:
        if not self._invocation.options.stop_agents:
            return None
        from holdfast.api.views.restores import stopped_agent_view

        with self._invocation.busy("waiting for agents to end", self._opened):
            stopped = self._opened.sessions.stop_agents()
        agents = [stopped_agent_view(one.agent, one.status) for one in stopped]
        for one in () if self._invocation.json else agents:
            words = f"{visible(one['agent'])} ({visible(one['session_id'])})"
            if one["status"] == "ended":
                self._terminal.sentence(f"{words} has ended{_process(one)}")
            elif one["status"] == "running":
                self._terminal.warn(f"{words} was asked to end and still runs{_process(one)}")
            else:
                why = "its process is unknown, or it runs this command"
                self._terminal.warn(f"{words} was not asked to end: {why}")
        return agents

    def _show_outcome(self, outcome: RestoreOutcome, shown: RestorePlan | None) -> None:
        """Print the outcome, without repeating lines shown before the question."""
        terminal, request = self._terminal, self._request
        idle = not (outcome.steps or outcome.components)
        if not outcome.recorded or (idle and request.kind is OperationKind.RESTORE):
            show_nothing_to_do(terminal, request, outcome)
        else:
            repeated = shown is not None and shown.steps == outcome.steps
            show_components_outcome(terminal, outcome.components)
            show_outcome(
                terminal,
                request,
                outcome,
                self._invocation.elapsed_ms,
                with_steps=not repeated,
                what=self._what,
                steps_back=self._steps_back,
            )
        place = self._opened.restores.git_now(outcome)
        if place is not None:
            terminal.sentence(f"  git: {place}", DIM)
        known = shown.warnings if shown is not None else ()
        new = (warning for warning in outcome.warnings if warning not in known)
        self._show_warnings(terminal, new, answering=False)

    def _show_head(self, outcome: RestoreOutcome) -> None:
        """After a restore of some paths, HEAD has not moved, and these paths are unsaved
        changes."""
        request = self._request
        if not request.paths or not outcome.steps or request.kind is not OperationKind.RESTORE:
            return
        head = self._opened.head()
        if head is None or head.id == request.target.id:
            return
        saves = "the next checkpoint saves what was restored"
        self._terminal.sentence(f"  HEAD is still {target_words(head)}; {saves}", DIM)

    def _show_other_references(
        self, terminal: Terminal, outcome: RestoreOutcome | None = None
    ) -> None:
        """One line about branches, tags and stash entries that are gone or moved and are not
        restored."""
        differing = self._opened.restores.other_git_references(self._request, outcome)
        if not differing:
            return
        more = f" and {len(differing) - _MOST_LOOKED_FOR} more"
        shown = ", ".join(differing[:_MOST_LOOKED_FOR])
        shown += more if len(differing) > _MOST_LOOKED_FOR else ""
        them = "it" if len(differing) == 1 else "them"
        command = f"holdfast restore {short(self._request.target.id)} --refs all"
        terminal.sentence(f"  git: {visible(shown)}; to restore {them}: {command}")

    def _show_fixes(self, missing: Sequence[Missing]) -> None:
        """Show how to recover missing paths."""
        terminal = self._terminal
        for top in _without_git_data(shown_missing(missing)):
            terminal.sentence(
                f"  {terminal.path(top)} is no longer a repository: its commits and branches are "
                "not saved, so clone it again or copy its .git from a backup"
            )
        for gone in missing_to_report(missing)[:_MOST_LOOKED_FOR]:
            if (saved := self._opened.contents.newest_with(gone.path)) is not None:
                command = f"holdfast restore {short(saved.id)} {terminal.typed(gone.path)}"
                terminal.sentence(f"  to bring back {terminal.path(gone.path)}: {command}")
        include = self._opened.restores.include_command(shown_missing(missing))
        if include is not None:
            terminal.sentence(f"  to save them from now on: {include}", DIM)

    def _show_warnings(
        self, terminal: Terminal, warnings: Iterable[str], *, answering: bool
    ) -> None:
        for warning in warnings:
            words = reworded(warning, self._with_git_command)
            terminal.warn_or_note(words, answering=answering)

    def _with_git_command(self, warning: str) -> str:
        """The full command, because `undo` and `redo` have no git option."""
        if self._request.kind not in (OperationKind.UNDO, OperationKind.REDO):
            return warning
        command = f"holdfast restore {short(self._request.target.id)} --git exact also restores git"
        return warning.replace(TO_RESTORE_GIT, command)

    def _lacks_files(self, outcome: RestoreOutcome) -> bool:
        """Whether requested files could not be restored. An undo has to restore everything that the
        undone change deleted. Other restores are incomplete only if they restored files of a
        repository whose git data is lost."""
        if self._request.kind is OperationKind.UNDO and self._request.note:
            return bool(missing_to_report(outcome.missing))
        gone = _without_git_data(outcome.missing)
        return any(is_within(step.path, top) for step in outcome.steps for top in gone)


def _without_git_data(missing: Sequence[Missing]) -> list[bytes]:
    """Nested repositories that have lost their git data."""
    git_data = [gone.path for gone in missing if basename(gone.path) == GIT_DIRECTORY]
    return [top for top in map(parent, git_data) if top]


def _process(one: StoppedAgentView) -> str:
    return "" if one["process"] is None else f" (process {one['process']})"


def _changed(plan: RestorePlan) -> str:
    others = [component_words(step.name) for step in plan.components if step.actions]
    files = summary(plan.steps)
    return " and ".join([files, *others] if plan.steps else others or [files])


@contextmanager
def _acknowledge_ctrl_c(invocation: Invocation) -> Iterator[None]:
    """Acknowledge the first Ctrl-C on the screen before unwinding, because a rollback may take a
    while. Does nothing if another handler is installed."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main or before is not signal.default_int_handler or invocation.json:
        yield
        return
    answered = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal answered
        if not answered:
            answered = True
            invocation.terminal.note("cancelling …")
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
