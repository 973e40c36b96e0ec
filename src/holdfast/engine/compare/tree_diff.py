"""What differs between a checkpoint and another tree, as people see it.

A path that neither side has is a mistake, not an empty difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.errors import NotFound
from holdfast.domain.ids import Digest
from holdfast.domain.paths import is_within, parent, to_text
from holdfast.domain.trees.changes import (
    Change,
    ChangeType,
    TreeLoader,
    tree_changes,
    visible_changes,
    with_renames,
)
from holdfast.engine.restore.plan import loader_for
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault

Report = Callable[[], Iterable[Skipped]]


def tree_difference(
    load: TreeLoader, old: Checkpoint | None, new: Digest, *, renames: bool
) -> list[Change]:
    """Without `old`, everything is new; with `renames`, a file that moved is one change."""
    changes = list(visible_changes(tree_changes(load, old.tree if old else None, new)))
    return with_renames(changes) if renames else changes


def require_known_paths(
    vault: Vault,
    paths: Sequence[bytes],
    old: Checkpoint,
    new: Checkpoint | None,
    scan: Scan | None,
    *,
    hint: str,
) -> None:
    """`scan` is the workspace, where that is one of the sides; `hint` tells how paths are given."""
    trees = [old.tree, *([new.tree] if new else []), *([scan.tree] if scan else [])]
    load = loader_for(vault, scan) if scan else vault.load_tree
    for path in paths:
        if any(entry_at(load, tree, path) is not None for tree in trees):
            continue
        for skip in scan.skipped if scan else ():
            if is_within(path, skip.path):
                raise NotFound(
                    f"{to_text(path)!r} is in neither side: {skip.describe()}",
                    hint="see everything that is left out: holdfast status --skipped",
                )
        raise NotFound(f"{to_text(path)!r} is in neither side of the comparison", hint=hint)


def left_out_changes(changes: Sequence[Change], then: Report, now: Report) -> dict[bytes, str]:
    """Paths that only one side captured, with the reason of the other: it left them out by a rule,
    for their size, or could not read them. They look added or removed and are not. A report is
    asked for only where it can matter."""
    found: dict[bytes, str] = {}
    for kind, report in ((ChangeType.REMOVED, now), (ChangeType.ADDED, then)):
        paths = [change.path for change in changes if change.type is kind]
        if not paths:
            continue
        reasons = {s.path: s.describe() for s in report() if not s.reason.content_is_captured}
        for path in paths:
            above = path
            while above and above not in reasons:
                above = parent(above)
            if above:
                found[path] = reasons[above]
    return found
