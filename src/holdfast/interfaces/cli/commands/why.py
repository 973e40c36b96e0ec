"""`holdfast why FILE[:LINE]`: the step of the work that wrote each line, and its reason."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace

ANSWERS = True
_LONGEST_NUMBER = 9


def configure(parser: Parser) -> None:
    parser.usage = "holdfast why FILE[:LINE] [--ref REF]"
    parser.description = """\
Tell for each line of a file which checkpoint has it first, and why it was written; for one LINE
also the tool call and the message that led to it. The file is the one in the workspace, whose
unsaved lines are marked, or with --ref the one in that checkpoint.

Restores are looked through: a line that one brought back belongs to whoever wrote it. A file that
was renamed is followed. Lines of the first checkpoint were there before the history begins."""
    parser.epilog = """\
examples:
  $ holdfast why src/auth.py
  $ holdfast why src/auth.py:42
  $ holdfast why src/auth.py:42 --ref HEAD~3"""
    parser.add_argument("words", nargs="*", metavar="FILE[:LINE]", help="the file, and the line")
    parser.add_argument("--ref", metavar="REF", help="the file as it is in this checkpoint")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.why_view import show_file, show_line

    words = invocation.at_most(1, "one file")
    if not words:
        raise UsageError("the file is missing", hint="for example: holdfast why src/app.py:12")
    with invocation.open() as opened:
        path, line = _place(invocation, opened, words[0])
        with invocation.busy("looking back", opened):
            found = opened.history.why(
                invocation.scope(opened), path, line=line, reference=invocation.options.ref
            )
    if invocation.json:
        from holdfast.api.views.why import explanation_view

        invocation.emit(explanation_view(found, invocation.elapsed_ms))
        return 0
    if line is None:
        show_file(invocation.terminal, found, invocation.now)
    else:
        show_line(invocation.terminal, found.lines[0], invocation.now)
    for warning in found.warnings:
        invocation.terminal.warn(warning)
    return 0


def _place(invocation: Invocation, opened: Workspace, word: str) -> tuple[bytes, int | None]:
    """The path and the line; a file whose name ends like a line number is meant before the line."""
    name, colon, number = word.rpartition(":")
    is_number = number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
    line = None
    if colon and name and is_number and not _is_there(invocation, opened, word):
        word, line = name, int(number)
    paths = invocation.paths([word], opened.path)
    if not paths:
        raise UsageError(
            f"{word!r} is the whole workspace", hint="for example: holdfast why src/app.py:12"
        )
    return paths[0], line


def _is_there(invocation: Invocation, opened: Workspace, word: str) -> bool:
    paths = invocation.paths([word], opened.path)
    if not paths:
        return True
    if invocation.options.ref is None:
        return os.path.lexists(os.path.join(os.fsencode(opened.path), paths[0]))
    at = invocation.resolve(opened, invocation.options.ref)
    return opened.contents.entry(at, paths[0]) is not None
