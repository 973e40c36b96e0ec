"""`holdfast redo`: take back the last undo."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast redo [--dry-run] [--yes]"
    parser.description = """\
Take back the last undo: the workspace is again exactly what it was before it. Redo again to go one
step further forward. A new change clears what can be redone; it stays in the history. With
--session, redo the last undo of that session.

It shows what it will do and asks once. The present state is saved first."""
    parser.epilog = """\
examples:
  $ holdfast redo --dry-run
  $ holdfast redo --yes"""
    add_restore_options(parser)
    parser.one_step = True


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.commands.undo import undo_and_report, undo_or_redo

    with invocation.open() as opened:
        scope = invocation.scope(opened)
        if scope is not None:
            return undo_or_redo(invocation, opened, opened.restores.redo_request(scope))
        return undo_and_report(invocation, opened, opened.restores.next_step())
