"""The safety checkpoint of a restore: the present state is saved, and the plan is made from it.

Both are repeated when unreadable paths could be opened up, and when a database transaction that was
in the way has ended; the wait is bounded.
"""

from __future__ import annotations

from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.trees.changes import NewMode
from holdfast.engine.restore.conflicts import amended_tree
from holdfast.engine.restore.database_files import no_transaction
from holdfast.engine.restore.plan import make_plan
from holdfast.engine.restore.records import RestoreRequest, save_present
from holdfast.engine.restore.unlock import Unlocked, locked_paths
from holdfast.engine.save.save import SavedTree
from holdfast.engine.scan.scanner import Scanner
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

_WAITS = 5
"""Each lasts two seconds at most."""


def save_and_plan(
    vault: Vault,
    scanner: Scanner,
    request: RestoreRequest,
    unlocked: Unlocked,
) -> tuple[SavedTree, RestoreRequest, RestorePlan]:
    """Called with the store's lock held."""
    if request.added:
        tree = amended_tree(vault, request.target.tree, dict(request.added))
        request = replace(request, tree=tree)
    saved = save_present(vault, scanner, request)
    if request.hunks is not None:
        from holdfast.engine.restore.hunks import store_and_plan_hunks

        return saved, *store_and_plan_hunks(vault, saved.scan, request)
    plan = make_plan(vault, saved.scan, request)
    for _ in range(_WAITS):
        if not plan.under_way:
            break
        with no_transaction(vault, plan.under_way) as quiet:
            if quiet:
                saved = save_present(vault, scanner, request)
                plan = make_plan(vault, saved.scan, request)
    if not plan.blocked or not unlocked.unlock(locked_paths(saved.scan, plan)):
        return saved, request, plan
    saved = save_present(vault, scanner, request)
    modes = {path: NewMode(mode) for path, mode in unlocked.modes.items()}
    saved = saved.with_tree(amended_tree(vault, saved.scan.tree, modes))
    plan = make_plan(vault, saved.scan, request)
    return saved, request, plan
