"""What a session offers around its checkpoints: its conversation, annotations, notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from holdfast.domain.ids import SessionId
    from holdfast.domain.intent import ToolCall
    from holdfast.domain.messages import Annotation, Message
    from holdfast.domain.sessions import Session
    from holdfast.engine.engine import Engine
    from holdfast.engine.transcript_import import TranscriptImport
    from holdfast.engine.transcripts.reading import TranscriptFormat


class Conversing:
    """Part of `SessionCheckpointer`."""

    _engine: Engine
    _id: SessionId

    if TYPE_CHECKING:  # as the class that this is part of has it

        def __init__(
            self,
            workspace: Path,
            session_id: str,
            file_filter: Callable[[Path], bool] | None = None,
        ) -> None: ...

        def close(self) -> None: ...

    @classmethod
    def start(
        cls,
        workspace: Path,
        session_id: str | None = None,
        *,
        title: str | None = None,
        agent: str | None = None,
        file_filter: Callable[[Path], bool] | None = None,
    ) -> Self:
        """Begin a session with a checkpoint of how things are, or resume one that was cut off."""
        from holdfast.adapters.local.system import RandomIds
        from holdfast.engine.sessions import start

        name = session_id or f"session-{RandomIds.new_id()[:10]}"
        session = cls(workspace, name, file_filter)
        try:
            start(session._engine, session._id, title=title, agent=agent)
        except BaseException:
            session.close()
            raise
        return session

    def add_message(
        self,
        role: str,
        content: str,
        *,
        tool_calls: Iterable[ToolCall] = (),
        at: datetime | None = None,
    ) -> Message:
        """Record a message (role: user, assistant, system or tool); durable when it returns."""
        from holdfast.engine.conversation import add_message

        return add_message(
            self._engine.vault, self._id, role, content, tool_calls=tool_calls, at=at
        )

    def messages(self, *, first: int = 0, limit: int | None = None) -> list[Message]:
        """The conversation by index; `rolled_back_by` tells which restore took a message back."""
        from holdfast.engine.conversation import messages

        return list(messages(self._engine.vault, self._id, first=first, limit=limit))

    def import_transcript(
        self, path: Path, agent: TranscriptFormat = "claude-code"
    ) -> TranscriptImport:
        """Read what is new in an agent's transcript into the conversation."""
        from holdfast.engine.transcript_import import import_transcript

        return import_transcript(self._engine.vault, self._id, path, agent)

    def annotate(
        self, reference: str, text: str, author: str | None = None, *, number: int | None = None
    ) -> Annotation:
        """Write something about a checkpoint; with `number`, put it in place of that annotation,
        whose earlier words are kept."""
        from holdfast.engine.annotating import annotate

        return annotate(self._engine.vault, self._id, reference, text, author=author, number=number)

    def annotations(
        self, reference: str | None = None, *, revisions: bool = False
    ) -> list[Annotation]:
        """Of one checkpoint, or of the whole session; with `revisions`, all earlier words too."""
        from holdfast.engine.annotating import annotations_of

        return list(annotations_of(self._engine.vault, self._id, reference, revisions=revisions))

    def take_notices(self) -> list[str]:
        """What the agent has to be told about restores since it was last told; each once."""
        from holdfast.engine.notices import take_notices

        return take_notices(self._engine.vault, self._id)

    @property
    def status(self) -> str | None:
        """`active`, `ended` or `archived`; None before the first checkpoint. Without its agent's
        process it has ended."""
        from holdfast.engine.session_overview import effective_status

        session = self._engine.vault.catalog.session(self._id)
        return None if session is None else effective_status(self._engine.vault, session).value

    def end(self) -> Session:
        """End the session: it stays listed and restorable. It is active again when it is started
        again, or as soon as a checkpoint or a message is added to it."""
        from holdfast.engine.sessions import end

        return end(self._engine, self._id)
