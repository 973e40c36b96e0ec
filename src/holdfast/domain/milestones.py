"""A checkpoint as somebody needs it who counts all of a session: where it stands, and what it is.

Read by the ten thousands, so it is a plain tuple and holds what is found without any other value.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId


class Milestone(NamedTuple):
    sequence: int
    id: CheckpointId
    kind: Kind
    message_index: int | None
