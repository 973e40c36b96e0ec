"""What contract suites need beyond `assert`: an expected error, and content to store."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from blake3 import blake3

from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import ObjectStore


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


def store_objects(store: ObjectStore, contents: Iterable[bytes]) -> list[Digest]:
    """Write `contents` as one batch; the digests in the same order."""
    writer = store.writer()
    digests: list[Digest] = []
    for data in contents:
        digests.append(digest_of(data))
        writer.add(digests[-1], data)
    writer.commit()
    return digests
