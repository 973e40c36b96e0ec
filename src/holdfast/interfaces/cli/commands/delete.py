"""`holdfast delete REF`: delete a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused, UsageError
from holdfast.domain.ids import short
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier, show_saved_first, title
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import can_ask, require_confirmation
from holdfast.interfaces.cli.terminal import DIM
from holdfast.interfaces.cli.wording import size, when_words

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint


def configure(parser: Parser) -> None:
    parser.usage = "holdfast delete REF [--yes]"
    parser.description = """\
Delete one checkpoint. The workspace and all other checkpoints stay as they are. This cannot be
undone, so it asks first; use --yes in scripts."""
    parser.epilog = """\
example:
  $ holdfast delete failed-attempt --yes"""
    parser.add_argument("words", nargs="*", metavar="REF", help="the checkpoint")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def _require_no_hidden_record(found: Checkpoint, typed: str) -> None:
    """A restore record is deleted only by its own id."""
    if found.kind.is_record and not found.id.startswith(typed.strip().lower()):
        raise Refused(
            f"{typed} is a restore record and holds the only copy of that state",
            hint=f"to delete it anyway, use its id: holdfast delete {short(found.id)}",
        )


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.restore_view import target_words

    words = invocation.at_most(1, "one checkpoint")
    if not words:
        raise UsageError("missing REF", hint="list checkpoints: holdfast log")
    terminal = invocation.terminal
    with invocation.open() as opened:
        found = invocation.resolve(opened, words[0])
        _require_no_hidden_record(found, words[0])
        if not invocation.options.yes and can_ask(invocation):
            aside = terminal.stderr_copy()
            when = when_words(aside, found.created_at, invocation.now)
            aside.sentence(f"{identifier(aside, found)}, {when}: {title(found)}")
        require_confirmation(
            invocation,
            f"deleting {target_words(found)} cannot be undone and needs confirmation",
            "Delete this checkpoint for good?",
            hint="confirm it with --yes",
        )
        with invocation.busy("deleting"):
            outcome = opened.history.delete(found)
    if invocation.json:
        from holdfast.api.views.checkpoints import deleted_view

        invocation.emit(deleted_view(found, outcome))
        return 0
    terminal.sentence(f"{terminal.tick} Deleted {identifier(terminal, found)}: {title(found)}")
    freed = f"{size(outcome.freed_bytes)} freed"
    if outcome.waiting:
        freed = "the next holdfast cleanup frees its space"
    elif not outcome.freed_bytes:
        freed += "; other checkpoints share its content"
    terminal.sentence(f"  {freed}", DIM)
    show_saved_first(terminal, outcome.saved_first)
    terminal.warn(*outcome.warnings)
    return 0
