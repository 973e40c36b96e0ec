"""`holdfast cleanup`: delete expired checkpoints, or stores without a workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier, show_saved_first, title
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.standard_input import agrees, can_ask, require_confirmation
from holdfast.interfaces.cli.terminal import DIM, visible
from holdfast.interfaces.cli.wording import count, size

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.ids import CheckpointId
    from holdfast.domain.retention import Decision


def configure(parser: Parser) -> None:
    parser.usage = "holdfast cleanup [--dry-run] [--yes] [--stores]"
    parser.description = """\
Delete expired checkpoints, in all sessions, and free their space. It lists them with the reasons
and asks first; use --yes in scripts. Sessions active in the last 24 hours are left alone. Named,
annotated, approved and manual checkpoints, the initial checkpoint and HEAD of each session, and
checkpoints that undo needs are always kept. The setting retention has the rules. Cleanup also runs
automatically once a day.

With --stores, list the stores whose workspace is gone (a deleted project, a removed git worktree),
with their size, and delete them after asking. Nothing deletes such a store automatically. A store
whose workspace may be on an unmounted disk (below /mnt or /media, or listed in /etc/fstab) is kept,
unless you add --force."""
    parser.epilog = """\
examples:
  $ holdfast cleanup --dry-run
  $ holdfast cleanup --yes
  $ holdfast cleanup --stores
  $ holdfast config set retention.tool '{age = "3 days", most = 100}'"""
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be deleted, and change nothing"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--stores", action="store_true", help="delete stores whose workspace is gone"
    )


def run(invocation: Invocation) -> int:
    invocation.at_most(0)
    if invocation.options.stores:
        return _clean_stores(invocation)
    with invocation.open() as opened:
        if invocation.options.dry_run:
            with invocation.busy("looking"):
                plan = opened.upkeep.plan_cleanup()
            return _answer(invocation, plan.decisions, unneeded_bytes=plan.unneeded_bytes)
        if not invocation.options.yes:
            _confirm(invocation, opened.upkeep.retention_decisions())
        with invocation.busy("cleaning up") as progress:
            done = opened.upkeep.cleanup(progress)
        if not invocation.options.yes and not invocation.json:
            _offer_evictions(invocation, opened)
    return _answer(
        invocation,
        done.decisions,
        freed_bytes=done.freed_bytes,
        debris=done.debris,
        warnings=done.warnings,
        saved_first=done.saved_first,
    )


def _confirm(invocation: Invocation, decisions: Sequence[Decision]) -> None:
    """Ask, unless there is nothing to delete."""
    going = [decision for decision in decisions if not decision.keep]
    if not going:
        return
    if can_ask(invocation):
        _show(invocation, going)
    gone = count(len(going), "checkpoint")
    require_confirmation(
        invocation,
        f"deleting {gone} cannot be undone and needs confirmation",
        f"Delete {gone} for good?",
        hint="list them: holdfast cleanup --dry-run; confirm with: holdfast cleanup --yes",
    )


def _offer_evictions(invocation: Invocation, opened: Workspace) -> None:
    """If the store is still over its budget, offer to delete more. Only a user at a terminal is
    asked."""
    going = opened.upkeep.over_budget() if can_ask(invocation) else ()
    if not going:
        return
    terminal = invocation.terminal
    for one in going:
        terminal.sentence(f"{identifier(terminal, one)} {title(one)}")
    gone = count(len(going), "checkpoint")
    question = f"The store is over its budget. Delete {gone} of ended sessions too?"
    if agrees(invocation, question, cancel_note="only expired checkpoints were deleted"):
        deleted, freed = opened.upkeep.evict(going)
        terminal.sentence(f"Deleted {count(deleted, 'checkpoint')}; {size(freed)} freed")


def _clean_stores(invocation: Invocation) -> int:
    from holdfast.api.stores import lost_stores, remove_store

    terminal = invocation.terminal
    found = lost_stores()
    if not invocation.json:
        for one in found:
            unsure = " (its disk may not be mounted)" if one.may_be_unmounted else ""
            terminal.sentence(f"{size(one.size_bytes):>8}  {visible(str(one.workspace))}{unsure}")
            terminal.sentence(f"          {visible(str(one.directory))}", DIM)
    going = [one for one in found if invocation.options.force or not one.may_be_unmounted]
    stores, total = count(len(going), "store"), sum(one.size_bytes for one in going)
    removed: list[str] = []
    warnings: list[str] = []
    if kept := len(found) - len(going):
        disk = f"kept {count(kept, 'store')}: the disk may not be mounted"
        warnings.append(f"{disk}. If the disk is gone for good: holdfast cleanup --stores --force")
    if going and not invocation.options.dry_run:
        require_confirmation(
            invocation,
            f"deleting {stores} ({size(total)}) cannot be undone and needs confirmation",
            f"Delete {stores} ({size(total)}) with every checkpoint? Their workspaces are gone, "
            "unless a disk is not mounted",
            hint="list them: holdfast cleanup --stores --dry-run; confirm it with --yes",
        )
        for one in going:
            try:
                remove_store(one)
                removed.append(str(one.directory))
            except HoldfastError as error:
                warnings.append(f"{one.directory}: {error.message}")
    freed = sum(one.size_bytes for one in found if str(one.directory) in removed)
    if invocation.json:
        from holdfast.api.views.upkeep import LostStoresView, lost_store_view

        view: LostStoresView = {
            "dry_run": bool(invocation.options.dry_run),
            "stores": [
                lost_store_view(one, removed=str(one.directory) in removed) for one in found
            ],
            "freed_bytes": freed,
            "warnings": warnings,
        }
        invocation.emit(view)
    elif not found:
        terminal.sentence("No store to delete: every store has its workspace")
    elif invocation.options.dry_run:
        terminal.sentence(f"Would delete {stores}; {size(total)} would be free")
    else:
        terminal.sentence(f"Deleted {count(len(removed), 'store')}; {size(freed)} freed")
    if not invocation.json:
        terminal.warn(*warnings)
    return PARTIAL if warnings and not invocation.options.dry_run else 0


def _answer(
    invocation: Invocation,
    decisions: Sequence[Decision],
    *,
    unneeded_bytes: int | None = None,
    freed_bytes: int = 0,
    debris: Sequence[str] = (),
    warnings: Sequence[str] = (),
    saved_first: CheckpointId | None = None,
) -> int:
    if invocation.json:
        from holdfast.api.views.upkeep import cleanup_view

        view = cleanup_view(
            decisions,
            unneeded_bytes=unneeded_bytes,
            freed_bytes=freed_bytes,
            saved_first=saved_first,
            debris=debris,
            warnings=warnings,
        )
        invocation.emit(view)
        return PARTIAL if warnings else 0
    _show(invocation, decisions)
    dropped = count(sum(not decision.keep for decision in decisions), "checkpoint")
    kept = sum(decision.keep for decision in decisions)
    if unneeded_bytes is not None:
        words = f"Would delete {dropped} and keep {kept}; {size(unneeded_bytes)} would become free"
    else:
        words = f"Deleted {dropped}, kept {kept}; {size(freed_bytes)} freed"
    invocation.terminal.sentence(words)
    show_saved_first(invocation.terminal, saved_first)
    for name in debris:
        invocation.terminal.sentence(
            f"Removed a leftover of an interrupted process: {visible(name)}"
        )
    invocation.terminal.warn(*warnings)
    return PARTIAL if warnings else 0


def _show(invocation: Invocation, decisions: Sequence[Decision]) -> None:
    """List every deletion. Kept checkpoints are only counted, except for programs."""
    terminal = invocation.terminal
    listed = sorted(decisions, key=lambda d: d.checkpoint.sequence)
    if terminal.for_people:
        kept = Counter(decision.reason for decision in listed if decision.keep)
        for reason, number in kept.most_common():
            words = reason.removeprefix("protected: ")
            terminal.sentence(f"keep {number:,}: {words}", DIM)
        listed = [decision for decision in listed if not decision.keep]
    for decision in listed:
        found = decision.checkpoint
        verdict = "keep" if decision.keep else "drop"
        reason = terminal.paint(f"({decision.reason})", DIM)
        terminal.sentence(f"{verdict} {identifier(terminal, found)} {title(found)} {reason}")
