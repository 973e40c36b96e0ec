"""How much a session holds, and how much the store of its workspace does.

Deduplication is counted by whole files, in the order in which states were saved: a file whose
content any earlier state had, in any session, was in the store already. Subtrees that an earlier
state had are not read again.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest, SessionId
from holdfast.engine.vault import Vault


def session_statistics(vault: Vault, session_id: SessionId) -> dict[str, int]:
    counts = vault.catalog.counts(session_id)
    return {
        "checkpoints": counts.checkpoints,
        "restores": counts.restores,
        "bytes_stored": vault.objects.size_bytes(),
        "bytes_deduped": _bytes_deduped(vault, session_id),
        "snapshots": counts.checkpoints + counts.records,
        "content_blobs": vault.objects.count(),
    }


def _bytes_deduped(vault: Vault, session_id: SessionId) -> int:
    """Damaged states count nothing; nor does the record of a restore, which saves no file."""
    newest = vault.catalog.history(session_id, limit=1, records=True)
    if not newest:
        return 0
    known: set[Digest] = set()
    deduped = 0
    for one in vault.catalog.roots():
        if one.sequence > newest[0].sequence:
            break
        if one.kind is Kind.RESTORE:
            continue
        try:
            new = _new_bytes(vault, one.tree, known)
        except StoreDamaged:
            continue
        if one.session_id == session_id:
            deduped += max(one.size_bytes - new, 0)
    return deduped


def _new_bytes(vault: Vault, tree: Digest, known: set[Digest]) -> int:
    """The bytes of files below a tree that are not known yet; from then on they are."""
    if tree in known:
        return 0
    found, new = vault.load_tree(tree), 0
    for directory in found.directories:
        new += _new_bytes(vault, directory.digest, known)
    for file in found.files:
        if file.digest not in known:
            known.add(file.digest)
            new += file.size
    known.add(tree)
    return new
