"""`holdfast export FILE [REF …]`: write sessions or checkpoints into one file."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import count, duration, size

if TYPE_CHECKING:
    from holdfast.api.exchange import ExportOutcome, Selection
    from holdfast.api.workspace import Workspace

_STANDARD_OUTPUT = "-"


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast export FILE [REF ...] [--all] [--force]\n"
        "       holdfast export --git-bundle FILE [--all] [--force]"
    )
    parser.description = """\
Write the current session, or the one that --session names, into one file: every checkpoint with
its reason, name, tags, parents and files. With REFs only those checkpoints, with --all every
session of the workspace. holdfast import takes the file into another store.

The file is written beside its name and appears when it is whole; it is private to you. An existing
file is replaced only with --force. FILE - writes to standard output.

With --git-bundle the file is one that git clone takes: a branch with a commit for each checkpoint,
and tags for what is approved and for each round. It is for looking at; import does not take it, and
paths that only the setting include protects are not in it.

The file is not encrypted: it holds what the workspace held, secrets included."""
    parser.epilog = """\
examples:
  $ holdfast export work.holdfast
  $ holdfast export before.holdfast before-refactor
  $ holdfast export --git-bundle work.bundle && git clone work.bundle
  $ holdfast export - --all | ssh elsewhere 'cat > work.holdfast'"""
    parser.add_argument(
        "words", nargs="*", metavar="FILE REF", help="the file, and the checkpoints if not all"
    )
    parser.add_argument("--all", action="store_true", help="every session of the workspace")
    parser.add_argument("--git-bundle", action="store_true", help="write a bundle for git clone")


def run(invocation: Invocation) -> int:
    words = invocation.all_words
    if not words:
        raise UsageError("the file is missing", hint="see: holdfast export --help")
    if words[0] == _STANDARD_OUTPUT and invocation.json:
        raise UsageError(
            "the bundle and the JSON would both go to standard output",
            hint="name a file, or leave --json out",
        )
    if invocation.options.git_bundle:
        return _git_bundle(invocation, words)
    with invocation.open() as opened:
        selection = _selection(invocation, opened, words[1:])
        warnings = _unsealed(opened)
        with invocation.busy("exporting") as progress:
            if words[0] == _STANDARD_OUTPUT:
                invocation.terminal.flush()
                opened.bundles.export_to(selection, sys.stdout.fileno(), progress=progress)
                invocation.terminal.warn(*warnings)
                return 0
            path = _target(invocation, words[0])
            _require_outside(invocation, opened, path)
            outcome = opened.bundles.export(
                selection, path, replace=invocation.options.force, progress=progress
            )
    _report(invocation, path, outcome, warnings)
    return 0


def _unsealed(opened: Workspace) -> list[str]:
    """Who encrypts a store would not expect what comes out of it to lie there in the open."""
    if not opened.is_encrypted:
        return []
    return [
        "the store is encrypted, and this file is not: whoever has it can read everything in it"
    ]


def _git_bundle(invocation: Invocation, words: list[str]) -> int:
    if len(words) > 1:
        raise UsageError("a git bundle holds whole sessions", hint="leave the checkpoints out")
    if words[0] == _STANDARD_OUTPUT:
        raise UsageError("a git bundle needs a file", hint="name one")
    path = _target(invocation, words[0])
    with invocation.open() as opened:
        _require_outside(invocation, opened, path)
        sessions = None if invocation.options.all else [invocation.session(opened)]
        unsealed = _unsealed(opened)
        with invocation.busy("exporting", opened):
            outcome = opened.bundles.export_git(
                path, sessions=sessions, replace=invocation.options.force
            )
    file_bytes = path.stat().st_size
    if invocation.json:
        from holdfast.api.views.exchange import git_export_view

        warnings = [*outcome.warnings, *unsealed]
        view = git_export_view(path, outcome, file_bytes, warnings, invocation.elapsed_ms)
        invocation.emit(view)
        return PARTIAL if outcome.warnings else 0
    terminal = invocation.terminal
    terminal.line(
        f"{terminal.tick} Exported {count(outcome.commits, 'checkpoint')} to "
        f"{visible(str(path))}: {size(file_bytes)}, {duration(invocation.elapsed_ms)}"
    )
    terminal.warn(*outcome.warnings, *unsealed)
    return PARTIAL if outcome.warnings else 0


def _selection(invocation: Invocation, opened: Workspace, references: list[str]) -> Selection:
    if invocation.options.all:
        if references:
            raise UsageError("--all takes no checkpoints", hint="leave one of the two out")
        return opened.bundles.select_all()
    if not references:
        return opened.bundles.select_session(invocation.session(opened))
    chosen = [invocation.resolve(opened, reference) for reference in references]
    return opened.bundles.select_checkpoints(chosen)


def _target(invocation: Invocation, text: str) -> Path:
    if not text or "\0" in text:
        raise UsageError(f"{text!r} is not a file name")
    return invocation.directory / Path(text).expanduser()


def _require_outside(invocation: Invocation, opened: Workspace, path: Path) -> None:
    """A file with the history in it would be part of every further checkpoint."""
    if invocation.options.force or not path.resolve().is_relative_to(opened.path.resolve()):
        return
    raise Refused(
        f"{path} is inside the workspace, so every further checkpoint would save the export too",
        hint=f"write it elsewhere: holdfast export {quote(f'../{path.name}')}; "
        "or insist with --force",
    )


def _report(
    invocation: Invocation, path: Path, outcome: ExportOutcome, warnings: list[str]
) -> None:
    if invocation.json:
        from holdfast.api.views.exchange import export_view

        invocation.emit(export_view(path, outcome, warnings, invocation.elapsed_ms))
        return
    terminal = invocation.terminal
    what = count(outcome.checkpoints, "checkpoint")
    where = count(len(outcome.sessions), "session")
    terminal.line(
        f"{terminal.tick} Exported {what} of {where} to {visible(str(path))}: "
        f"{size(outcome.file_bytes)}, {duration(invocation.elapsed_ms)}"
    )
    invocation.terminal.warn(*warnings)
