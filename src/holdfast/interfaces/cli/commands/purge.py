"""`holdfast purge REF | PATH …`: permanently remove content, and prove it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.purges import PURGED_MARK, count_in_words
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.standard_input import (
    can_ask,
    require_confirmation,
    text_on_standard_input,
)
from holdfast.interfaces.cli.terminal import Terminal, visible, visible_bytes
from holdfast.interfaces.cli.wording import count, duration, headline, size

if TYPE_CHECKING:
    from holdfast.api.upkeep import PurgePlan, PurgeRequest, TextPurgePlan
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.purges import Holder, PurgeOutcome, PurgeProof
_TITLE_LENGTH = 60
_SET_ASIDE = "set-aside/"
_TEXT_DATABASES = ("story.db", "catalog.db")


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast purge PATH ... | REF ... [--everywhere | --keep-shared] [--dry-run] [--yes]\n"
        "       holdfast purge --text TEXT [--dry-run] [--yes]"
    )
    parser.description = """\
Remove content for good, such as a secret that should never have been saved. With PATHs, remove them
from every checkpoint; the checkpoints are kept and record the removal. With REFs, remove those
checkpoints with everything that only they use. Words after -- are always paths. A PATH outside the
workspace can be a file that an agent's tool changed, which is then no longer captured, or a file
named by the setting agent_state.

With --text, replace a text with [purged] in messages, tool calls, reasons, names, tags, notes, edit
diffs and session titles. Saved files that contain the text are listed with the command that removes
them. --text - reads it from standard input, which keeps it out of your shell history.

Purge rewrites packs, rebuilds databases and empties logs. Then it searches every file of the store
for the removed bytes and their hashes, and reports what it searched. If anything is left, it is
listed and the exit status is 3. To finish an interrupted purge, run it again.

The workspace is not touched. Copies outside the store are not reached: exports, backups, file
system snapshots. This cannot be undone, so it asks first; use --yes in scripts. Named, approved and
otherwise protected checkpoints also need --force."""
    parser.epilog = """\
examples:
  $ holdfast purge .env --dry-run
  $ holdfast purge .env --yes
  $ holdfast purge ~/.netrc --yes
  $ holdfast purge failed-attempt --force --yes
  $ holdfast purge --text 'the old password' --yes"""
    parser.add_argument("words", nargs="*", metavar="PATH|REF", help="paths, or checkpoints")
    parser.add_argument(
        "--text",
        metavar="TEXT",
        help="replace this text in messages, reasons and names; - reads it from standard input",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--everywhere",
        action="store_true",
        help="also remove the same content from other paths",
    )
    group.add_argument(
        "--keep-shared", action="store_true", help="keep content that other paths also have"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be removed, and change nothing"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def run(invocation: Invocation) -> int:
    options = invocation.options
    with invocation.open() as opened:
        with invocation.busy("removing"):
            finished = None if options.dry_run else opened.upkeep.finish_purge()
        if options.text is not None:
            return _purge_text(invocation, opened)
        try:
            request = _request(invocation, opened)
        except (NotFound, UsageError):
            # The purge was repeated after an interruption. It has finished now, and the text is
            # gone.
            if finished is None:
                raise
            return _show_outcome(invocation, finished)
        if options.dry_run:
            return _show_plan(invocation, opened.upkeep.plan_purge(request))
        _confirm(invocation, opened, request)
        with invocation.busy("removing"):
            return _show_outcome(invocation, opened.upkeep.purge(request))


def _purge_text(invocation: Invocation, opened: Workspace) -> int:
    text = _text(invocation)
    if invocation.options.dry_run:
        return _show_text_plan(invocation, opened.upkeep.plan_text_purge(text))
    if not invocation.options.yes and can_ask(invocation):
        _describe_text_plan(invocation.terminal.stderr_copy(), opened.upkeep.plan_text_purge(text))
    _require_yes(invocation)
    with invocation.busy("removing"):
        return _show_text_outcome(invocation, opened.upkeep.purge_text(text))


def _text(invocation: Invocation) -> str:
    from holdfast.domain.purges import SHORTEST_TEXT

    if invocation.words or invocation.literal:
        raise UsageError(
            "paths, checkpoints and --text cannot be combined",
            hint="purge them one after the other",
        )
    text: str = invocation.options.text
    if text == "-":
        text = text_on_standard_input("text").rstrip("\r\n")
    if len(text.strip()) < SHORTEST_TEXT:
        raise UsageError(
            f"the text to purge has fewer than {SHORTEST_TEXT} characters",
            hint="use a longer text: short ones match unrelated places",
        )
    return text


def _request(invocation: Invocation, opened: Workspace) -> PurgeRequest:
    paths = [_literal(invocation, opened, word) for word in invocation.literal]
    checkpoints: list[Checkpoint] = []
    for word in invocation.words:
        found = _checkpoint(invocation, opened, word)
        path = _path(invocation, opened, word)
        named = path is not None and opened.upkeep.is_saved_path(path)
        if found is not None and named:
            raise UsageError(
                f"{word!r} is both a checkpoint and a path",
                hint=f"for the path, write -- {word}; for the checkpoint, use its id: {found.id}",
            )
        if found is not None:
            checkpoints.append(found)
        elif path is not None and named:
            paths.append(path)
        else:
            raise NotFound(
                f"{word!r} is neither a checkpoint nor a path in any checkpoint",
                hint="list checkpoints: holdfast log; list files: holdfast show REF --files",
            )
    if not paths and not checkpoints:
        raise UsageError("missing PATH or REF", hint="usage: holdfast purge .env")
    if paths and checkpoints:
        raise UsageError(
            "paths and checkpoints cannot be combined", hint="purge them one after the other"
        )
    return opened.upkeep.purge_request(
        paths,
        checkpoints,
        everywhere=invocation.options.everywhere,
        keep_shared=invocation.options.keep_shared,
        force=invocation.options.force,
    )


def _checkpoint(invocation: Invocation, opened: Workspace, word: str) -> Checkpoint | None:
    scope = invocation.scope(opened)
    try:
        return opened.resolve(scope, word)
    except NotFound:
        return None


def _path(invocation: Invocation, opened: Workspace, word: str) -> bytes | None:
    try:
        found = invocation.paths([word], opened.path)
    except UsageError:
        return _outside(invocation, opened, word)
    return found[0] if found else None


def _literal(invocation: Invocation, opened: Workspace, word: str) -> bytes:
    outside = _outside(invocation, opened, word)
    if outside is not None:
        return outside
    found = invocation.paths([word], opened.path)
    if not found:
        raise UsageError("cannot purge the whole workspace", hint="name the paths to remove")
    return found[0]


def _outside(invocation: Invocation, opened: Workspace, word: str) -> bytes | None:
    """A file outside the workspace that checkpoints have, as typed or with links resolved."""
    named = os.path.abspath(os.path.join(os.fsencode(invocation.directory), os.fsencode(word)))
    for path in dict.fromkeys((named, os.path.realpath(named))):
        if opened.upkeep.is_saved_path(path):
            return path
    return None


def _confirm(invocation: Invocation, opened: Workspace, request: PurgeRequest) -> None:
    plan = opened.upkeep.plan_purge(request)
    plan.require_allowed()
    if not invocation.options.yes and can_ask(invocation):
        _describe_plan(invocation.terminal.stderr_copy(), plan)
    _require_yes(invocation)


def _require_yes(invocation: Invocation) -> None:
    require_confirmation(
        invocation,
        "a purge cannot be undone and needs confirmation",
        "Remove this for good?",
        hint="preview it with --dry-run; confirm it with --yes",
    )


def _show_plan(invocation: Invocation, plan: PurgePlan) -> int:
    """Show what a purge would do, or what would prevent it."""
    if invocation.json:
        from holdfast.api.views.upkeep import purge_plan_view

        invocation.emit(purge_plan_view(plan, invocation.elapsed_ms))
        return 0
    _describe_plan(invocation.terminal, plan)
    _show_holders(invocation.terminal, plan.holders)
    for refusal in plan.refusals:
        invocation.terminal.warn(f"would be refused: {refusal}")
    if plan.refusals:
        invocation.terminal.note(f"hint: {plan.hint}")
    invocation.terminal.sentence("Nothing was changed (dry run).")
    return 0


def _describe_plan(terminal: Terminal, plan: PurgePlan) -> None:
    for path in plan.paths:
        terminal.sentence(f"  path        {visible_bytes(path)}")
    for checkpoint in plan.removed:
        title = headline(checkpoint.intent.reasoning, _TITLE_LENGTH)
        terminal.sentence(f"  checkpoint  {short(checkpoint.id)} {title}")
    if plan.changed:
        terminal.sentence(f"  removed from {count(len(plan.changed), 'checkpoint')} (kept)")
    for path in plan.stays_elsewhere:
        terminal.sentence(f"  also at     {visible_bytes(path)}")
    terminal.sentence(f"  {count(len(plan.gone), 'object')} would be deleted for good")


def _show_outcome(invocation: Invocation, outcome: PurgeOutcome) -> int:
    status = PARTIAL if outcome.proof.traces else 0
    if invocation.json:
        from holdfast.api.views.upkeep import purge_view

        invocation.emit(purge_view(outcome, invocation.elapsed_ms))
        return status
    terminal = invocation.terminal
    done = "Finished an interrupted purge" if outcome.resumed else "Purged"
    parts = []
    if outcome.removed:
        parts.append(f"deleted {count(len(outcome.removed), 'checkpoint')}")
    if outcome.changed:
        parts.append(f"removed from {count(len(outcome.changed), 'checkpoint')} (kept)")
    parts += [f"{count(outcome.objects, 'object')} deleted", f"{size(outcome.freed_bytes)} freed"]
    mark = terminal.cross if outcome.proof.traces else terminal.tick
    terminal.sentence(f"{mark} {done}: {', '.join(parts)}, {duration(invocation.elapsed_ms)}")
    _show_proof(terminal, outcome.proof)
    _show_holders(terminal, outcome.holders)
    for path in outcome.still_in_workspace:
        way = "is still in the workspace", "unless an ignore rule excludes it"
        if path.startswith(b"/"):
            way = (
                "is in a captured directory outside the workspace, or named by agent_state",
                "unless you purge that directory or change that setting",
            )
        terminal.warn(f"{to_text(path)} {way[0]}; the next checkpoint saves it again {way[1]}")
    terminal.warn(*outcome.warnings)
    return status


def _show_text_plan(invocation: Invocation, plan: TextPurgePlan) -> int:
    if invocation.json:
        from holdfast.api.views.upkeep import text_purge_plan_view

        invocation.emit(text_purge_plan_view(plan, invocation.elapsed_ms))
        return 0
    _describe_text_plan(invocation.terminal, plan)
    invocation.terminal.sentence("Nothing was changed (dry run).")
    return 0


def _describe_text_plan(terminal: Terminal, plan: TextPurgePlan) -> None:
    terminal.sentence(
        f"  the text is in {count_in_words(plan.said) or 'no messages, reasons or names'}"
    )
    _show_text_left(terminal, plan.paths, plan.components)


def _show_text_outcome(invocation: Invocation, outcome: PurgeOutcome) -> int:
    """Never prints the text, because it may be a secret."""
    proof = outcome.proof
    left = proof.traces or proof.elsewhere or proof.components
    status = PARTIAL if left else 0
    if invocation.json:
        from holdfast.api.views.upkeep import text_purge_view

        invocation.emit(text_purge_view(outcome, invocation.elapsed_ms))
        return status
    terminal = invocation.terminal
    mark = terminal.cross if proof.traces else terminal.tick
    where = f"replaced by {PURGED_MARK} in {count_in_words(outcome.said)}"
    done = f"Purged the text: {where}" if outcome.said else "The text was not found"
    terminal.sentence(f"{mark} {done}, {duration(invocation.elapsed_ms)}")
    _show_search(terminal, proof, "outside of saved files")
    _show_text_left(terminal, proof.elsewhere, proof.components)
    terminal.warn(*outcome.warnings)
    return status


def _show_text_left(terminal: Terminal, paths: Sequence[bytes], components: Sequence[str]) -> None:
    for path in paths:
        name = visible_bytes(path)
        terminal.warn(f"{name} contains it in checkpoints: holdfast purge {shlex.quote(name)}")
    for name in components:
        terminal.warn(f"checkpoints contain it in the data of {visible(name)}: holdfast purge REF")


def _show_holders(terminal: Terminal, holders: Sequence[Holder]) -> None:
    """Copies outside the store, which a purge does not reach and the user has to remove."""
    for one in holders:
        way = f": {visible(one.how)}" if one.how else ""
        where = "another store" if one.where == "store" else visible(one.where)
        said = f"{where}: {visible(one.what)}{way}"
        terminal.warn(f"also in {said}" if one.is_held else f"not searched: {said}")


def _show_proof(terminal: Terminal, proof: PurgeProof) -> None:
    wanted = f"{count(proof.digests, 'digest')} and {count(proof.samples, 'sample')} of bytes"
    _show_search(terminal, proof, f"for {wanted}")
    if any(trace.file.startswith(_TEXT_DATABASES) for trace in proof.traces):
        terminal.warn("it was quoted; to replace it there: holdfast purge --text TEXT")
    for name in proof.components:
        terminal.warn(f"checkpoints contain some of the same bytes in the data of {visible(name)}")
    for path in proof.elsewhere:
        terminal.warn(f"{to_text(path)} contains some of the same bytes and was not removed")


def _show_search(terminal: Terminal, proof: PurgeProof, how: str) -> None:
    looked = f"{count(proof.files, 'file')} of the store, {size(proof.searched_bytes)}"
    found = "something was found" if proof.traces else "nothing was found"
    terminal.sentence(f"  searched {looked}, {how}: {found}")
    for trace in proof.traces:
        terminal.sentence(f"  left in {visible(trace.file)}: {visible(trace.what)}")
    if any(trace.file.startswith(_SET_ASIDE) for trace in proof.traces):
        terminal.warn(
            "quarantined files in the store's directory set-aside are not rewritten: delete "
            "that directory when you no longer need it, and purge again"
        )
