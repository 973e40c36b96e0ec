"""The conversation of a session: its messages, annotations of its checkpoints, and notices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import NoticeClaim
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import CheckpointId, SessionId
    from holdfast.domain.intent import ToolCall
    from holdfast.domain.story import Annotation, Message
    from holdfast.engine.conversation.transcript_import import TranscriptImport


class ConversationAround(NamedTuple):
    """What was said with a checkpoint, and about it."""

    message: Message | None
    annotations: Sequence[Annotation]


class Conversation:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._vault = opened.engine.vault

    def add_message(
        self,
        session_id: SessionId,
        role: str,
        content: str,
        *,
        tool_calls: Iterable[ToolCall] = (),
        at: datetime | None = None,
    ) -> Message:
        """Durable when it returns."""
        from holdfast.engine.conversation.conversation import add_message

        return add_message(self._vault, session_id, role, content, tool_calls=tool_calls, at=at)

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> list[Message]:
        """By index; `rolled_back_by` names the restore that took a message back."""
        from holdfast.engine.conversation.conversation import messages

        return list(messages(self._vault, session_id, first=first, limit=limit))

    def around(self, checkpoint: Checkpoint) -> ConversationAround:
        """The message that a checkpoint belongs to, and its annotations. None and none where the
        conversation is damaged: `check` reports that."""
        from holdfast.engine.conversation.conversation import BestEffortStory

        told, message = BestEffortStory(self._vault), None
        if checkpoint.message_index is not None:
            message = told.message(checkpoint.session_id, checkpoint.message_index)
        return ConversationAround(message, told.notes(checkpoint))

    def import_transcript(self, session_id: SessionId, path: Path, agent: str) -> TranscriptImport:
        """Add the new messages of an agent's transcript."""
        from holdfast.bootstrap.components import transcript_reader
        from holdfast.engine.conversation.transcript_import import import_transcript

        message_of = transcript_reader(agent)
        return import_transcript(self._vault, session_id, path, agent, message_of)

    def annotate(
        self,
        session_id: SessionId,
        reference: str,
        text: str,
        author: str | None = None,
        *,
        number: int | None = None,
    ) -> Annotation:
        """Write something about a checkpoint; `number` is an annotation that this one replaces. Its
        earlier words are kept."""
        from holdfast.engine.history.annotations import annotate

        return annotate(self._vault, session_id, reference, text, author=author, number=number)

    def annotations(
        self, session_id: SessionId, reference: str | None = None, *, revisions: bool = False
    ) -> list[Annotation]:
        """Of one checkpoint, or of the whole session; with `revisions`, all earlier words too."""
        from holdfast.engine.history.annotations import annotations_of

        return list(annotations_of(self._vault, session_id, reference, revisions=revisions))

    def take_notices(
        self, session_id: SessionId, answered: Collection[CheckpointId] = ()
    ) -> list[str]:
        """What to tell the agent about restores since it last asked; each notice once. Of a restore
        whose record is `answered`, only the rest."""
        from holdfast.engine.conversation.notices import take_notices

        return take_notices(self._vault, session_id, answered=answered)

    def claim_notices(
        self, session_id: SessionId, answered: Collection[CheckpointId] = ()
    ) -> NoticeClaim | None:
        """The same for an answer that may not reach the agent: they stay open until
        `settle_notices` says that they were delivered."""
        from holdfast.engine.conversation.notices import claim_notices

        return claim_notices(self._vault, session_id, answered=answered)

    def settle_notices(self, claim: NoticeClaim, *, delivered: bool) -> None:
        from holdfast.engine.conversation.notices import settle_claim

        settle_claim(self._vault, claim, told=delivered)
