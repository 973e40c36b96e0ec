"""A file system that breaks at a chosen call: it fails, transfers too little, or acts as if the
process was killed.

    for number in range(1, calls_of_a_good_run + 1):
        fs = FaultyFilesystem(LocalFilesystem(), {number: Fail(errno.ENOSPC)})
        ...                                # the work fails with the right error, or succeeds
        ...                                # then, on the real file system: is everything sound?

Run the work once without faults and count `calls` to know how many numbers there are. Not covered:
SQLite, which accesses the disk itself (see `SqliteFaults`), and the effect of a power cut on data
that was written and not synced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

import apsw

from holdfast.testing.intercepted_filesystem import Call, Disk, InterceptedFilesystem

T = TypeVar("T")
_NAME = "holdfast-faulty"


class Killed(BaseException):
    """The process ended here. Not an `Exception`, so that no handler treats it as a failure."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The call raises `OSError(code)` and does nothing. `lasting`: so does every later call except
    `close`, as on a disk that is gone."""

    code: int
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class CutShort:
    """A read or write transfers half of its bytes, at least one; any other call runs normally."""


@dataclass(frozen=True, slots=True)
class Kill:
    """The process ends before the call, or just after it took effect."""

    after: bool = False


Fault: TypeAlias = Fail | CutShort | Kill


class FaultyFilesystem(InterceptedFilesystem):
    """Injects `faults` by call number. After a kill nothing reaches the disk, so that clean-up code
    of the killed work changes nothing."""

    def __init__(self, inner: Disk, faults: Mapping[int, Fault]) -> None:
        super().__init__(inner)
        self._faults = dict(faults)
        self._lasting: Fail | None = None
        self._dead = False
        self._open: set[int] = set()
        self.injected = 0

    def around(self, call: Call, run: Callable[[], T]) -> T:
        return self._around(call, self._next_fault(call), run)

    def around_sized(self, call: Call, size: int, run: Callable[[int], T]) -> T:
        fault = self._next_fault(call)
        limit = size
        if isinstance(fault, CutShort):
            self.injected += 1
            limit = min(size, max(1, size // 2))
        return self._around(call, fault, lambda: run(limit))

    def _next_fault(self, call: Call) -> Fault | None:
        if self._lasting is not None and call.name != "close":
            return self._lasting
        return self._faults.get(call.number)

    def _around(self, call: Call, fault: Fault | None, run: Callable[[], T]) -> T:
        if self._dead:
            raise Killed
        if isinstance(fault, Fail):
            self.injected += 1
            if fault.lasting:
                self._lasting = fault
            if call.name == "close":  # the descriptor is closed even if the system reports an error
                self._follow_descriptors(call, run())
            raise OSError(fault.code, os.strerror(fault.code))
        if isinstance(fault, Kill) and not fault.after:
            self._die()
        result = run()
        self._follow_descriptors(call, result)
        if isinstance(fault, Kill):
            self._die()
        return result

    def _die(self) -> None:
        self.injected += 1
        self._dead = True
        raise Killed

    def _follow_descriptors(self, call: Call, result: object) -> None:
        if call.name == "open" and isinstance(result, int):
            self._open.add(result)
        elif call.name == "close" and isinstance(call.subject, int):
            self._open.discard(call.subject)

    def release(self) -> None:
        """Close the files that the killed work left open, as the end of its process would have."""
        while self._open:
            self._inner.close(self._open.pop())


class SqliteFaults(apsw.VFS):
    """Counts changes to files, and refuses change number `fail_at` or, if `lasting`, all from it
    on.

    `fail_at=0` refuses nothing and only counts.
    """

    def __init__(
        self, fail_at: int, error: type[apsw.Error] = apsw.IOError, *, lasting: bool = True
    ) -> None:
        # By name, because an empty name means the default, which is this layer once it is
        # registered.
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
