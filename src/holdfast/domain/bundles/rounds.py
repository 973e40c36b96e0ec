"""The ended rounds of a session as they travel with it: what was approved, what was thrown away.

Part of a session's JSON object; bundles of earlier versions have none. As with the other rows, a
value of another type or one that no store would hold is refused (`ValueError`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.domain.bundles.rows import bundled_checkpoint_id, bundled_number, bundled_object
from holdfast.domain.ids import CheckpointId
from holdfast.domain.intent import REASONING_MAX_LENGTH
from holdfast.domain.timeline.rounds import Round, RoundStatus

_MOST_ROUNDS = 5_000
_MOST_CHARACTERS = 500_000
"""Of all messages of a session: with both, its object fits into a bundle. The newest are kept."""


def exportable_rounds(
    rounds: Sequence[Round], chosen: Container[CheckpointId]
) -> tuple[Round, ...]:
    """Ended rounds, oldest first, without what is about checkpoints that stay behind."""
    left = _MOST_CHARACTERS
    found: list[Round] = []
    for one in reversed([one for one in rounds if one.status is not RoundStatus.ACTIVE]):
        if len(found) == _MOST_ROUNDS:
            break
        comes = one.head in chosen
        left -= len(one.message or "")
        found.append(
            replace(
                one,
                approved=one.approved if comes else None,
                head=one.head if comes else None,
                message=one.message if comes and left >= 0 else None,
            )
        )
    return tuple(reversed(found))


def with_new_ids(
    rounds: Sequence[Round], ids: Mapping[CheckpointId, CheckpointId]
) -> tuple[Round, ...]:
    """The same under the ids that checkpoints get in another store."""
    return tuple(
        replace(
            one,
            approved=None if one.approved is None else ids[one.approved],
            head=None if one.head is None else ids[one.head],
        )
        for one in rounds
    )


def encode_rounds(rounds: Sequence[Round]) -> list[dict[str, Any]]:
    return [
        {
            "number": one.number,
            "status": one.status.value,
            "started_at_ns": one.started_at_ns,
            "ended_at_ns": one.ended_at_ns,
            "head": one.head,
            "message": one.message,
        }
        for one in rounds
    ]


def decode_rounds(fields: Mapping[str, Any]) -> tuple[Round, ...]:
    """Of a session's object."""
    rows = fields.get("rounds", [])
    if not isinstance(rows, list):
        raise ValueError("something else stands where rounds should")
    return tuple(_round(bundled_object(row)) for row in rows)


def _round(row: dict[str, Any]) -> Round:
    status = RoundStatus(row["status"])
    if status is RoundStatus.ACTIVE:
        raise ValueError("a round is active that has ended")
    head = None if row["head"] is None else bundled_checkpoint_id(row["head"])
    return Round(
        bundled_number(row["number"]),
        status,
        bundled_number(row["started_at_ns"], signed=True),
        bundled_number(row["ended_at_ns"], signed=True),
        head if status is RoundStatus.MERGED else None,
        None if row["message"] is None else _message(row["message"]),
        head,
    )


def _message(value: Any) -> str:
    if not isinstance(value, str) or len(value) > REASONING_MAX_LENGTH:
        raise ValueError("something else stands where a message should")
    value.encode()
    return value
