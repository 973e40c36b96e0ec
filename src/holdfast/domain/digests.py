"""The digest function that names every object: BLAKE3-256, pure."""

from __future__ import annotations

from blake3 import blake3

from holdfast.domain.ids import Digest


def digest_of(data: bytes) -> Digest:
    return Digest(blake3(data).digest())
