"""How far a dump or a load is, in rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.ports.progress import Progress


class RowMeter:
    """Counts the rows of one database as they pass. `expected` may be an estimate: a total that
    turns out too small is not shown any longer."""

    def __init__(self, progress: Progress, phase: str, expected: int | None) -> None:
        self._progress = progress
        self._phase = phase
        self._expected = expected or None
        self._rows = 0
        self._tell()

    def passing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks: each row ends with the only line feed that is not escaped."""
        for block in blocks:
            self._rows += block.count(b"\n")
            self._tell()
            yield block

    @property
    def rows(self) -> int:
        return self._rows

    def _tell(self) -> None:
        if self._expected is not None and self._rows > self._expected:
            self._expected = None
        self._progress.advance(self._phase, self._rows, self._expected)
