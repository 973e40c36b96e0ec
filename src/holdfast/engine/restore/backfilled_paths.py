"""Paths that a restore's target left out, from the first later checkpoint that has them.

    a turn begins, `.env` is ignored → a tool names it: captured → the tool changes it → undo --turn

The target does not have such a file, but it existed, and its content is saved. A directory that was
left out as a whole may also contain new files. If a tool call named a file before any checkpoint
had it, the call created it, and it is not restored.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.paths import basename, from_text, parent
from holdfast.domain.trees.changes import replace_entries, tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace


def first_captured(
    vault: Vault, target: Checkpoint, since: Iterable[Checkpoint]
) -> tuple[tuple[bytes, Entry], ...]:
    """Paths that `target` left out, each from the first checkpoint in `since` that has it."""
    found: dict[bytes, Entry] = {}
    left_out: set[bytes] | None = None
    named: set[bytes] = set()
    report, tree = target.report, target.tree
    for checkpoint in since:
        if checkpoint.report == report or checkpoint.tree == tree:
            named |= _names_in_calls(checkpoint)
            continue
        report, tree = checkpoint.report, checkpoint.tree
        if left_out is None:
            from holdfast.engine.restore.plan import read_report  # late: few need it

            skips = read_report(vault, target)
            left_out = {skip.path for skip in skips if not skip.reason.content_is_captured}
        for change in tree_changes(vault.load_tree, target.tree, tree) if left_out else ():
            entry = change.new
            if change.old is not None or entry is None or isinstance(entry, DirectoryEntry):
                continue
            if change.path in left_out or (
                basename(change.path) not in named and _is_below(change.path, left_out)
            ):
                found.setdefault(change.path, entry)
        named |= _names_in_calls(checkpoint)
    return tuple(sorted(found.items()))


def _names_in_calls(checkpoint: Checkpoint) -> set[bytes]:
    """The file names in the tool call before which the checkpoint was made."""
    return {
        basename(from_text(str(path)).rstrip(b"/"))
        for call in checkpoint.intent.tool_calls
        if isinstance(call, Mapping) and isinstance(call.get("paths"), (list, tuple))
        for path in call["paths"]
    }


def _is_below(path: bytes, directories: Container[bytes]) -> bool:
    while path := parent(path):
        if path in directories:
            return True
    return False


def with_goal(vault: Vault, scan: Scan, request: RestoreRequest) -> tuple[Scan, RestoreRequest]:
    """The request with the tree to reach, for a plan; stores nothing."""
    if not request.added:
        return scan, request
    tree, encoded = replace_entries(vault.load_tree, request.target.tree, dict(request.added))
    return replace(scan, encoded=scan.encoded | encoded), replace(request, tree=tree)
