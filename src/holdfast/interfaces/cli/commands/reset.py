"""`holdfast reset`: throw the work of a round away."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast reset [--dry-run] [--yes]"
    parser.description = """\
Take the workspace back to what was approved last, or, when nothing was approved yet, to the first
checkpoint of the session. The round is abandoned and the next one begins.

It is a restore with all of its safety: the present state is saved first, so that holdfast undo
brings it back, and an abandoned round can be restored later (holdfast log --rounds).

More than one affected file needs a yes: on a terminal it is asked for, elsewhere give --yes."""
    parser.epilog = """\
example:
  $ holdfast reset --dry-run
  $ holdfast reset --yes"""
    add_restore_options(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.restore_dialog import restore_and_report

    with invocation.open(mention_former_store=True) as opened:
        session = invocation.session(opened)
        request = opened.rounds.reset_request(session)
        return restore_and_report(invocation, opened, request)
