"""Differences between checkpoints, or between a checkpoint and the current workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT
from holdfast.domain.paths import is_within
from holdfast.domain.trees.changes import Change
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.compare.tree_diff import WITHHELD as WITHHELD
from holdfast.engine.compare.tree_diff import IgnoredContent

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.engine.compare.content_diff import Content as Content
    from holdfast.engine.compare.content_diff import ContentDiff as ContentDiff
    from holdfast.engine.compare.notebooks import CellChange as CellChange
    from holdfast.engine.components.recorded import RecordedChanges as RecordedChanges
    from holdfast.engine.vault import Vault

WORKSPACE = "workspace"


class Diffs:
    """Differences in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine = opened.engine

    def changes(
        self, old: Checkpoint | None, new: Checkpoint | None, *, renames: bool = True
    ) -> list[Change]:
        """Changes between two checkpoints; None for `new` means the current workspace."""
        return self._engine.changes(old, new, renames=renames)

    def of(
        self,
        old: Checkpoint | None,
        new: Checkpoint | None,
        changes: Sequence[Change],
    ) -> Difference:
        """A `Difference` for changes that are already known."""
        return Difference(self._engine.vault, old, new, changes)

    def compare(
        self,
        old: Checkpoint | None,
        new: Checkpoint | None,
        *,
        paths: Sequence[bytes] = (),
        context: int = DEFAULT_CONTEXT,
        path_hint: str = "",
    ) -> Difference:
        """Changes to these paths, or to all. Raises `NotFound`, with `path_hint`, for a path that
        neither side has."""
        from holdfast.engine.compare.tree_diff import left_out_changes, require_known_paths
        from holdfast.engine.restore.plan import read_report

        engine = self._engine
        scan = engine.scan() if new is None else None
        found = engine.changes_in(scan, old) if scan else engine.changes(old, new)
        changes = [change for change in found if _selected(change, paths)]
        if not changes:
            require_known_paths(engine.vault, paths, old, new, scan, hint=path_hint)
        left_out = left_out_changes(
            changes,
            lambda: read_report(engine.vault, old) if old else (),
            lambda: scan.skipped if scan else read_report(engine.vault, new) if new else (),
        )
        recorded: Sequence[RecordedChanges] = ()
        if not paths and old is not None and old.components is not None:
            from holdfast.engine.components.recorded import recorded_changes

            recorded = recorded_changes(engine.vault, old, new)
        return Difference(engine.vault, old, new, changes, context, left_out, recorded)


class Difference:
    """Changes between a checkpoint (or nothing) and another one (or the workspace).

    `left_out` has paths that only one side captured, with the other side's reason. `recorded` lists
    differences other than files that are never restored, such as tool versions. Contents are read
    on demand; content of ignored files is withheld."""

    def __init__(
        self,
        vault: Vault,
        old: Checkpoint | None,
        new: Checkpoint | None,
        changes: Sequence[Change],
        context: int = DEFAULT_CONTEXT,
        left_out: Mapping[bytes, str] | None = None,
        recorded: Sequence[RecordedChanges] = (),
    ) -> None:
        self._vault, self._ignored = vault, IgnoredContent(vault)
        self.old, self.new, self.changes = old, new, changes
        self.context, self.left_out, self.recorded = context, left_out or {}, recorded

    @property
    def new_label(self) -> str:
        return self.new.id if self.new is not None else WORKSPACE

    @property
    def is_across_sessions(self) -> bool:
        old, new = self.old, self.new
        return old is not None and new is not None and old.session_id != new.session_id

    def has_numbers(self, change: Change) -> bool:
        """Whether single hunks of this change can be restored."""
        return (
            self.new is None
            and isinstance(change.old, FileEntry)
            and isinstance(change.new, FileEntry)
            and change.old_path is None
        )

    def content(self, change: Change) -> ContentDiff | None:
        """The content difference; None if there is no content to compare, as for directories and
        mode changes."""
        from holdfast.engine.compare.changed_content import compare_change

        if change.is_directory:
            return None
        if isinstance(change.old, FileEntry) and change.old.same_content(change.new):
            return None
        return compare_change(
            self._vault,
            change,
            self._ignored,
            new_in_workspace=self.new is None,
            context=self.context,
        )

    def contents(self, change: Change) -> tuple[Content | None, Content | None]:
        """The full bytes of both sides."""
        from holdfast.engine.compare.changed_content import contents_of

        return contents_of(self._vault, change, new_in_workspace=self.new is None)


def _selected(change: Change, paths: Sequence[bytes]) -> bool:
    ends = (change.path,) if change.old_path is None else (change.path, change.old_path)
    return not paths or any(is_within(end, path) for end in ends for path in paths)
