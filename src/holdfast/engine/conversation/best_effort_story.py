"""Reading the story where it is optional: a damaged one says nothing, and the trouble is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.messages import Annotation, Message
from holdfast.engine.vault import Vault
from holdfast.ports.story import StoryReader

T = TypeVar("T")


class BestEffortStory:
    """What the story says, nothing when there is none. `trouble` tells that it could not be read;
    it is then not asked again."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.trouble: str | None = None

    def __call__(self, ask: Callable[[StoryReader], Sequence[T]]) -> Sequence[T]:
        if self.trouble is not None or not self._vault.has_story():
            return ()
        try:
            return ask(self._vault.story)
        except StoreDamaged as error:
            self.trouble = error.message
            return ()

    def message(self, session_id: SessionId, index: int) -> Message | None:
        found = self(lambda story: story.messages(session_id, first=index, limit=1))
        return found[0] if found and found[0].index == index else None

    def notes(self, checkpoint: Checkpoint) -> Sequence[Annotation]:
        """The annotations of a checkpoint as they are now."""
        return self(lambda story: story.annotations(checkpoint.session_id, checkpoint.id))
