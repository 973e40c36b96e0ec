"""`holdfast undo`: undo the last change to the workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, NotFound, NothingToUndo, Refused, UsageError
from holdfast.domain.ids import short
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import typed
from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import can_ask
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.api.restores import Loss, RestoreRequest, UndoStep
    from holdfast.api.workspace import Workspace
_MOST_BELOW = 5


def configure(parser: Parser) -> None:
    parser.usage = "holdfast undo [--turn] [--dry-run] [--yes] [--stop-agents]"
    parser.description = """\
Undo the last change to the workspace, no matter who made it: unsaved edits, an agent's tool call,
or a restore. Run it again to go one more step back; holdfast redo goes forward. With --turn, undo
everything since the last message to an agent, including your own edits, which it names. Run that
again to go to the message before.

On a terminal it shows what it will undo, and asks. Elsewhere it needs --yes to change more than one
file. The current state is saved first. A new change after an undo clears the redo history; the
undone states stay in holdfast log.

If the last tool call only deleted files that are not saved, undo says so, and with --yes it refuses
to undo earlier changes instead. If it deleted other files too, undo restores those, lists what is
missing and ends with status 3. Without a question it also refuses to undo holdfast install, because
the agent would no longer be protected. With --session, undo the last restore of that session."""
    parser.epilog = """\
examples:
  $ holdfast undo
  $ holdfast undo --turn --dry-run
  $ holdfast undo --yes"""
    parser.add_argument(
        "--turn", action="store_true", help="undo everything since the last message to an agent"
    )
    add_restore_options(parser)
    parser.one_step = True


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.restore_dialog import RestoreDialog

    turn = invocation.options.turn
    if turn and invocation.options.session is not None:
        raise UsageError("--turn covers all sessions", hint="leave out --session")
    try:
        place = invocation.open(mention_former_store=True)
    except NotFound as error:
        raise _with_projects_below(invocation, None, error) from None
    with place as opened:
        scope = invocation.scope(opened)
        if scope is not None:
            request = opened.restores.undo_request(scope)
            _require_hooks_kept(invocation, opened, request)
            return RestoreDialog(invocation, opened, request).run_with_external()
        with invocation.busy("looking", opened):
            try:
                step = opened.restores.last_step(turn=turn)
            except NothingToUndo as error:
                error = _with_loss(opened, error)
                raise _with_projects_below(invocation, opened, error) from None
        _require_known_loss(invocation, opened, step)
        _require_hooks_kept(invocation, opened, step.request)
        if not invocation.json:
            for command in undo_commands_below(invocation, opened):
                invocation.terminal.note(f"note: a nested project changed later: {command}")
        return undo_and_report(invocation, opened, step)


def _with_loss(opened: Workspace, error: NothingToUndo) -> NothingToUndo:
    """The error, with files that undo cannot restore."""
    loss = opened.restores.last_loss()
    if loss is None:
        return error
    words = f"{error.message}; {opened.restores.loss_words(loss)}"
    return NothingToUndo(words, hint=_save_hint(opened, loss) or error.hint)


def _save_hint(opened: Workspace, loss: Loss) -> str:
    from holdfast.interfaces.cli.restore_view import shown_missing

    command = opened.restores.include_command(shown_missing(loss.missing))
    return "" if command is None else f"to save such files from now on: {command}"


def _require_known_loss(invocation: Invocation, opened: Workspace, step: UndoStep) -> None:
    """The last call deleted only files that no checkpoint has. Undo the change before it only if
    the user knows that."""
    if step.loss is None:
        return
    words = visible(opened.restores.loss_words(step.loss))
    words = f"{words[0].upper()}{words[1:]}"
    if not _asks(invocation) and not invocation.options.dry_run:
        before = opened.restores.undone_words(step)
        way = (
            f"to undo what happened before that, {before}: "
            f"holdfast restore {short(step.request.target.id)} --yes"
        )
        save = _save_hint(opened, step.loss)
        raise Refused(f"{words}, so nothing was undone", hint=f"{way}; {save}" if save else way)
    if not invocation.json:
        invocation.terminal.warn(f"{words}; this undoes the change before it")


def _asks(invocation: Invocation) -> bool:
    return can_ask(invocation) and not invocation.options.yes


def _require_hooks_kept(invocation: Invocation, opened: Workspace, request: RestoreRequest) -> None:
    """An agent loses its protection only if the user has seen that."""
    if not _asks(invocation) and not invocation.options.dry_run:
        from holdfast.interfaces.agent_setup.lost_hooks import require_hooks_kept

        require_hooks_kept(opened, request)


def _with_projects_below(
    invocation: Invocation, opened: Workspace | None, error: HoldfastError
) -> HoldfastError:
    """The error, with the nested projects that have a change to undo."""

    commands = undo_commands_below(invocation, opened)
    if not commands:
        return error
    return type(error)(
        error.message, hint=f"to undo the last change in a nested project: {'; '.join(commands)}"
    )


def undo_and_report(invocation: Invocation, opened: Workspace, step: UndoStep) -> int:
    from holdfast.interfaces.cli.restore_dialog import RestoreDialog

    words = opened.restores.undone_words(step)
    request = step.request
    if request.kind is OperationKind.UNDO and step.undone is None:
        request = replace(request, note=words)
    for line in () if invocation.json else step.stays:
        invocation.terminal.warn(f"not restored: {visible(line)}")
    when = step.at
    what = words if when is None else f"{words} ({ago(when, invocation.now)})"
    undone = None
    if invocation.json:
        from holdfast.api.views.restores import undone_view

        undone = undone_view(step, words, when)
    if step.undone is None:  # the plan also shows outside files, and one question covers all
        return RestoreDialog(invocation, opened, request, what=what, undone=undone).run()
    return RestoreDialog(
        invocation, opened, request, what=what, undone=undone, steps_back=step.steps
    ).run_with_external()


def undo_commands_below(invocation: Invocation, opened: Workspace | None) -> list[str]:
    """Commands that undo in nested projects that changed later, newest first, because an agent
    above several projects changes files in them. `opened` is the current workspace, if there is
    one."""
    from holdfast.api.stores import recent_workspaces

    here = invocation.directory.expanduser().resolve()
    since_ns = 0 if opened is None else opened.restores.newest_operation_ns()
    below = [
        place
        for place, used_ns in recent_workspaces()
        if here in place.parents and used_ns > since_ns
    ]
    return [
        f"holdfast -C {typed(os.fsencode(os.path.relpath(place, here)))} undo"
        for place in below[:_MOST_BELOW]
        if _has_undo_step(invocation, place)
    ]


def _has_undo_step(invocation: Invocation, workspace: Path) -> bool:
    from holdfast.api.workspace import open_workspace

    try:
        with open_workspace(
            workspace, create=False, force=invocation.options.force, passive=True
        ) as opened:
            opened.restores.last_step()
    except (HoldfastError, OSError):
        return False  # nothing to undo, or unknown from here
    return True
