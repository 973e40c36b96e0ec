"""A writer that has a save measured as soon as it turns out to be large.

Measuring looks at every file, which takes as long as a small save. So a save of a known workspace
begins without it; most end before they have added much.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.domain.ids import Digest
from holdfast.ports.objects import ObjectWriter, WriteTotals


class MeasuredLate:
    """Hands objects on. `measure` is called once, after more than `allowance_bytes` of new content;
    it raises `BudgetReached` when the save does not fit."""

    def __init__(
        self, writer: ObjectWriter, allowance_bytes: int, measure: Callable[[], None]
    ) -> None:
        self._writer = writer
        self._left_bytes = allowance_bytes
        self._measure: Callable[[], None] | None = measure

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        is_new = self._writer.add(digest, data, similar_to=similar_to)
        if is_new and self._measure is not None:
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                measure, self._measure = self._measure, None
                measure()
        return is_new

    def commit(self) -> WriteTotals:
        return self._writer.commit()

    def abandon(self) -> None:
        self._writer.abandon()
