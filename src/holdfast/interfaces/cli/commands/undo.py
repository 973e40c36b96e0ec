"""`holdfast undo`: take back the last thing that happened to the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, NotFound, NothingToUndo, UsageError
from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.bootstrap import OpenWorkspace


def configure(parser: Parser) -> None:
    parser.usage = "holdfast undo [--turn]\n       [--dry-run] [--yes]"
    parser.description = """\
Undo the last thing that happened to the workspace, no matter who did it: unsaved edits, an agent's
tool call, a restore. Undo again to go one step further back; holdfast redo goes forward again.
With --turn, undo everything since the last message to an agent.

It shows what it will undo, and asks before it changes more than one file; use --yes in scripts. The
present state is saved first. A new change after an undo clears what can be redone; it stays in the
history. With --session, undo the last restore of that session."""
    parser.epilog = """\
examples:
  $ holdfast undo
  $ holdfast undo --turn --dry-run
  $ holdfast undo --yes"""
    parser.add_argument(
        "--turn", action="store_true", help="undo everything since the last message to an agent"
    )
    add_restore_options(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.external_choice import undo_or_redo
    from holdfast.interfaces.cli.undo_below import undo_commands_below
    from holdfast.interfaces.cli.undo_view import undo_and_report

    turn = invocation.options.turn
    if turn and invocation.options.session is not None:
        raise UsageError("--turn covers all sessions", hint="leave out --session")
    try:
        place = invocation.open()
    except NotFound as error:
        raise _with_projects_below(invocation, None, error) from None
    with place as opened:
        scope = invocation.scope(opened)
        if scope is not None:
            return undo_or_redo(invocation, opened, opened.engine.undo_request(scope))
        with invocation.busy("looking", opened):
            try:
                step = opened.engine.last_step(turn=turn)
            except NothingToUndo as error:
                raise _with_projects_below(invocation, opened, error) from None
        if not invocation.json:
            for command in undo_commands_below(invocation, opened):
                invocation.terminal.note(f"note: a project below changed later: {command}")
        return undo_and_report(invocation, opened, step)


def _with_projects_below(
    invocation: Invocation, opened: OpenWorkspace | None, error: HoldfastError
) -> HoldfastError:
    """The same error, with the projects below in which there is something to undo."""
    from holdfast.interfaces.cli.undo_below import undo_commands_below

    commands = undo_commands_below(invocation, opened)
    if not commands:
        return error
    return type(error)(
        error.message, hint=f"undo the last change of a project below: {'; '.join(commands)}"
    )
