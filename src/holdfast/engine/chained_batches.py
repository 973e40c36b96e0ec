"""Storing objects that resemble each other, so that a long history stays small.

A store compares a new object only with durable ones. What resembles an object of the batch under
way therefore waits until that batch is committed: one more sync for each link of a chain, and a few
dozen bytes instead of a whole directory for each version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from holdfast.domain.ids import Digest
from holdfast.ports.objects import ObjectStore

Item: TypeAlias = tuple[Digest, bytes, Digest | None]
"""An object's name, its bytes, and the name of one that it resembles."""


def store_chained(
    objects: ObjectStore, items: Iterable[Item], *, limit_bytes: int | None = None
) -> int:
    """Make every object durable; the bytes that took. `NoSpace` beyond the limit.

    An error leaves the batches before it: durable, named by nobody, collectable (I1).
    """
    stored_bytes = 0
    batch: set[Digest] = set()
    writer = objects.writer(limit_bytes=limit_bytes)
    try:
        for digest, data, similar_to in items:
            if similar_to in batch:
                stored_bytes += writer.commit().stored_bytes
                left = None if limit_bytes is None else limit_bytes - stored_bytes
                writer = objects.writer(limit_bytes=left)
                batch.clear()
            writer.add(digest, data, similar_to=similar_to)
            batch.add(digest)
        return stored_bytes + writer.commit().stored_bytes
    except BaseException:
        writer.abandon()
        raise
