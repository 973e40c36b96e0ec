"""`holdfast export FILE [REF …]`: write sessions or checkpoints into one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.bootstrap import OpenWorkspace
    from holdfast.engine.bundles.exporting import ExportOutcome
    from holdfast.engine.bundles.selection import Selection

_STANDARD_OUTPUT = "-"


def configure(parser: Parser) -> None:
    parser.usage = "holdfast export FILE [REF ...] [--all] [--force]"
    parser.description = """\
Write the current session, or the one that --session names, into one file: every checkpoint with
its reason, name, tags, parents and files. With REFs only those checkpoints, with --all every
session of the workspace. holdfast import takes the file into another store.

The file is written beside its name and appears when it is whole; it is private to you. An existing
file is replaced only with --force. FILE - writes to standard output.

The file is not encrypted: it holds what the workspace held, secrets included."""
    parser.epilog = """\
examples:
  $ holdfast export work.holdfast
  $ holdfast export before.holdfast before-refactor
  $ holdfast export - --all | ssh elsewhere 'cat > work.holdfast'"""
    parser.add_argument(
        "words", nargs="*", metavar="FILE REF", help="the file, and the checkpoints if not all"
    )
    parser.add_argument("--all", action="store_true", help="every session of the workspace")


def run(invocation: Invocation) -> int:
    words = invocation.all_words
    if not words:
        raise UsageError("the file is missing", hint="see: holdfast export --help")
    if words[0] == _STANDARD_OUTPUT and invocation.json:
        raise UsageError("the bundle and the JSON would both go to standard output")
    with invocation.open() as opened:
        selection = _selection(invocation, opened, words[1:])
        with invocation.busy("exporting") as progress:
            if words[0] == _STANDARD_OUTPUT:
                from holdfast.engine.bundles.exporting import export_to

                invocation.terminal.flush()
                export_to(opened.engine.vault, selection, sys.stdout.fileno(), progress=progress)
                return 0
            path = _target(invocation, words[0])
            outcome = opened.engine.export(
                selection, path, replace=invocation.options.force, progress=progress
            )
    _report(invocation, path, outcome)
    return 0


def _selection(invocation: Invocation, opened: OpenWorkspace, references: list[str]) -> Selection:
    from holdfast.engine.bundles.selection import (
        select_all,
        select_checkpoints,
        select_sessions,
    )

    vault = opened.engine.vault
    if invocation.options.all:
        if references:
            raise UsageError("--all takes no checkpoints", hint="leave one of the two out")
        return select_all(vault)
    session = invocation.session(opened)
    if not references:
        return select_sessions(vault, [session])
    return select_checkpoints(vault, [opened.engine.resolve(session, ref) for ref in references])


def _target(invocation: Invocation, text: str) -> Path:
    if not text or "\0" in text:
        raise UsageError(f"{text!r} is not a file name")
    return invocation.directory / Path(text).expanduser()


def _report(invocation: Invocation, path: Path, outcome: ExportOutcome) -> None:
    from holdfast.interfaces.cli.terminal import GREEN, visible
    from holdfast.interfaces.cli.wording import count, duration, size

    if invocation.json:
        invocation.emit(
            {
                "file": str(path),
                "sessions": list(outcome.sessions),
                "checkpoints": outcome.checkpoints,
                "objects": outcome.objects,
                "content_bytes": outcome.content_bytes,
                "file_bytes": outcome.file_bytes,
                "latest": outcome.latest,
                "elapsed_ms": invocation.elapsed_ms,
            }
        )
        return
    terminal = invocation.terminal
    what = count(outcome.checkpoints, "checkpoint")
    where = count(len(outcome.sessions), "session")
    terminal.line(
        f"{terminal.paint('✓', GREEN)} Exported {what} of {where} to {visible(str(path))}: "
        f"{size(outcome.file_bytes)}, {duration(invocation.elapsed_ms)}"
    )
