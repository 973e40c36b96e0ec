"""The two things contract suites need beyond `assert`: an expected error, and sample content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from blake3 import blake3


@contextmanager
def expect_error(kind: type[Exception]) -> Iterator[None]:
    """The block must raise `kind` or a kind of it; anything else passes through as it is."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")


def incompressible(label: str, size_bytes: int) -> bytes:
    """Bytes that look random, the same on every run and different for every label."""
    return blake3(label.encode()).digest(length=size_bytes)


def compressible(label: str, size_bytes: int) -> bytes:
    """Text in numbered lines, the same on every run and different for every label."""
    line_count = size_bytes // 20 + 1
    text = "".join(f"{label} line {number:08d}\n" for number in range(line_count))
    return text.encode()[:size_bytes]
