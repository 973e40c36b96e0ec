"""`holdfast restore [REF] [PATH …]`: restore the workspace, or some paths, to a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.domain.ids import short
from holdfast.interfaces.cli.arguments import Parser, add_restore_options
from holdfast.interfaces.cli.checkpoint_view import title
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import has_keyboard
from holdfast.interfaces.cli.terminal import BOLD
from holdfast.interfaces.cli.wording import ago

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest
    from holdfast.api.workspace import Workspace

_MOST_MOMENTS = 2_000
_GIT_MODES = ("files", "exact", "branch", "revert")


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast restore [REF] [PATH ...] [--dry-run] [--yes] [--best-effort]\n"
        "           [--git files|exact|branch|revert] [--refs NAME] [--external]\n"
        "           [--with NAME] [--without NAME] [--stop-agents]\n"
        "       holdfast restore --patch [REF] [PATH ...] [-U N]\n"
        "       holdfast restore REF PATH --hunk N[,M] [-U N] [--dry-run]"
    )
    parser.description = """\
Restore the workspace to a checkpoint. REF is an id or its first characters, a name, HEAD, HEAD~n,
initial, approved, or a time such as @{2 hours ago}. Without REF, on a terminal, you choose from a
list: type to search, press space to see the differences, and press enter to choose.

With PATHs, restore only those. They are relative to the current directory or, as :/PATH, to the
workspace.

With --patch, choose the changes since REF (default: HEAD) to restore, one by one. Answer s to split
a change into smaller ones. With --hunk, restore some changes of one text file, by the numbers that
holdfast diff REF -- PATH shows. The rest of the file stays as it is.

The current state is saved first, so holdfast undo brings it back. Files that are in no checkpoint
are neither overwritten nor deleted. A restore completes or changes nothing, and is verified.

Git is not changed unless you use --git or --refs. --git exact restores HEAD, its branch, the index,
and a merge or rebase in progress. --git branch creates the branch restore/ID at the old commit and
moves no other. --git revert adds a commit that restores the old content. --refs restores branches,
tags and stash entries that were deleted or moved since then: by name, by a pattern such as 'wip/*',
stash, or all. Nothing is ever pushed or fetched, and holdfast undo reverts all of it.

Files outside the workspace are not changed unless you use --external, which asks about each one. It
refuses files that are links now, or that belong to another user.

Asks before changing more than one file, or anything in git; use --yes in scripts."""
    parser.epilog = """\
examples:
  $ holdfast restore
  $ holdfast restore before-refactor --dry-run
  $ holdfast restore --patch HEAD~1 src
  $ holdfast restore HEAD src/app.py
  $ holdfast restore HEAD src/app.py --hunk 2
  $ holdfast restore before-rebase --git exact
  $ holdfast restore HEAD --refs idea --refs stash
  $ holdfast restore '@{10 minutes ago}' --yes"""
    parser.add_argument(
        "words", nargs="*", metavar="REF PATH", help="the checkpoint, and the paths to restore"
    )
    add_restore_options(parser)
    parser.add_argument(
        "-p", "--patch", action="store_true", help="choose the changes to restore, one by one"
    )
    parser.add_argument(
        "--hunk",
        dest="hunks",
        metavar="N[,M]",
        action="append",
        default=[],
        help="only these hunks of the file, by number, or by id from diff --json",
    )
    parser.add_argument(
        "-U",
        dest="context",
        metavar="N",
        help="context lines around each change, for --patch and --hunk (default 3)",
    )
    parser.add_argument(
        "--best-effort",
        action="store_true",
        help="skip and list paths that cannot be restored, instead of refusing (status 3)",
    )
    _add_component_options(parser)


def _add_component_options(parser: Parser) -> None:
    """Options for state other than the workspace's files."""
    parser.add_argument(
        "--git",
        metavar="MODE",
        choices=_GIT_MODES,
        help="what to restore in git: files (nothing, the default), exact, branch or revert",
    )
    parser.add_argument(
        "--refs",
        action="append",
        default=[],
        metavar="NAME",
        help="restore a branch or tag by name or pattern, stash, or all; can be repeated",
    )
    parser.add_argument(
        "--external",
        action="store_true",
        help="also restore files outside the workspace, asking for each",
    )
    parser.add_argument(
        "--with",
        dest="include",
        action="append",
        default=[],
        metavar="NAME",
        help="also restore this component; can be repeated",
    )
    parser.add_argument(
        "--without",
        dest="exclude",
        action="append",
        default=[],
        metavar="NAME",
        help="do not restore this component; can be repeated",
    )


def _git_mode(mode: str | None, references: Sequence[str]) -> dict[str, str]:
    """The git mode; with `references` alone, HEAD and the index are not changed."""
    if not references:
        return {} if mode is None else {"git": mode}
    way = "refs" if mode in (None, "files") else mode
    return {"git": f"{way}:{' '.join(references)}"}


def run(invocation: Invocation) -> int:
    from holdfast.domain.component_states import EXACT
    from holdfast.interfaces.cli.path_arguments import (
        path_mistaken_for_checkpoint,
        require_restorable,
    )
    from holdfast.interfaces.cli.restore_dialog import EXTERNAL, RestoreDialog

    options = invocation.options
    words = list(invocation.all_words)
    with invocation.open(mention_former_store=True) as opened:
        if options.patch and not _names_checkpoint(invocation, opened, words):
            words.insert(0, "HEAD")
        if not words:
            picked = _pick(invocation, opened)
            if picked is None:
                invocation.terminal.note("Nothing was changed.")
                return 0
            words = [picked]
        reference = words[0]
        paths = invocation.paths(words[1:], opened.path)
        form = "holdfast restore HEAD {}"
        with path_mistaken_for_checkpoint(invocation, opened, reference, form):
            external = options.external or EXTERNAL in options.include
            modes = _git_mode(options.git, options.refs)
            request = opened.restores.request(
                invocation.scope(opened),
                reference,
                paths=paths,
                best_effort=options.best_effort,
                components=modes | ({EXTERNAL: EXACT} if external else {}),
                include=options.include,
                exclude=options.exclude,
            )
        require_restorable(invocation, opened, request.target, words[1:])
        if options.patch:
            return _patch(invocation, opened, request)
        if options.hunks:
            from holdfast.interfaces.cli.restore_choices import choose_hunks

            chosen = choose_hunks(invocation, opened, request)
            return RestoreDialog(invocation, opened, *chosen).run()
        if options.context is not None:
            raise UsageError(
                "-U requires --patch or --hunk",
                hint="usage: holdfast restore REF PATH --hunk 1",
            )
        return RestoreDialog(invocation, opened, request).run_with_external()


def _names_checkpoint(invocation: Invocation, opened: Workspace, words: list[str]) -> bool:
    """Whether the first word is a checkpoint. A path alone is taken from HEAD."""
    from holdfast.interfaces.cli.path_arguments import is_known_path

    if not words:
        return False
    try:
        invocation.resolve(opened, words[0])
    except (UnknownReference, NotFound):
        return not is_known_path(invocation, opened, words[0])
    return True


def _pick(invocation: Invocation, opened: Workspace) -> str | None:
    """The id of the chosen checkpoint; None if the user cancelled."""
    import sys

    if not has_keyboard(invocation):
        raise UsageError(
            "missing REF",
            hint=(
                "list checkpoints: holdfast log; then: holdfast restore REF. To undo the last "
                "change: holdfast undo"
            ),
        )
    from holdfast.interfaces.cli.checkpoint_picker import MomentPicker
    from holdfast.interfaces.cli.screen import Screen

    terminal, scope = invocation.terminal, invocation.scope(opened)
    with invocation.busy("scanning", opened):
        present = opened.restores.look()
        moments = opened.history.checkpoints(scope, limit=_MOST_MOMENTS)
        older = opened.sessions.checkpoint_count(scope) - len(moments)
    sessions = {one.id: one for one in opened.sessions.all()}
    terminal.flush()
    screen = Screen(sys.stdin.fileno(), terminal.out.fileno(), colour=terminal.out_colour)
    picker = MomentPicker(
        opened, present, moments, sessions, terminal, screen, invocation.now, older=older
    )
    with invocation.pause_clock():
        chosen = picker.pick()
    if chosen is None:
        return None
    words = f"{short(chosen.id)}  {ago(chosen.created_at, invocation.now)}  {title(chosen)}"
    terminal.note(f"Chosen: {words}", BOLD)
    return chosen.id


def _patch(invocation: Invocation, opened: Workspace, request: RestoreRequest) -> int:
    from holdfast.interfaces.cli.restore_choices import choose_patches
    from holdfast.interfaces.cli.restore_dialog import RestoreDialog

    if invocation.options.hunks:
        raise UsageError("--patch cannot be used with --hunk", hint="choose one")
    chosen = choose_patches(invocation, opened, request)
    if chosen is None:
        invocation.terminal.note("Nothing was changed.")
        return 0
    invocation.options.yes = True  # the user was asked about each of them
    return RestoreDialog(invocation, opened, *chosen).run()
