"""The two things contract suites need beyond `assert`: an expected error, and sample content."""

from __future__ import annotations

from types import TracebackType

from blake3 import blake3


class expect_error:  # noqa: N801
    """The block must raise `kind` or a kind of it; anything else passes through as it is."""

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None:
            raise AssertionError(f"no {self._kind.__name__} was raised")
        return issubclass(kind, self._kind)


def incompressible(label: str, size_bytes: int) -> bytes:
    """Bytes that look random, the same on every run and different for every label."""
    return blake3(label.encode()).digest(length=size_bytes)


def compressible(label: str, size_bytes: int) -> bytes:
    """Text in numbered lines, the same on every run and different for every label."""
    line_count = size_bytes // 15 + 1  # the number alone, with its words, is that long
    text = "".join(f"{label} line {number:08d}\n" for number in range(line_count))
    return text.encode()[:size_bytes]
