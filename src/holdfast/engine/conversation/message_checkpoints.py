"""User messages, each with the checkpoint that was made before it.

    save, named from the message → the message is recorded, or read from a transcript later

The link is not stored. A message belongs to the newest checkpoint that has its name, does not know
a later message, and was made within minutes of it. So it is found for every agent and every import,
and a message that nothing was saved for has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.story import Message, Role
from holdfast.domain.timeline.timeline import Outline
from holdfast.domain.tool_calls import message_description
from holdfast.engine.conversation.conversation import add_message, checked_content
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_APART_NS = 600 * 1_000_000_000
"""Between a message and its checkpoint: a first save of a large workspace takes minutes."""

_CHUNK = 250


def user_message(
    engine: Engine, session_id: SessionId, text: str, *, inside: Collection[int] = ()
) -> Message:
    """Save the workspace, then record the message; both are durable when this returns. `inside` as
    in `Engine.save`."""
    intent = make_intent(message_description(checked_content(text)), confidence=1.0)
    saved = engine.save(session_id, intent, kind=Kind.MESSAGE, inside=inside)
    message = add_message(engine.vault, session_id, Role.USER.value, text)
    return replace(message, checkpoint=saved.checkpoint.id)


def with_checkpoints(
    vault: Vault, session_id: SessionId, messages: Sequence[Message]
) -> list[Message]:
    """The same messages; those of the user with their checkpoint, where there is one."""
    asked = [one for one in messages if one.role is Role.USER]
    if not asked:
        return list(messages)
    newest = max(one.at_ns for one in asked) + _APART_NS
    oldest = min(one.at_ns for one in asked) - _APART_NS
    made = list(_made_for_messages(vault, session_id, newest, oldest))
    return [_with_checkpoint(one, made) if one.role is Role.USER else one for one in messages]


def _with_checkpoint(message: Message, made: Sequence[Outline]) -> Message:
    name = message_description(message.content)
    near = [
        row for row in made if row.reasoning == name and abs(row.at_ns - message.at_ns) <= _APART_NS
    ]
    # Some agents write the message into their transcript before the hook for it is called.
    for last in (message.index - 1, message.index):
        for row in near:
            if row.message_index is None or row.message_index <= last:
                return replace(message, checkpoint=row.id)
    return message


def _made_for_messages(
    vault: Vault, session_id: SessionId, newest: int, oldest: int
) -> Iterator[Outline]:
    """Newest first, of that time."""
    last = vault.catalog.checkpoint_at(session_id, newest)
    before = 0 if last is None else last.sequence + 1
    while chunk := vault.catalog.outline(session_id, limit=_CHUNK, before=before):
        for row in chunk:
            if row.at_ns < oldest:
                return
            if row.kind is Kind.MESSAGE:
                yield row
        before = chunk[-1].sequence
