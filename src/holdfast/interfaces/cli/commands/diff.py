"""`holdfast diff [A [B]] [-- PATH …]`: show what changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.arguments import Parser, context_lines
from holdfast.interfaces.cli.checkpoint_view import identifier, title
from holdfast.interfaces.cli.diff_view import changed_path, content_note, notes, show_difference
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.path_arguments import is_known_path
from holdfast.interfaces.cli.terminal import DIM, GREEN, RED, Terminal, visible
from holdfast.interfaces.cli.wording import count
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint

ANSWERS = True
_HOW_PATHS_ARE_GIVEN = (
    "paths are relative to the current directory; from the workspace root: :/PATH"
)
_BAR = 30
_SHORTEST_BAR = 10
_BESIDES = 10
"""Columns in a row for spaces, the separator and the number."""


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast diff [A [B] | A..B] [[--] PATH ...]\n"
        "                     [--stat | --name-only | --patch | --side-by-side]\n"
        "                     [-U N]"
    )
    parser.description = """\
Show what changed. Without arguments, compare HEAD with the workspace; with A, compare A with the
workspace; with A B or A..B, compare two checkpoints. A and B are ids, names, HEAD~n and so on, as
for restore.

PATHs limit the output to files and directories. A word that is both a checkpoint and a path means
the checkpoint; put paths after --.

Two checkpoints are shown with both reasons, even from different sessions. Renames are detected by
content, and notebooks are compared by cell. --patch writes a patch for git apply, with notebooks as
text. In a pipe, it writes the exact bytes."""
    parser.epilog = """\
examples:
  $ holdfast diff
  $ holdfast diff before-refactor HEAD --stat
  $ holdfast diff HEAD~3..HEAD src/app.py
  $ holdfast diff HEAD~1 --side-by-side -- src"""
    parser.add_argument(
        "words", nargs="*", metavar="CHECKPOINT", help="one or two checkpoints, and paths"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--stat", action="store_true", help="the number of changed lines for each path, with bars"
    )
    how.add_argument(
        "--name-only",
        action="store_true",
        help="only the paths, one per line; for a renamed file, the new one, as in git",
    )
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
        help="old and new side by side, in colour",
    )
    parser.add_argument(
        "-U",
        dest="context",
        metavar="N",
        help="context lines around each change (default 3)",
        default="3",
    )


def run(invocation: Invocation) -> int:
    context = context_lines(invocation.options.context)
    with invocation.open() as opened:
        old, new, more = _sides(invocation, opened)
        paths = invocation.paths([*more, *invocation.literal], opened.path)
        with opened.contents.explain_deletion((old, new), "compared"):
            with invocation.busy("comparing", opened):
                difference = opened.diffs.compare(
                    old, new, paths=paths, context=context, path_hint=_HOW_PATHS_ARE_GIVEN
                )
            with invocation.paged():
                _render(invocation, difference)
    return 0


def _sides(
    invocation: Invocation, opened: Workspace
) -> tuple[Checkpoint, Checkpoint | None, list[str]]:
    """Both sides, None for the workspace, and the remaining words, which are paths. If `--` is
    given, all words before it are checkpoints."""
    words = list(invocation.words)
    found: list[Checkpoint] = []
    from_range = _range(invocation, opened, words[0]) if words else None
    if from_range is not None:
        old, new = from_range
        found, words, most = [old, *([new] if new else [])], words[1:], 0
    else:
        most = 2
    while words and len(found) < most:
        one = _checkpoint(invocation, opened, words[0], found)
        if one is None:
            break
        found.append(one)
        words = words[1:]
    if words and invocation.options.dashes:
        raise UsageError(
            f"unexpected argument {words[0]!r}: diff takes at most two checkpoints",
            hint="put paths after --: holdfast diff HEAD -- src",
        )
    for word in words:
        _require_path(invocation, opened, word, found)
    if not found:
        found = [invocation.resolve(opened, "HEAD")]
    return found[0], found[1] if len(found) > 1 else None, words


def _range(
    invocation: Invocation, opened: Workspace, word: str
) -> tuple[Checkpoint, Checkpoint | None] | None:
    """`A..B`, `A..` up to the workspace, `..B` from HEAD; None for anything else."""
    if ".." not in word or word.strip("./") == "":
        return None
    try:
        invocation.resolve(opened, word)
    except (UnknownReference, NotFound):
        pass
    else:
        return None  # a name may contain two dots
    if is_known_path(invocation, opened, word, []):
        return None
    before, _, after = word.partition("..")
    old = invocation.resolve(opened, before or "HEAD")
    return old, invocation.resolve(opened, after) if after else None


def _checkpoint(
    invocation: Invocation, opened: Workspace, word: str, found: list[Checkpoint]
) -> Checkpoint | None:
    """The checkpoint that a word names; None if it is only a path."""
    try:
        one = invocation.resolve(opened, word)
    except (UnknownReference, NotFound):
        if not invocation.options.dashes and is_known_path(invocation, opened, word, found):
            return None
        raise
    if (
        not invocation.options.dashes
        and not invocation.json
        and os.path.lexists(invocation.directory / word)
    ):
        invocation.terminal.note(
            f"note: {word} is both a checkpoint and a path; for the path: holdfast diff -- {word}"
        )
    return one


def _require_path(
    invocation: Invocation, opened: Workspace, word: str, found: list[Checkpoint]
) -> None:
    if is_known_path(invocation, opened, word, found):
        return
    if len(found) < 2:
        invocation.resolve(opened, word)
    raise NotFound(f"{word!r} is neither a checkpoint nor a path", hint=_HOW_PATHS_ARE_GIVEN)


def _render(invocation: Invocation, difference: Difference) -> None:
    options, terminal = invocation.options, invocation.terminal
    if not difference.changes and terminal.for_people and not invocation.json:
        _show_ends(terminal, difference)
        _show_recorded(terminal, difference)
        terminal.note("no differences" if not difference.recorded else "no files differ")
        return
    if invocation.json:
        from holdfast.interfaces.cli.diff_output import write_json

        write_json(terminal, difference, hunks=options.patch)
    elif options.name_only:
        for change in difference.changes:
            terminal.line(terminal.path(change.path))
    elif options.stat:
        _show_stat(terminal, difference)
    elif options.side_by_side:
        _show_ends(terminal, difference)
        from holdfast.interfaces.cli.side_by_side import show_side_by_side

        show_side_by_side(terminal, difference)
    elif options.patch:
        from holdfast.interfaces.cli.diff_output import write_patch

        write_patch(terminal, difference)
    else:
        _show_ends(terminal, difference)
        _show_recorded(terminal, difference)
        show_difference(terminal, difference)


def _show_recorded(terminal: Terminal, difference: Difference) -> None:
    """Differences other than files, which are never restored, such as tool versions."""
    for one in difference.recorded:
        for line in one.lines:
            terminal.line(f"{one.name}: {visible(line)}", DIM)


def _show_ends(terminal: Terminal, difference: Difference) -> None:
    """The two compared checkpoints with their reasons, and with their sessions if these differ."""
    if difference.old is None or difference.new is None:
        return
    for label, one in (("from", difference.old), ("to", difference.new)):
        session = f" {{{visible(one.session_id)}}}" if difference.is_across_sessions else ""
        terminal.line(f"{label:<4} {identifier(terminal, one)}{session} {title(one)}")


class _LineCounts(NamedTuple):
    added: int
    removed: int
    note: str | None


def _show_stat(terminal: Terminal, difference: Difference) -> None:
    rows = [
        (changed_path(terminal, change), _count(difference, change))
        for change in difference.changes
    ]
    _show_ends(terminal, difference)  # only now: a damaged file ends the command without output
    widest = max((len(name) for name, _ in rows), default=0)
    most = max((counts.added + counts.removed for _, counts in rows), default=0)
    bar = _BAR
    if terminal.for_people:  # shorten the bars first, then the beginnings of long paths
        bar = min(_BAR, max(_SHORTEST_BAR, terminal.width - widest - _BESIDES))
        widest = min(widest, max(terminal.width - bar - _BESIDES, _SHORTEST_BAR))
    for name, counts in rows:
        shown = name if len(name) <= widest else f"…{name[1 - widest :]}"
        terminal.line(f" {shown:<{widest}} | {_row(terminal, counts, most, bar)}")
    _total(terminal, [counts for _, counts in rows])


def _count(difference: Difference, change: Change) -> _LineCounts:
    content = difference.content(change)
    if content is None:
        return _LineCounts(0, 0, ", ".join(notes(change)) or change.type.value)
    if (note := content_note(content)) is not None:
        return _LineCounts(0, 0, note)
    added = removed = 0
    for hunk in content.hunks():
        added += sum(line.kind == "+" for line in hunk.lines)
        removed += sum(line.kind == "-" for line in hunk.lines)
    return _LineCounts(added, removed, None)


def _row(terminal: Terminal, counts: _LineCounts, most: int, bar: int) -> str:
    if counts.note is not None:
        return terminal.paint(counts.note, DIM)
    lines = counts.added + counts.removed
    scale = min(1.0, bar / most) if most else 0.0
    plus = terminal.paint("+" * _share(counts.added, scale), GREEN)
    minus = terminal.paint("-" * _share(counts.removed, scale), RED)
    return f"{lines:>5} {plus}{minus}"


def _share(lines: int, scale: float) -> int:
    return max(round(lines * scale), 1) if lines else 0


def _total(terminal: Terminal, rows: Sequence[_LineCounts]) -> None:
    added, removed = sum(row.added for row in rows), sum(row.removed for row in rows)
    terminal.line(
        f" {count(len(rows), 'path')} changed, {count(added, 'line')} added, "
        f"{count(removed, 'line')} removed"
    )
