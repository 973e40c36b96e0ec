"""Checkpoints as the library hands them out: files listed, their content read when asked for.

Checkpoints of a history have most directories in common: each is listed once, and its artifacts
are the same objects in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join, to_text
from holdfast.domain.snapshots import Artifact, WorkspaceSnapshot
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault


def snapshots_of(vault: Vault, checkpoints: Iterable[Checkpoint]) -> list[WorkspaceSnapshot]:
    listing = _Listing(vault)
    return [
        WorkspaceSnapshot(
            id=checkpoint.id,
            timestamp=checkpoint.created_at,
            parent=checkpoint.parent,
            intent=checkpoint.intent,
            artifacts=listing.of(checkpoint.tree, b""),
        )
        for checkpoint in checkpoints
    ]


class _Listing:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[tuple[Digest, bytes], tuple[Artifact, ...]] = {}

    def of(self, tree: Digest, directory: bytes) -> tuple[Artifact, ...]:
        """Every file below a directory, in order."""
        known = self._known.get((tree, directory))
        if known is not None:
            return known
        found: list[Artifact] = []
        for name, entry in sorted(self._vault.load_tree(tree).by_name.items()):
            path = join(directory, name)
            if isinstance(entry, DirectoryEntry):
                found += self.of(entry.digest, path)
            elif isinstance(entry, FileEntry):
                found.append(self._artifact(path, entry))
        self._known[tree, directory] = tuple(found)
        return self._known[tree, directory]

    def _artifact(self, path: bytes, entry: FileEntry) -> Artifact:
        return Artifact(
            to_text(path),
            entry.digest.hex(),
            entry.size,
            entry.mode,
            lambda: read_content(self._vault.objects, entry),
        )
