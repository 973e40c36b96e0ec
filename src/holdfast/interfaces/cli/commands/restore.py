"""`holdfast restore [REF] [PATH …]`: take the workspace, or some paths, back."""

from __future__ import annotations

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast restore [REF] [PATH ...] [--dry-run] [--yes] [--best-effort]\n"
        "       holdfast restore REF PATH --hunk N[,M] [-U N] [--dry-run]"
    )
    parser.description = """\
Make the workspace what it was at a checkpoint. REF is an id, the beginning of one, a name, HEAD,
HEAD~n, initial, approved, or a time such as @{2 hours ago}; without it, the checkpoint before the
one the work stands on. With PATHs, relative to the current directory (or, as :/PATH, to the
workspace), only those are restored.

With --hunk only some changes of one text file are taken back, by the numbers that holdfast diff REF
-- PATH shows; everything else in the file stays as it is.

The present state is saved first, so that holdfast undo brings it back. Files that no checkpoint has
are neither overwritten nor deleted. The restore happens as a whole or not at all and is verified.

More than one affected file needs a yes: on a terminal it is asked for, elsewhere give --yes."""
    parser.epilog = """\
examples:
  $ holdfast restore before-refactor --dry-run
  $ holdfast restore HEAD src/app.py
  $ holdfast restore HEAD src/app.py --hunk 2
  $ holdfast restore '@{10 minutes ago}' --yes"""
    parser.add_argument(
        "words", nargs="*", metavar="REF PATH", help="the checkpoint, and the paths to restore"
    )
    add_restore_options(parser)
    parser.add_argument(
        "--hunk",
        dest="hunks",
        metavar="N[,M]",
        action="append",
        default=[],
        help="only these hunks of the file, by number, or by the id that diff --json gives",
    )
    parser.add_argument(
        "-U",
        dest="context",
        metavar="N",
        help="lines around a change that the hunks were numbered with (default 3)",
    )
    parser.add_argument(
        "--best-effort",
        action="store_true",
        help="skip and list what cannot be restored, instead of refusing as a whole (status 3)",
    )


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.path_arguments import path_mistaken_for_checkpoint
    from holdfast.interfaces.cli.restoring import restore_and_report

    words = invocation.all_words
    reference = words[0] if words else None
    with invocation.open() as opened:
        session = invocation.session(opened)
        paths = invocation.paths(words[1:], opened.engine.vault.workspace)
        form = "holdfast restore HEAD {}"
        with path_mistaken_for_checkpoint(invocation, opened, reference, form):
            request = opened.engine.restore_request(
                session, reference, paths=paths, best_effort=invocation.options.best_effort
            )
        if not invocation.options.hunks:
            if invocation.options.context is not None:
                raise UsageError("-U is about hunks", hint="name some: --hunk 1")
            return restore_and_report(invocation, opened, request)
        from holdfast.interfaces.cli.chosen_hunks import choose

        return restore_and_report(invocation, opened, *choose(invocation, opened, request))
