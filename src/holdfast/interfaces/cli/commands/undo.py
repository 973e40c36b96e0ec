"""`holdfast undo`: take back the last thing that happened to the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, NotFound, NothingToUndo, Refused, UsageError
from holdfast.domain.ids import short
from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.api.restores import UndoStep
    from holdfast.api.workspace import Workspace


def configure(parser: Parser) -> None:
    parser.usage = "holdfast undo [--turn]\n       [--dry-run] [--yes]"
    parser.description = """\
Undo the last thing that happened to the workspace, no matter who did it: unsaved edits, an agent's
tool call, a restore. Undo again to go one step further back; holdfast redo goes forward again.
With --turn, undo everything since the last message to an agent.

It shows what it will undo, and asks before it changes more than one file; use --yes in scripts. The
present state is saved first. A new change after an undo clears what can be redone; it stays in the
history. If the last call deleted only files that are not saved, undo says so; with --yes it refuses
to undo what happened before.

With --session, undo the last restore of that session."""
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
    from holdfast.interfaces.cli.undo_dialog import (
        undo_and_report,
        undo_commands_below,
        undo_or_redo,
    )

    turn = invocation.options.turn
    if turn and invocation.options.session is not None:
        raise UsageError("--turn covers all sessions", hint="leave out --session")
    try:
        place = invocation.open(goes_back=True)
    except NotFound as error:
        raise _with_projects_below(invocation, None, error) from None
    with place as opened:
        scope = invocation.scope(opened)
        if scope is not None:
            return undo_or_redo(invocation, opened, opened.restores.undo_request(scope))
        with invocation.busy("looking", opened):
            try:
                step = opened.restores.last_step(turn=turn)
            except NothingToUndo as error:
                error = _with_loss(opened, error)
                raise _with_projects_below(invocation, opened, error) from None
        _require_known_loss(invocation, opened, step)
        if not invocation.json:
            for command in undo_commands_below(invocation, opened):
                invocation.terminal.note(f"note: a project below changed later: {command}")
        return undo_and_report(invocation, opened, step)


def _with_loss(opened: Workspace, error: NothingToUndo) -> NothingToUndo:
    """The same error, with what no undo brings back."""
    loss = opened.restores.last_loss()
    if loss is None:
        return error
    words = f"{error.message}; {opened.restores.loss_words(loss)}"
    return NothingToUndo(words, hint=error.hint)


def _require_known_loss(invocation: Invocation, opened: Workspace, step: UndoStep) -> None:
    """The last call deleted only what no checkpoint has: what happened before it is undone only by
    somebody who knows that."""
    if step.loss is None:
        return
    from holdfast.interfaces.cli.standard_input import can_ask
    from holdfast.interfaces.cli.terminal import visible

    words = visible(opened.restores.loss_words(step.loss))
    words = f"{words[0].upper()}{words[1:]}"
    asks = can_ask(invocation) and not invocation.json and not invocation.options.yes
    if not asks and not invocation.options.dry_run:
        before = opened.restores.undone_words(step)
        raise Refused(
            f"{words}, so nothing was undone",
            hint=f"to undo what happened before that, {before}: "
            f"holdfast restore {short(step.request.target.id)} --yes",
        )
    if not invocation.json:
        invocation.terminal.warn(f"{words}; this is about what happened before that")


def _with_projects_below(
    invocation: Invocation, opened: Workspace | None, error: HoldfastError
) -> HoldfastError:
    """The same error, with the projects below in which there is something to undo."""
    from holdfast.interfaces.cli.undo_dialog import undo_commands_below

    commands = undo_commands_below(invocation, opened)
    if not commands:
        return error
    return type(error)(
        error.message, hint=f"undo the last change of a project below: {'; '.join(commands)}"
    )
