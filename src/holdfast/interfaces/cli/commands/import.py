"""`holdfast import FILE`: import sessions or checkpoints from a bundle."""  # noqa: N999

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.domain.ids import session_id
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import count, duration, size

if TYPE_CHECKING:
    from holdfast.api.exchange import ImportOutcome, ImportRequest


def configure(parser: Parser) -> None:
    parser.usage = "holdfast import FILE [--as-session NAME] [--foreign] [--dry-run]"
    parser.description = """\
Import a file that holdfast export wrote. The whole file is verified first. If it is damaged,
incomplete or malicious, nothing is imported and the exit status is 5. Checkpoints keep their ids,
and existing ones are skipped, so importing twice is safe.

Use --foreign to import a file from another workspace. Your files are not touched; restore an
imported checkpoint to get its files."""
    parser.epilog = """\
examples:
  $ holdfast import work.holdfast --dry-run
  $ holdfast import work.holdfast --foreign --as-session from-laptop"""
    parser.add_argument("words", nargs="*", metavar="FILE", help="the bundle")
    parser.add_argument("--as-session", metavar="NAME", help="import the session under this name")
    parser.add_argument(
        "--foreign", action="store_true", help="accept an export from another workspace"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="verify the file, and show what would be imported"
    )


def run(invocation: Invocation) -> int:
    from holdfast.api.exchange import ImportRequest

    words = invocation.at_most(1, "one file")
    if not words or not words[0] or "\0" in words[0]:
        raise UsageError("missing FILE", hint="usage: holdfast import FILE")
    options = invocation.options
    request = ImportRequest(
        invocation.directory / Path(words[0]).expanduser(),
        None if options.as_session is None else session_id(options.as_session),
        foreign=options.foreign,
        dry_run=options.dry_run,
    )
    _report(invocation, _import(invocation, request))
    return 0


def _import(invocation: Invocation, request: ImportRequest) -> ImportOutcome:
    from holdfast.api.exchange import verify_bundle
    from holdfast.api.stores import workspace_around

    with invocation.busy("verifying") as progress:
        if workspace_around(invocation.directory) is None:
            outcome = verify_bundle(request, progress)
            if request.dry_run:
                return outcome
        with invocation.open(create=True) as opened:
            return opened.bundles.import_file(request, progress=progress)


def _report(invocation: Invocation, outcome: ImportOutcome) -> None:
    dry_run: bool = invocation.options.dry_run
    if invocation.json:
        from holdfast.api.views.exchange import import_view

        invocation.emit(import_view(outcome, invocation.elapsed_ms, dry_run=dry_run))
        return
    terminal = invocation.terminal
    tick = terminal.tick
    here = count(outcome.already_there, "checkpoint")
    if not outcome.added:
        terminal.line(f"{tick} Nothing to import: all {here} already exist")
        return
    what = count(len(outcome.added), "checkpoint")
    names = ", ".join(map(visible, outcome.sessions))
    verb = "Would import" if dry_run else "Imported"
    more = f", {here} already existed" if outcome.already_there else ""
    stored = "" if dry_run else f", {size(outcome.stored_bytes)} stored"
    terminal.line(
        f"{tick} {verb} {what} of {names}{more}{stored}, {duration(invocation.elapsed_ms)}"
    )
    if not dry_run:
        terminal.line(
            f"  See them: holdfast log --session {quote(visible(outcome.latest_session))}"
        )
