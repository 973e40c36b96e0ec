"""Which paths differ between a checkpoint and another tree, and whose content is withheld.

A path that neither side has is an error, not an empty difference. Ignored content is withheld even
if it was captured: a diff shows only its sizes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.ids import Digest, short
from holdfast.domain.paths import MARKER_DIRECTORY, is_within, parent, to_text, typed
from holdfast.domain.trees.changes import (
    Change,
    ChangeType,
    TreeLoader,
    tree_changes,
    visible_changes,
    with_renames,
)
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import entry_at, loader_for
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.scan.ignore_check import IgnoreRules

WITHHELD = "content withheld: the file is ignored by your rules"
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
    old: Checkpoint | None,
    new: Checkpoint | None,
    scan: Scan | None,
    *,
    hint: str,
) -> None:
    """`scan` is the workspace, if that is one of the sides; `hint` says how to write paths."""
    trees = [side.tree for side in (old, new, scan) if side is not None]
    load = loader_for(vault, scan) if scan else vault.load_tree
    for path in paths:
        if any(entry_at(load, tree, path) is not None for tree in trees):
            continue
        for skip in scan.skipped if scan else ():
            if is_within(path, skip.path):
                raise NotFound(
                    f"{to_text(path)!r} is on neither side: {skip.describe()}",
                    hint="list everything that is left out: holdfast status --skipped",
                )
        raise NotFound(f"{to_text(path)!r} is on neither side of the comparison", hint=hint)


def left_out_changes(changes: Sequence[Change], then: Report, now: Report) -> dict[bytes, str]:
    """Paths that only one side captured, with the other side's reason: a rule, their size, or a
    failed read. They look added or removed but are not. A report is loaded only if it can
    matter."""
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


class IgnoredContent:
    """The current rules, without includes and named paths."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._rules: IgnoreRules | None = None

    def rule(self, path: bytes) -> str | None:
        """The rule that ignores a path, whether or not the path is captured."""
        if self._rules is None:
            self._rules = self._made()
        return _rule(self._rules, path)

    def is_withheld(self, change: Change) -> bool:
        ends = (change.path,) if change.old_path is None else (change.path, change.old_path)
        return any(self.rule(end) is not None for end in ends)

    def require_shown(self, path: bytes, at: Checkpoint | None = None) -> None:
        """`Refused` for ignored content in the workspace or in a checkpoint."""
        rule = self.rule(path)
        if rule is None:
            return
        if at is None and self._is_left_out(path):
            raise Refused(
                f"{to_text(path)!r} is left out of checkpoints; {WITHHELD} ({rule})",
                hint="to capture it, add it to the setting include",
            )
        reference = "REF" if at is None else short(at.id)
        raise Refused(
            f"{to_text(path)!r}: {WITHHELD} ({rule})",
            hint=f"to restore the file: holdfast restore {reference} {typed(path)}",
        )

    def _is_left_out(self, path: bytes) -> bool:
        from holdfast.engine.save.workspace_tree import capture_policy
        from holdfast.engine.scan.ignore_check import IgnoreRules

        vault = self._vault
        return (
            _rule(IgnoreRules(vault.fs, capture_policy(vault), vault.open_root), path) is not None
        )

    def _made(self) -> IgnoreRules:
        from holdfast.engine.scan.ignore_check import IgnoreRules
        from holdfast.engine.scan.policy import CapturePolicy
        from holdfast.engine.scan.repositories import ExemptPaths

        vault = self._vault
        settings = replace(vault.settings, include=())
        tracked = ExemptPaths(vault.fs, os.fsencode(vault.workspace))
        own_data = vault.files.path_inside_workspace()
        policy = CapturePolicy(settings, vault.workspace, own_data=own_data)
        return IgnoreRules(vault.fs, policy.with_exceptions(tracked), vault.open_root)


def _rule(rules: IgnoreRules, path: bytes) -> str | None:
    if is_within(path, MARKER_DIRECTORY):
        return "Holdfast's own data"
    try:
        return rules.rule(path)
    except OSError:
        return None  # the rules are unreadable: reading the file reports it
