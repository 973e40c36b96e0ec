"""A writer that stores nothing itself: what it is given becomes records for somebody who does."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.adapters.local.objects.blocks import (
    FULL_AT_BYTES,
    LARGEST_MEMBER_BYTES,
    record_of,
    single_record,
)
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import Record
from holdfast.ports.objects import WriteTotals

_MOST_REMEMBERED = 50_000
"""Objects of which it is known that they were handed on; what is forgotten may be, twice."""


class RecordStream:
    """Small objects share records, as in any other batch."""

    def __init__(self, hand_on: Callable[[Record], None]) -> None:
        self._hand_on = hand_on
        self._known: set[Digest] = set()
        self._small: list[tuple[Digest, bytes]] = []
        self._small_bytes = 0

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        if digest in self._known:
            return False
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known.add(digest)
        if len(data) > LARGEST_MEMBER_BYTES:
            self._hand_on(single_record(digest, data))
            return True
        self._small.append((digest, data))
        self._small_bytes += len(data)
        if self._small_bytes >= FULL_AT_BYTES:
            self._hand_on_small()
        return True

    def _hand_on_small(self) -> None:
        if not self._small:
            return
        small, self._small, self._small_bytes = self._small, [], 0
        self._hand_on(record_of(small))

    def commit(self) -> WriteTotals:
        self._hand_on_small()
        return WriteTotals()

    def abandon(self) -> None:
        self._small.clear()
