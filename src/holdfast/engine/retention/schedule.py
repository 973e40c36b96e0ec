"""When a store is to be cleaned up without being asked, and up to which time ages are counted.

Once a day. Ages are counted up to the cleanup before: a clock that is far ahead for a while makes
everything look old, and costs a state only if it still is so a day later.
"""

from __future__ import annotations

from holdfast.engine.vault import Vault

CLEANUP_EVERY_NS = 24 * 3600 * 1_000_000_000


def is_cleanup_due(vault: Vault) -> bool:
    """Whether the last one was a day ago; before the first, whether any checkpoint is so old."""
    last_ns = vault.space.read_upkeep().get("cleaned_ns")
    if last_ns is None:
        oldest = vault.catalog.checkpoints_after(0, 1)
        last_ns = oldest[0].created_at_ns if oldest else vault.clock.now_ns()
    return not 0 <= vault.clock.now_ns() - last_ns < CLEANUP_EVERY_NS


def confirmed_now_ns(vault: Vault) -> int:
    """The time of the last cleanup, if that was at least a day ago; else a time at which nothing
    was old."""
    last_ns = vault.space.read_upkeep().get("cleaned_ns", 0)
    return last_ns if vault.clock.now_ns() - last_ns >= CLEANUP_EVERY_NS else 0
