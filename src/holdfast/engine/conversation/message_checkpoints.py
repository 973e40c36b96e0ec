"""User messages, each with the checkpoint that was made before it.

    save, named after the message → record the message, or read it from a transcript later

The link is not stored. A message belongs to the newest checkpoint that has its name, knows no later
message, and was made within minutes of it. This works for every agent and every import. A
message without a save has no checkpoint.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import BEFORE_MESSAGE, make_intent
from holdfast.domain.story import Message, Role
from holdfast.domain.timeline.timeline import Outline
from holdfast.domain.tool_calls import message_description
from holdfast.engine.conversation.conversation import add_message, checked_content
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_APART_NS = 600 * 1_000_000_000
"""Between a message and its checkpoint: the first save of a large workspace takes minutes."""

_CHUNK = 250
_NAMED = f"{BEFORE_MESSAGE}: "


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
    vault: Vault,
    session_id: SessionId,
    messages: Sequence[Message],
    rows: Iterable[Outline] | None = None,
) -> list[Message]:
    """The same messages, with the checkpoints of the user's messages, if any. `rows` are
    checkpoints of that time, newest first, if already read."""
    asked = [one for one in messages if one.role is Role.USER]
    if not asked:
        return list(messages)
    if rows is None:
        newest = max(one.at_ns for one in asked) + _APART_NS
        oldest = min(one.at_ns for one in asked) - _APART_NS
        rows = _outlines(vault, session_id, newest, oldest)
    made = [row for row in rows if row.kind is Kind.MESSAGE]
    if not made:
        return list(messages)
    search = _Search(made)
    return [
        replace(one, checkpoint=search.before(one)) if one.role is Role.USER else one
        for one in messages
    ]


class _Search:
    """Finds the checkpoint before a message. Pages are long and composing a name is slow. So a name
    is composed only if a checkpoint is near and the start of the text is not conclusive."""

    def __init__(self, made: Sequence[Outline]) -> None:
        self._by_index: dict[int, list[Outline]] = {}
        self._by_name: dict[str, list[Outline]] = {}
        for row in made:
            self._by_index.setdefault(_last_known(row), []).append(row)
            self._by_name.setdefault(row.reasoning, []).append(row)
        self._times = sorted(row.at_ns for row in made)

    def before(self, message: Message) -> CheckpointId | None:
        for row in self._by_index.get(message.index - 1, ()):
            shown = row.reasoning.removeprefix(_NAMED)
            is_cut = shown.endswith("…") and message.content.startswith(shown[:-1])
            if _is_near(row, message) and (is_cut or shown == message.content):
                return row.id
        if not self._any_near(message):
            return None
        named = self._by_name.get(message_description(message.content), ())
        near = [row for row in named if _is_near(row, message)]
        # Some agents write a message into their transcript before calling its hook.
        for last in (message.index - 1, message.index):
            for row in near:
                if _last_known(row) <= last:
                    return row.id
        return None

    def _any_near(self, message: Message) -> bool:
        first = bisect_left(self._times, message.at_ns - _APART_NS)
        return first < len(self._times) and self._times[first] <= message.at_ns + _APART_NS


def _last_known(row: Outline) -> int:
    return -1 if row.message_index is None else row.message_index


def _is_near(row: Outline, message: Message) -> bool:
    return abs(row.at_ns - message.at_ns) <= _APART_NS


def _outlines(vault: Vault, session_id: SessionId, newest: int, oldest: int) -> Iterator[Outline]:
    """The checkpoints of that time, newest first."""
    last = vault.catalog.checkpoint_at(session_id, newest)
    before = 0 if last is None else last.sequence + 1
    while chunk := vault.catalog.outline(session_id, limit=_CHUNK, before=before):
        for row in chunk:
            if row.at_ns < oldest:
                return
            yield row
        before = chunk[-1].sequence
