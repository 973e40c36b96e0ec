"""How many checkpoints a session may take by hand, if its owner set a limit.

No limit by default, and none at all for automatic checkpoints: a rate never costs a state.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import LimitReached
from holdfast.domain.ids import SessionId
from holdfast.domain.sizes import count_words
from holdfast.engine.vault import Vault


def require_room(vault: Vault, session_id: SessionId, kind: Kind) -> None:
    """`LimitReached` when a manual checkpoint is one more than the owner of the setting allows."""
    most = vault.settings.max_manual_checkpoints
    if kind is not Kind.MANUAL or not most:
        return
    if vault.catalog.count(session_id, (kind,)) >= most:
        raise LimitReached(
            f"the session has {count_words(most, 'manual checkpoint')}, "
            "as many as the setting max_manual_checkpoints allows",
            hint=f"allow more: holdfast config set max_manual_checkpoints {2 * most} "
            "(0: no limit); or delete some: holdfast delete REF",
        )
