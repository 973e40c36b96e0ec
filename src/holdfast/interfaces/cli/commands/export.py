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
Write the current session, or the one given by --session, to one file: every checkpoint with its
reason, name, tags, parents and files. With REFs, only those checkpoints; with --all, every session
of the workspace. holdfast import reads the file into another store.

Only you can read the file. It is not encrypted and contains everything in the checkpoints,
including secrets. An incomplete export never replaces a file, and an existing file is only replaced
with --force. FILE - writes to standard output.

With --git-bundle, write a bundle for git clone: one branch with a commit for each checkpoint, and
tags for approved checkpoints and rounds. holdfast import cannot read it. Paths that are captured
only because of the setting include are not in it."""
    parser.epilog = """\
examples:
  $ holdfast export work.holdfast
  $ holdfast export before.holdfast before-refactor
  $ holdfast export --git-bundle work.bundle && git clone work.bundle
  $ holdfast export - --all | ssh elsewhere 'cat > work.holdfast'"""
    parser.add_argument(
        "words", nargs="*", metavar="FILE REF", help="the file, and the checkpoints (default: all)"
    )
    parser.add_argument("--all", action="store_true", help="every session of the workspace")
    parser.add_argument("--git-bundle", action="store_true", help="write a bundle for git clone")


def run(invocation: Invocation) -> int:
    words = invocation.all_words
    if not words:
        raise UsageError("missing FILE", hint="usage: holdfast export FILE")
    if words[0] == _STANDARD_OUTPUT and invocation.json:
        raise UsageError(
            "--json and FILE - would both write to standard output",
            hint="use a file name, or leave out --json",
        )
    if invocation.options.git_bundle:
        return _git_bundle(invocation, words)
    with invocation.open() as opened:
        selection = _selection(invocation, opened, words[1:])
        warnings = _encryption_warning(opened)
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


def _encryption_warning(opened: Workspace) -> list[str]:
    """Warn, because users who encrypt a store may expect encrypted exports."""
    if not opened.is_encrypted:
        return []
    return ["the store is encrypted, but this file is not: anyone who has it can read it"]


def _git_bundle(invocation: Invocation, words: list[str]) -> int:
    if len(words) > 1:
        raise UsageError(
            "a git bundle always contains whole sessions", hint="leave out the checkpoints"
        )
    if words[0] == _STANDARD_OUTPUT:
        raise UsageError("missing FILE for the git bundle", hint="name one")
    path = _target(invocation, words[0])
    with invocation.open() as opened:
        _require_outside(invocation, opened, path)
        sessions = None if invocation.options.all else [invocation.session(opened)]
        encryption_warning = _encryption_warning(opened)
        with invocation.busy("exporting", opened):
            outcome = opened.bundles.export_git(
                path, sessions=sessions, replace=invocation.options.force
            )
    file_bytes = path.stat().st_size
    warnings = [*outcome.warnings, *encryption_warning]
    if invocation.json:
        from holdfast.api.views.exchange import git_export_view

        view = git_export_view(path, outcome, file_bytes, warnings, invocation.elapsed_ms)
        invocation.emit(view)
        return PARTIAL if outcome.warnings else 0
    terminal = invocation.terminal
    terminal.line(
        f"{terminal.tick} Exported {count(outcome.commits, 'checkpoint')} to "
        f"{visible(str(path))}: {size(file_bytes)}, {duration(invocation.elapsed_ms)}"
    )
    terminal.warn(*warnings)
    return PARTIAL if outcome.warnings else 0


def _selection(invocation: Invocation, opened: Workspace, references: list[str]) -> Selection:
    if invocation.options.all:
        if references:
            raise UsageError("--all cannot be used with checkpoints", hint="leave out one of them")
        return opened.bundles.select_all()
    if not references:
        return opened.bundles.select_session(invocation.session(opened))
    chosen = [invocation.resolve(opened, reference) for reference in references]
    return opened.bundles.select_checkpoints(chosen)


def _target(invocation: Invocation, text: str) -> Path:
    if not text or "\0" in text:
        raise UsageError(f"{text!r} is not a file name")
    path = invocation.directory / Path(text).expanduser()
    return path.parent.resolve() / path.name if path.name else path


def _require_outside(invocation: Invocation, opened: Workspace, path: Path) -> None:
    """An export in the workspace would become part of every later checkpoint."""
    if invocation.options.force or not path.resolve().is_relative_to(opened.path.resolve()):
        return
    raise Refused(
        f"{path} is inside the workspace, so later checkpoints would include the export",
        hint=f"write it elsewhere: holdfast export {quote(f'../{path.name}')}; or use --force",
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
