"""How many checkpoints a session may take: by hand in all, and automatically in an hour.

A person who reaches the limit is told which setting it is. An automatic checkpoint is made all the
same, because the state of now is worth more than one of a minute ago: it takes the place of the
automatic one before it.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Checkpoint, Kind
from holdfast.domain.errors import LimitReached
from holdfast.domain.ids import SessionId
from holdfast.engine.vault import Vault

_HOUR_NS = 3600 * 1_000_000_000


def require_room(vault: Vault, session_id: SessionId, kind: Kind) -> Checkpoint | None:
    """`LimitReached` when a checkpoint by hand is one too many; the checkpoint whose place an
    automatic one has to take, if it is one too many."""
    if kind is Kind.MANUAL:
        most = vault.settings.max_manual_checkpoints
        if most and vault.catalog.count(session_id, (kind,)) >= most:
            raise LimitReached(
                f"the session has {most} checkpoints made by hand, "
                "as many as the setting max_manual_checkpoints allows",
                hint=f"allow more: holdfast config set max_manual_checkpoints {2 * most} "
                "(0: no limit); or drop some: holdfast delete REF",
            )
    elif kind in AUTOMATIC_KINDS:
        most = vault.settings.max_automatic_per_hour
        since_ns = vault.clock.now_ns() - _HOUR_NS
        if most and vault.catalog.count(session_id, AUTOMATIC_KINDS, since_ns=since_ns) >= most:
            return vault.catalog.newest_of(session_id, AUTOMATIC_KINDS)
    return None
