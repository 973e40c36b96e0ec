"""What was said around the checkpoints of a bundle, taken in with them.

A conversation that this store has is only ever continued: when the last message that both have is
not the same, it is another conversation and none of its messages are taken. Doing it twice adds
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.domain.ids import SessionId
from holdfast.domain.messages import Message
from holdfast.domain.rollbacks import Rollback, Stretch, joined
from holdfast.engine.bundles.placing import ImportPlan
from holdfast.engine.bundles.verifying import VerifiedBundle
from holdfast.engine.vault import Vault

_ELSEWHERE = 0
"""Stands for an operation of the store that a message comes from."""


def take_in_story(vault: Vault, bundle: VerifiedBundle, plan: ImportPlan) -> int:
    """Called with the store's lock held, when the checkpoints are there; how many rows it was."""
    added = 0
    last: dict[SessionId, Message | None] = {}
    others: set[SessionId] = set()
    rolled_back: dict[SessionId, list[int]] = {}
    for part in bundle.story():
        messages: list[Message] = []
        for message in part.messages:
            home = plan.homes[message.session_id]
            if home not in last:
                last[home] = _last(vault, home)
            known = last[home]
            if known is not None and known.index == message.index and not _is_same(known, message):
                others.add(home)
            if home in others or (known is not None and message.index <= known.index):
                continue
            messages.append(replace(message, session_id=home))
            if message.rolled_back_by is not None and known is None:
                rolled_back.setdefault(home, []).append(message.index)
        annotations = [
            replace(
                annotation,
                session_id=plan.homes[annotation.session_id],
                checkpoint_id=plan.ids[annotation.checkpoint_id],
            )
            for annotation in part.annotations
        ]
        added += vault.story.take_in(messages, annotations)
    for session_id, indexes in rolled_back.items():
        _mark(vault, session_id, indexes)
    return added


def _last(vault: Vault, session_id: SessionId) -> Message | None:
    count = vault.story.message_count(session_id)
    found = vault.story.messages(session_id, first=count - 1, limit=1) if count else ()
    return found[0] if found else None


def _is_same(known: Message, message: Message) -> bool:
    return (known.role, known.content) == (message.role, message.content)


def _mark(vault: Vault, session_id: SessionId, indexes: list[int]) -> None:
    """Messages that were rolled back where they come from are so here, too."""
    marks = joined([Stretch(index, index, _ELSEWHERE) for index in indexes])
    rollback = Rollback(_ELSEWHERE, 0, indexes[-1], (), marks)
    vault.story.add_rollback(session_id, rollback)
