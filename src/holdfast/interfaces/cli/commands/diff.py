"""`holdfast diff [A [B]] [-- PATH …]`: what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser, context_lines
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.bootstrap import OpenWorkspace
    from holdfast.domain.changes import Change
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.interfaces.cli.diff_views.difference import Difference


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast diff [A [B]] [-- PATH ...] [--stat | --name-only | --patch | --side-by-side]\n"
        "                     [-U N]"
    )
    parser.description = """\
Show what differs: without arguments between HEAD and the workspace, with one between that
checkpoint and the workspace, with two between those checkpoints. A and B are ids, names, HEAD~n and
so on, as for restore. PATHs, behind --, limit it to files and directories.

Renames are found by content. Modes, links and binary files are named, notebooks compared by cell.
--patch writes exact bytes that git apply takes, notebooks as text."""
    parser.epilog = """\
examples:
  $ holdfast diff
  $ holdfast diff before-refactor HEAD --stat
  $ holdfast diff HEAD~1 --side-by-side -- src"""
    parser.add_argument("words", nargs="*", metavar="CHECKPOINT", help="one or two checkpoints")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--stat", action="store_true", help="changed lines a path, as numbers and bars"
    )
    how.add_argument("--name-only", action="store_true", help="only the paths, one a line")
    how.add_argument(
        "-p",
        "--patch",
        action="store_true",
        help="a patch for git apply; with --json, the hunks of each path",
    )
    how.add_argument(
        "-y",
        "--side-by-side",
        action="store_true",
        help="old and new next to each other, in colour",
    )
    parser.add_argument(
        "-U", dest="context", metavar="N", help="lines around a change (default 3)", default="3"
    )


def run(invocation: Invocation) -> int:
    from holdfast.engine.dropped import unless_dropped

    context = context_lines(invocation.options.context)
    if len(invocation.words) > 2:
        raise UsageError(
            f"unexpected argument {invocation.words[2]!r}: diff takes two checkpoints",
            hint="paths stand behind --, as in: holdfast diff HEAD -- src",
        )
    with invocation.open() as opened:
        engine = opened.engine
        paths = invocation.paths(invocation.literal, engine.vault.workspace)
        old, new = _ends(invocation, opened)
        again = "compare others; see what there is: holdfast log"
        with unless_dropped(engine.vault, (old, new), "compared", again):
            _compare(invocation, opened, (old, new), paths, context)
    return 0


_HOW_PATHS_ARE_GIVEN = (
    "paths are relative to the current directory; from the workspace's top: :/PATH"
)


def _compare(
    invocation: Invocation,
    opened: OpenWorkspace,
    ends: tuple[Checkpoint, Checkpoint | None],
    paths: list[bytes],
    context: int,
) -> None:
    from holdfast.engine.compare.known_paths import require_known_paths
    from holdfast.interfaces.cli.diff_views.difference import Difference
    from holdfast.interfaces.cli.diff_views.left_out import left_out_changes

    engine, (old, new) = opened.engine, ends
    with invocation.busy("comparing", opened):
        scan = engine.look() if new is None else None
        found = engine.changes_in(scan, old) if scan else engine.changes(old, new)
    changes = [change for change in found if _selected(change, paths)]
    if not changes:
        require_known_paths(engine.vault, paths, old, new, scan, hint=_HOW_PATHS_ARE_GIVEN)
    left_out = left_out_changes(
        changes,
        lambda: engine.skipped(old),
        lambda: scan.skipped if scan else engine.skipped(new) if new else (),
    )
    difference = Difference(engine.vault, old, new, changes, context, left_out)
    _render(invocation, difference)


def _ends(invocation: Invocation, opened: OpenWorkspace) -> tuple[Checkpoint, Checkpoint | None]:
    """What is compared; None stands for the workspace."""
    from holdfast.interfaces.cli.path_arguments import path_mistaken_for_checkpoint

    found: list[Checkpoint] = []
    before = ""
    for word in invocation.words or ["HEAD"]:
        form = f"holdfast diff {before}-- {{}}"
        with path_mistaken_for_checkpoint(invocation, opened, word, form):
            found.append(invocation.resolve(opened, word))
        before = f"{word} "
    return found[0], found[1] if len(found) > 1 else None


def _selected(change: Change, paths: list[bytes]) -> bool:
    from holdfast.domain.paths import is_within

    ends = (change.path,) if change.old_path is None else (change.path, change.old_path)
    return not paths or any(is_within(end, path) for end in ends for path in paths)


def _render(invocation: Invocation, difference: Difference) -> None:
    options, terminal = invocation.options, invocation.terminal
    if not difference.changes and terminal.for_people and not invocation.json:
        terminal.note("no differences")
        return
    if invocation.json:
        from holdfast.interfaces.cli.diff_views.as_json import write_json

        write_json(terminal, difference, hunks=options.patch)
    elif options.name_only:
        for change in difference.changes:
            terminal.line(terminal.path(change.path))
    elif options.stat:
        from holdfast.interfaces.cli.diff_views.stat import show_stat

        show_stat(terminal, difference)
    elif options.side_by_side:
        from holdfast.interfaces.cli.diff_views.side_by_side import show_side_by_side

        show_side_by_side(terminal, difference)
    else:
        from holdfast.interfaces.cli.diff_views.unified import show_unified

        show_unified(terminal, difference, exact=options.patch)
