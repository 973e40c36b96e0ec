"""`holdfast redo`: take back the last undo."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast redo [--dry-run] [--yes]"
    parser.description = """\
Take back the last undo: the workspace is again what the restore had made of it. A new restore ends
what can be redone.

More than one affected file needs a yes: on a terminal it is asked for, elsewhere give --yes."""
    parser.epilog = """\
example:
  $ holdfast redo --dry-run
  $ holdfast redo --yes"""
    add_restore_options(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.external_choice import undo_or_redo

    with invocation.open() as opened:
        session = invocation.session(opened)
        request = opened.engine.redo_request(session)
        return undo_or_redo(invocation, opened, request)
