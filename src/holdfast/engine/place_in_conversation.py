"""Where in the conversation a checkpoint is made, when nobody says where."""

from __future__ import annotations

from holdfast.domain.checkpoints import Position
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace


def placed(
    vault: Vault, session_id: SessionId, position: Position
) -> tuple[Position, tuple[str, ...]]:
    """The position, at the last message there is when nobody said which. A story that cannot be
    read is no reason not to save: then there are warnings."""
    if position.message_index is not None or not vault.access.has_story():
        return position, ()
    try:
        count = vault.story.message_count(session_id)
    except StoreDamaged as error:
        why = f"the checkpoint has no place in the conversation: {error.message}"
        return position, (f"{why} (run: holdfast repair)",)
    return replace(position, message_index=count - 1 if count else None), ()
