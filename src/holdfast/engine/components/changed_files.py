"""Which files changed since components were captured, and which files a scan saw.

Components use what the scan saw instead of asking the system again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from holdfast.domain.checkpoints import Checkpoint, Kind, SkipReason
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees.changes import tree_changes
from holdfast.engine.scan.directory_state import (
    BEING_WRITTEN,
    NUMBERS,
    UNSETTLED,
    DirectoryState,
)
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.scan.state_changes import changed_paths
from holdfast.engine.vault import Vault
from holdfast.ports.component import SeenDirectory, SeenFile

_MOST_CHANGED = 2_000
_NO_CONTENT = (SkipReason.IGNORED, SkipReason.GIT_DATA, SkipReason.OWN_DATA)
"""Left out, and nothing that a component would look for: files that git tracks are not ignored."""


def changed_since(vault: Vault, before: Checkpoint | None, scan: Scan) -> list[bytes] | None:
    """Paths that differ from the files that the checkpoint's components were captured with, and
    those that neither has; None where that is not known, and where there are very many."""
    tree = None if before is None else _captured_with(vault, before)
    if tree is None:
        return None
    left_out = (
        s.path
        for s in scan.skipped
        if s.reason not in _NO_CONTENT and not s.reason.content_is_captured
    )
    found: list[bytes] = []
    try:
        for path in chain(left_out, _changed(vault, tree, scan)):
            found.append(path)
            if len(found) > _MOST_CHANGED:
                return None
    except StoreDamaged:
        return None
    return found


def _changed(vault: Vault, tree: Digest, scan: Scan) -> Iterable[bytes]:
    if scan.previous is not None and scan.previous.digest == tree:
        paths = changed_paths(scan.previous, scan.root)
        if paths is not None:
            return paths
    return _changed_in_trees(vault, tree, scan)


def _changed_in_trees(vault: Vault, tree: Digest, scan: Scan) -> Iterator[bytes]:
    for change in tree_changes(vault.load_tree, tree, scan.tree):
        yield change.path


def _captured_with(vault: Vault, checkpoint: Checkpoint) -> Digest | None:
    """The files that the components belong to. The record of a restore has its own files, and says
    of components that were not restored what was saved just before it. None where what was saved
    was saved a second time, with what had changed meanwhile, or something else came between."""
    if not checkpoint.kind.is_record:
        return checkpoint.tree
    if checkpoint.kind is not Kind.RESTORE or checkpoint.components is None:
        return None
    newest = vault.catalog.history(None, limit=3, records=True)
    kinds = [one.kind for one in newest]
    if kinds[:2] != [Kind.RESTORE, Kind.SAFETY] or kinds[2:] == [Kind.SAFETY]:
        return None
    record, safety = newest[:2]
    if record.id != checkpoint.id or record.components != safety.components:
        return None
    return safety.tree


def seen_directories(root: DirectoryState) -> Iterator[SeenDirectory]:
    waiting = [(b"", root)]
    while waiting:
        path, state = waiting.pop()
        if state.names:
            yield SeenDirectory(path, (state.names, state.rows), partial(_seen_files, state))
        for name, child in state.children.items():
            if isinstance(child, DirectoryState):  # else nothing of it was looked at
                waiting.append((join(path, name), child))


def _seen_files(state: DirectoryState) -> dict[bytes, SeenFile]:
    rows = NUMBERS.iter_unpack(state.rows)
    return {
        name: SeenFile(*row[1:5])
        for name, row in zip(state.file_names(), rows, strict=True)
        if not row[5] & (UNSETTLED | BEING_WRITTEN)
    }
