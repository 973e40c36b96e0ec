"""Guarded edits and attempts as data."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.domain.story import Activity


class AttemptView(TypedDict):
    """A command that ran as an attempt; it is `kept` if its exit `status` is 0."""

    attempt: int
    checkpoint: str
    session_id: str
    status: int
    kept: bool
    elapsed_ms: float


class KeptView(TypedDict):
    """An interrupted edit or attempt whose changes are kept."""

    number: int
    kind: str
    reason: str
    paths: list[str]


class InterruptedView(KeptView):
    """An edit or attempt whose process is gone; a restore of `checkpoint` rolls it back."""

    session_id: str
    checkpoint: str


def attempt_view(attempt: "Activity", status: int, elapsed_ms: float) -> AttemptView:
    return {
        "attempt": attempt.number,
        "checkpoint": attempt.checkpoint,
        "session_id": attempt.session_id,
        "status": status,
        "kept": status == 0,
        "elapsed_ms": elapsed_ms,
    }


def kept_view(activities: "Iterable[Activity]") -> list[KeptView]:
    return [
        {
            "number": one.number,
            "kind": one.kind.value,
            "reason": one.reason,
            "paths": [to_text(path) for path in one.paths],
        }
        for one in activities
    ]


def interrupted_view(one: "Activity") -> InterruptedView:
    return {
        "number": one.number,
        "session_id": one.session_id,
        "kind": one.kind.value,
        "reason": one.reason,
        "checkpoint": one.checkpoint,
        "paths": [to_text(path) for path in one.paths],
    }
