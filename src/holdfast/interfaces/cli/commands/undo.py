"""`holdfast undo`: take back the last restore."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast undo [--dry-run] [--yes]"
    parser.description = """\
Take back the last restore: the workspace is again exactly what it was before it, files that were
edited in between included, because a restore saves the present state first. Undo can be repeated
to go back through several restores, and holdfast redo goes forward again.

More than one affected file needs a yes: on a terminal it is asked for, elsewhere give --yes."""
    parser.epilog = """\
example:
  $ holdfast undo --dry-run
  $ holdfast undo --yes"""
    add_restore_options(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.external_choice import undo_or_redo

    with invocation.open() as opened:
        session = invocation.session(opened)
        request = opened.engine.undo_request(session)
        return undo_or_redo(invocation, opened, request)
