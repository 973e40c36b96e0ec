"""The search index of a store that takes no writes: the store's own as it is, or a copy in memory.

    current as it is → asked there → behind, lost or never made → copied as far as it goes, or empty
    → what is missing is taken in there

Guarantee: nothing is written to the disk, and what is found is what would be found after writing.
Not guaranteed: speed; what is taken in is gone with the process, and the next one does it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from holdfast.adapters.local.search.sqlite import SqliteSearchIndex
from holdfast.domain.errors import HoldfastError


class ReadOnlySearchIndex(SqliteSearchIndex):
    """See `holdfast.ports.search.SearchIndex` for the contract of each member."""

    _memory: apsw.Connection | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else can come: what is taken in is this process's own."""
        with self._lock:
            if self._memory is None:
                self._use_memory(copy=True)
            yield

    def begin_anew(self) -> None:
        with self._lock:
            self._use_memory(copy=False)

    def erase(self) -> None:
        """From the disk, which may take writes again by now; refused as long as it does not."""
        self.close()
        SqliteSearchIndex(self._path, self._file_lock, self._cipher).erase()

    def close(self) -> None:
        with self._lock:
            super().close()
            if self._memory is not None:
                self._memory.close()
            self._memory = None

    def _opened(self) -> apsw.Connection:
        if self._memory is None:
            with contextlib.suppress(HoldfastError):  # such as one that was never made
                return super()._opened()
            self._use_memory(copy=False)
        assert self._memory is not None
        return self._memory

    def _use_memory(self, *, copy: bool) -> None:
        memory = apsw.Connection(":memory:")
        if copy:
            try:
                with memory.backup("main", super()._opened(), "main") as copying:
                    copying.step()
            except (apsw.Error, HoldfastError, ValueError):
                memory.close()
                memory = apsw.Connection(":memory:")
        self.close()
        self._memory = self._readied(memory)

    def _make_way(self) -> None:
        self.begin_anew()
