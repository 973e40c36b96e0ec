"""`holdfast reset`: discard everything since the last approval."""

from __future__ import annotations

from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast reset [--dry-run] [--yes] [--stop-agents]"
    parser.description = """\
Discard everything since the last approval, or since the session's first checkpoint if nothing was
approved yet. The round is abandoned and the next one begins.

The current state is saved first, so holdfast undo brings it back, and an abandoned round can still
be restored (holdfast log --rounds). Asks before changing more than one file; use --yes in
scripts."""
    parser.epilog = """\
example:
  $ holdfast reset --dry-run
  $ holdfast reset --yes"""
    add_restore_options(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.restore_dialog import RestoreDialog

    with invocation.open(mention_former_store=True) as opened:
        session = invocation.session(opened)
        request = opened.rounds.reset_request(session)
        return RestoreDialog(invocation, opened, request).run()
