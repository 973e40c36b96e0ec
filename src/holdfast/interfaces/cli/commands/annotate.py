"""`holdfast annotate REF TEXT`: add a note to a checkpoint."""

from __future__ import annotations

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import text_on_standard_input


def configure(parser: Parser) -> None:
    parser.usage = "holdfast annotate REF TEXT [--edit N] [--author NAME]"
    parser.description = """\
Add a note to a checkpoint. holdfast show REF displays it.

REF is an id or its first characters, a name, HEAD, HEAD~n, initial, approved or a time. --edit N
replaces note N; earlier versions are kept, and so is the author unless you give --author. TEXT can
be up to 100000 bytes; - reads it from standard input."""
    parser.epilog = """\
examples:
  $ holdfast annotate HEAD "all tests pass here"
  $ holdfast annotate before-refactor "keep until the release" --author ada
  $ holdfast annotate HEAD "only the slow tests fail" --edit 1"""
    parser.add_argument("words", nargs="*", metavar="REF TEXT", help="the checkpoint and the note")
    parser.add_argument("--edit", type=int, metavar="N", help="replace note N")
    parser.add_argument("--author", metavar="NAME", help="the author of the note")


def run(invocation: Invocation) -> int:
    from holdfast.api.views.checkpoints import new_annotation_view

    words = invocation.at_most(2, "a checkpoint", "a text")
    if len(words) < 2:
        raise UsageError(
            "missing REF or TEXT",
            hint='usage: holdfast annotate HEAD "all tests pass here"',
        )
    text = text_on_standard_input("text") if words[1] == "-" else words[1]
    options = invocation.options
    with invocation.open() as opened:
        found = invocation.resolve(opened, words[0])
        noted = opened.conversation.annotate(
            found.session_id, found.id, text, options.author, number=options.edit
        )
    if invocation.json:
        invocation.emit(new_annotation_view(noted))
        return 0
    terminal = invocation.terminal
    did = "Annotated" if noted.revision == 1 else f"Edited annotation {noted.number} of"
    terminal.line(f"{terminal.tick} {did} {identifier(terminal, found)}")
    return 0
