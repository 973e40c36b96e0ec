"""A session's conversation: messages, annotations and notices; and its agents' states."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import UsageError
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import NoticeClaim
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import CheckpointId, SessionId
    from holdfast.domain.intent import ToolCall
    from holdfast.domain.story import Annotation, Message
    from holdfast.engine.conversation.transcript_import import TranscriptImport

_LONGEST_ID = 128
_LARGEST_STATE_BYTES = 16 << 20
_MOST_AGENTS = 1_000


class ConversationAround(NamedTuple):
    """The message and the annotations of a checkpoint."""

    message: Message | None
    annotations: Sequence[Annotation]


class Conversation:
    """The conversation of a session in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def add_message(
        self,
        session_id: SessionId,
        role: str,
        content: str,
        *,
        tool_calls: Iterable[ToolCall] = (),
        at: datetime | None = None,
    ) -> Message:
        """Add a message; durable when this returns."""
        from holdfast.engine.conversation.conversation import add_message

        return add_message(self._vault, session_id, role, content, tool_calls=tool_calls, at=at)

    def user_message(self, session_id: SessionId, text: str) -> Message:
        """Save the workspace, then record the user's message."""
        from holdfast.engine.conversation.message_checkpoints import user_message
        from holdfast.engine.edits.open_activities import inside

        return user_message(self._engine, session_id, text, inside=inside(self._vault))

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> list[Message]:
        """Messages by index. `rolled_back_by` is the restore that rolled a message back.
        `checkpoint` is the one made before a user's message."""
        from holdfast.engine.conversation.conversation import messages
        from holdfast.engine.conversation.message_checkpoints import with_checkpoints

        found = messages(self._vault, session_id, first=first, limit=limit)
        return with_checkpoints(self._vault, session_id, found)

    def around(self, checkpoint: Checkpoint) -> ConversationAround:
        """The message that a checkpoint belongs to, and its annotations. Tool results and calls
        without words belong to the user's message before them. Both are empty if the conversation
        is damaged; `check` reports that."""
        from holdfast.engine.conversation.conversation import BestEffortStory

        story, message = BestEffortStory(self._vault), None
        if checkpoint.message_index is not None:
            message = story.spoken(checkpoint.session_id, checkpoint.message_index)
        return ConversationAround(message, story.notes(checkpoint))

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
        """Add a note to a checkpoint. With `number`, replace that note; earlier revisions are
        kept."""
        from holdfast.engine.history.annotations import annotate

        return annotate(self._vault, session_id, reference, text, author=author, number=number)

    def annotations(
        self, session_id: SessionId, reference: str | None = None, *, revisions: bool = False
    ) -> list[Annotation]:
        """Notes of one checkpoint or of the whole session; with `revisions`, including earlier
        ones."""
        from holdfast.engine.history.annotations import annotations_of

        return list(annotations_of(self._vault, session_id, reference, revisions=revisions))

    def take_notices(
        self, session_id: SessionId, answered: Collection[CheckpointId] = ()
    ) -> list[str]:
        """Notices about restores since the last call, each one once. If the restore record is
        `answered`, only what the answer did not contain."""
        from holdfast.engine.conversation.notices import take_notices

        return take_notices(self._vault, session_id, answered=answered)

    def claim_notices(
        self, session_id: SessionId, answered: Collection[CheckpointId] = ()
    ) -> NoticeClaim | None:
        """Like `take_notices`, for an answer that may not reach the agent. Notices stay open until
        `settle_notices` confirms delivery."""
        from holdfast.engine.conversation.notices import claim_notices

        return claim_notices(self._vault, session_id, answered=answered)

    def settle_notices(self, claim: NoticeClaim, *, delivered: bool) -> None:
        from holdfast.engine.conversation.notices import settle_claim

        settle_claim(self._vault, claim, delivered=delivered)


class AgentStates:
    """Agent states in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._store = opened.store
        self._states = opened.store.agent_states

    def set(self, session_id: SessionId, agent_id: str, state: Mapping[str, Any] | None) -> None:
        """Set an agent's state, or remove it with None; durable when this returns."""
        text = _checked(agent_id, state)
        with self._store.hold():
            all_states = {session: dict(agents) for session, agents in self._states.load().items()}
            own = all_states.setdefault(session_id, {})
            if text is None:
                own.pop(agent_id, None)
            else:
                own[agent_id] = json.loads(text)
            if not own:
                del all_states[session_id]
            if sum(map(len, all_states.values())) > _MOST_AGENTS:
                raise UsageError(
                    f"there are already {_MOST_AGENTS} agents", hint="remove some first"
                )
            self._states.replace(all_states)

    def forget(self, session_id: SessionId) -> None:
        """Remove the states of a deleted session."""
        with self._store.hold():
            if self._states.exist() and session_id in (known := self._states.load()):
                kept = {name: states for name, states in known.items() if name != session_id}
                self._states.replace(kept)

    def of(self, session_id: SessionId) -> dict[str, dict[str, Any]]:
        """The last state that each agent set, or that a restore brought back."""
        own = self._states.load().get(session_id, {})
        return {agent: dict(state) for agent, state in own.items()}


def _checked(agent_id: str, state: Mapping[str, Any] | None) -> str | None:
    if not isinstance(agent_id, str) or not agent_id.strip() or not agent_id.isprintable():
        raise UsageError("an agent's id must be a printable, non-empty string")
    if len(agent_id) > _LONGEST_ID:
        raise UsageError(f"an agent's id has at most {_LONGEST_ID} characters")
    if state is None:
        return None
    if not isinstance(state, Mapping):
        raise UsageError("an agent's state must be a mapping that JSON can represent")
    try:
        text = json.dumps(dict(state), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the state of {agent_id} cannot be represented in JSON: {error}"
        ) from None
    if len(text) > _LARGEST_STATE_BYTES:
        raise UsageError(
            f"the state of {agent_id} takes {len(text):,} bytes",
            hint="keep large data in files, and list them in agent_state",
        )
    return text
