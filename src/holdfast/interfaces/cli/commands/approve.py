"""`holdfast approve`: approve the current round, and begin the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.sessions import round_title
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import DIM
from holdfast.interfaces.cli.wording import count, duration

if TYPE_CHECKING:
    from holdfast.api.sessions import ApproveOutcome


def configure(parser: Parser) -> None:
    parser.usage = "holdfast approve [-m MESSAGE]"
    parser.description = """\
Approve the current work and start the next round. Unsaved changes are saved first. Approved
checkpoints never expire, and holdfast reset returns to the last one.

If nothing changed since the last approval, nothing happens and the exit status is 5."""
    parser.epilog = """\
examples:
  $ holdfast approve -m "login works, tests pass"
  $ holdfast restore approved --dry-run"""
    parser.add_argument("-m", "--message", metavar="MESSAGE", help="why you approve it")


def run(invocation: Invocation) -> int:
    with invocation.open() as opened:
        session_id = invocation.session(opened)
        with invocation.busy("saving", opened):
            outcome = opened.rounds.approve(session_id, invocation.options.message)
        skipped = opened.contents.skipped(outcome.approved) if outcome.saved else []
        unread = [skip for skip in skipped if skip.reason.is_failure]
    if invocation.json:
        from holdfast.api.views.sessions import approved_view

        invocation.emit(approved_view(outcome, unread, invocation.elapsed_ms))
    else:
        _show(invocation, outcome)
        for warning in outcome.warnings:
            invocation.terminal.warn_or_note(warning)
        if unread:
            from holdfast.interfaces.cli.checkpoint_view import list_first_skipped

            invocation.terminal.sentence("some paths could not be read completely:")
            list_first_skipped(invocation.terminal, unread)
    return PARTIAL if unread else 0


def _show(invocation: Invocation, outcome: ApproveOutcome) -> None:
    terminal = invocation.terminal
    words = count(outcome.count, "checkpoint")
    terminal.sentence(
        f"{terminal.tick} Approved {round_title(outcome.merged)} at "
        f"{identifier(terminal, outcome.approved)}: {words}, {duration(invocation.elapsed_ms)}"
    )
    again = invocation.chosen_session + terminal.yes_flag
    begun = round_title(outcome.new_round)
    terminal.sentence(f"  {begun} begins; return here any time: holdfast reset{again}", DIM)
