"""Checkpoints as a timeline and a replay count them, read many at a time.

Not compared with their checksums, which would take longer than the reading itself: what is shown
leads to a checkpoint by its id, and that is read like any other.
"""

from __future__ import annotations

import json
from types import NoneType
from typing import Any

from holdfast.domain.checkpoints import Kind, Milestone
from holdfast.domain.ids import CheckpointId
from holdfast.domain.restore.selections import selected_in
from holdfast.domain.timeline.timeline import Outline

_LONGEST_REASON = 400
_KINDS = {kind.value: kind for kind in Kind}

OUTLINE = (
    "SELECT sequence, id, parent, kind, created_at_ns,"
    f" substr(reasoning, 1, {_LONGEST_REASON}), name, confidence, added, modified, removed,"
    " restores_from, partial, message_index, tool_use_id, round,"
    f" CASE WHEN kind='{Kind.RESTORE.value}' THEN tool_calls END FROM checkpoints"
)
MILESTONE = "SELECT sequence, id, kind, message_index FROM checkpoints"

_MAYBE_TEXT, _MAYBE_NUMBER = (str, NoneType), (int, NoneType)
_TYPES: tuple[type | tuple[type, ...], ...] = (
    *(int, str, _MAYBE_TEXT, str, int, str, _MAYBE_TEXT, float, int, int, int),
    *(_MAYBE_TEXT, int, _MAYBE_NUMBER, _MAYBE_TEXT, int, _MAYBE_TEXT),
)
"""Damage can also change what a value is; nobody who draws should stumble over that."""


def outline_from_row(row: tuple[Any, ...]) -> Outline:
    if not all(map(isinstance, row, _TYPES)):
        raise ValueError(f"checkpoint {row[1]!a} has a value of another type")
    selected = None if row[16] is None else selected_in(json.loads(row[16]), row[5])
    return Outline._make(
        (*row[:3], _KINDS[row[3]], *row[4:12], bool(row[12]), *row[13:16], selected)
    )


def milestone_from_row(row: tuple[Any, ...]) -> Milestone:
    sequence, identifier, kind, message_index = row
    if not isinstance(identifier, str) or not isinstance(message_index, _MAYBE_NUMBER):
        raise ValueError(f"checkpoint {identifier!a} has a value of another type")
    return Milestone(sequence, CheckpointId(identifier), _KINDS[kind], message_index)
