"""`holdfast redo`: redo the last undo."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast redo [--dry-run] [--yes] [--stop-agents]"
    parser.description = """\
Redo the last undo. Run it again to go one more step forward. It shows what it will do and asks
once; use --yes in scripts. The current state is saved first.

A new change clears the redo history; the undone states stay in holdfast log. With --session, redo
the last undo of that session."""
    parser.epilog = """\
examples:
  $ holdfast redo --dry-run
  $ holdfast redo --yes"""
    add_restore_options(parser)
    parser.one_step = True


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.commands.undo import undo_and_report
    from holdfast.interfaces.cli.restore_dialog import RestoreDialog

    with invocation.open() as opened:
        scope = invocation.scope(opened)
        if scope is not None:
            request = opened.restores.redo_request(scope)
            return RestoreDialog(invocation, opened, request).run_with_external()
        return undo_and_report(invocation, opened, opened.restores.next_step())
