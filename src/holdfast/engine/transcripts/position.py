"""How far a transcript was read, and whether the file is still the one that was read.

A position holds an offset at the end of a line, and fingerprints of the bytes at the beginning of
the file and right before the offset. A file that was replaced, truncated or rewritten differs in
one of them, or is too short.

Not guaranteed: that a file is noticed whose only changed bytes lie between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

HEAD_BYTES = 4096
TAIL_BYTES = 1024
_DIGEST_BYTES = 16

ReadAt = Callable[[int, int], bytes]
"""Bytes of a file: how many, from which offset."""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """Where to go on. `in_long_line`: the rest of the line there is to be passed over."""

    offset: int
    head: str
    tail: str
    in_long_line: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "head": self.head,
            "tail": self.tail,
            "in_long_line": self.in_long_line,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TranscriptPosition:
        return cls(data["offset"], data["head"], data["tail"], data["in_long_line"])

    def fits(self, size: int, read_at: ReadAt) -> bool:
        """Whether the file still begins with what was read."""
        if not 0 <= self.offset <= size:
            return False
        tail_bytes = min(self.offset, TAIL_BYTES)
        return (
            fingerprint(read_at(min(self.offset, HEAD_BYTES), 0)) == self.head
            and fingerprint(read_at(tail_bytes, self.offset - tail_bytes)) == self.tail
        )


def fingerprint(data: bytes) -> str:
    return blake3(data).digest(length=_DIGEST_BYTES).hex()
