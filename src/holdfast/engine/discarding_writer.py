"""A writer that keeps nothing: scans that only look use it."""

from __future__ import annotations

from holdfast.domain.ids import Digest
from holdfast.ports.objects import WriteTotals


class DiscardingWriter:
    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        return False

    def commit(self) -> WriteTotals:
        return WriteTotals()

    def abandon(self) -> None:
        return None
