"""A checkpoint as the library hands it out: its files listed, their content read when asked for."""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.entries import FileEntry
from holdfast.domain.paths import to_text
from holdfast.domain.snapshots import Artifact, WorkspaceSnapshot
from holdfast.engine.content import read_content
from holdfast.engine.listing import list_files
from holdfast.engine.vault import Vault


def snapshot_of(vault: Vault, checkpoint: Checkpoint) -> WorkspaceSnapshot:
    return WorkspaceSnapshot(
        id=checkpoint.id,
        timestamp=checkpoint.created_at,
        parent=checkpoint.parent,
        intent=checkpoint.intent,
        artifacts=tuple(
            _artifact(vault, path, entry)
            for path, entry in list_files(vault.load_tree, checkpoint.tree)
        ),
    )


def _artifact(vault: Vault, path: bytes, entry: FileEntry) -> Artifact:
    return Artifact(
        to_text(path),
        entry.digest.hex(),
        entry.size,
        entry.mode,
        lambda: read_content(vault.objects, entry),
    )
