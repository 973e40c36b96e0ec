"""SQLite on a disk that fails: the n-th write, sync or truncation of any database file is refused.

    with SqliteFaults(fail_at=7, error=apsw.FullError) as faults:
        ...                            # connections opened here go through the faulty layer
    assert faults.injected

It stands in SQLite's own file layer (a VFS), below logging, locking and caching, which all run as
always. Connections must be opened and closed inside the block. One block at a time in a process.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import apsw

_NAME = "holdfast-faulty"


class SqliteFaults(apsw.VFS):
    """Counts changes to files; from number `fail_at` on refuses them (`lasting`), or only that one.

    `fail_at=0` refuses nothing and only counts.
    """

    def __init__(
        self, fail_at: int, error: type[apsw.Error] = apsw.IOError, *, lasting: bool = True
    ) -> None:
        # By name: an empty one would mean the default, which is this layer once it is registered.
        self.below = apsw.vfs_names()[0]
        super().__init__(_NAME, self.below, makedefault=True)
        self._fail_at = fail_at
        self._error = error
        self._lasting = lasting
        self.changes = 0
        self.injected = 0

    def __enter__(self) -> SqliteFaults:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FaultyFile(self, name, flags)

    def before_change(self) -> None:
        self.changes += 1
        due = self.changes >= self._fail_at if self._lasting else self.changes == self._fail_at
        if self._fail_at and due:
            self.injected += 1
            raise self._error("refused by a test")


class _FaultyFile(apsw.VFSFile):
    def __init__(
        self, faults: SqliteFaults, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._faults = faults
        super().__init__(faults.below, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._faults.before_change()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._faults.before_change()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._faults.before_change()
        super().xTruncate(newsize)
