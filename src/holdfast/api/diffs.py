"""Differences between checkpoints, or between a checkpoint and the workspace as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.trees.changes import Change


class Diffs:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine = opened.engine

    def changes(
        self, old: Checkpoint | None, new: Checkpoint | None, *, renames: bool = True
    ) -> list[Change]:
        """Between two checkpoints; None for `new` means the workspace as it is now."""
        return self._engine.changes(old, new, renames=renames)
