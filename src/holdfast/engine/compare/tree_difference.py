"""What differs between a checkpoint and another tree, as people see it."""

from __future__ import annotations

from holdfast.domain.changes import (
    Change,
    TreeLoader,
    tree_changes,
    visible_changes,
    with_renames,
)
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import Digest


def tree_difference(
    load: TreeLoader, old: Checkpoint | None, new: Digest, *, renames: bool
) -> list[Change]:
    """Without `old`, everything is new; with `renames`, a file that moved is one change."""
    changes = list(visible_changes(tree_changes(load, old.tree if old else None, new)))
    return with_renames(changes) if renames else changes
