"""When a store is to be cleaned up without being asked: once a day."""

from __future__ import annotations

from holdfast.engine.vault import Vault

CLEANUP_EVERY_NS = 24 * 3600 * 1_000_000_000


def is_cleanup_due(vault: Vault) -> bool:
    """Whether the last one was a day ago; before the first, whether any checkpoint is so old."""
    last_ns = vault.access.read_upkeep().get("cleaned_ns")
    if last_ns is None:
        oldest = vault.catalog.checkpoints_after(0, 1)
        last_ns = oldest[0].created_at_ns if oldest else vault.clock.now_ns()
    return not 0 <= vault.clock.now_ns() - last_ns < CLEANUP_EVERY_NS
