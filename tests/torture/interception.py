"""Every call that reaches the disk, of the file system port and of SQLite, through one gate.

    with intercepted(gate):                       # the real composition, the real files
        with open_workspace(...) as opened: ...

Calls are numbered in the order in which they are made, whichever way they take. A gate may let a
call run, run it with fewer bytes, raise instead, or end the process. What the lock file and the
creation of an empty database file do directly is not seen; nothing of theirs can be half done.
One at a time in a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import apsw
import pytest

import holdfast.bootstrap.workspace
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.components.git import commands
from holdfast.testing import intercepted_filesystem
from holdfast.testing.intercepted_filesystem import InterceptedFilesystem

T = TypeVar("T")

_NAME = "holdfast-intercepted"

_GIT_CALLS: tuple[tuple[object, str], ...] = (
    (commands.Git, "run"),
    (commands.Git, "start"),
    *((os, name) for name in "open write fsync replace rename unlink rmdir mkdir link".split()),
)
"""What the state of git is read and written with."""

_SEARCH_CALLS: tuple[tuple[object, str], ...] = (
    (os, "unlink"),
    (os, "rename"),
    (os, "mkdir"),
)
"""What makes way for a search index that cannot be used."""


def beyond_the_port(action: str, *, git: bool) -> tuple[tuple[object, str], ...]:
    """What an action reaches the disk with, besides the port and SQLite."""
    return _GIT_CALLS if git else _SEARCH_CALLS if action == "search" else ()


@dataclass(frozen=True, slots=True)
class DiskCall:
    """The n-th call, from 1; `size` is that of a read or write. SQLite's names begin with `x`."""

    number: int
    name: str
    subject: bytes | int
    size: int | None = None

    @property
    def is_sqlite(self) -> bool:
        return self.name.startswith("x")


class Gate(Protocol):
    def __call__(self, call: DiskCall, run: Callable[[int], T]) -> T:
        """Do the call by `run(size)`, or something else; `size` means nothing for other calls."""
        ...


def let_pass(call: DiskCall, run: Callable[[int], T]) -> T:
    """The gate of somebody who only wants to count."""
    return run(call.size or 0)


class Turnstile:
    """Numbers calls and hands them to the gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.calls: list[DiskCall] = []

    def go(self, name: str, subject: bytes | int, size: int | None, run: Callable[[int], T]) -> T:
        call = DiskCall(len(self.calls) + 1, name, subject, size)
        self.calls.append(call)
        return self.gate(call, run)


class _Port(InterceptedFilesystem):
    def __init__(self, turnstile: Turnstile) -> None:
        super().__init__(LocalFilesystem())
        self._turnstile = turnstile

    def around(self, call: intercepted_filesystem.Call, run: Callable[[], T]) -> T:
        return self._turnstile.go(call.name, call.subject, None, lambda _: run())

    def around_sized(
        self, call: intercepted_filesystem.Call, size: int, run: Callable[[int], T]
    ) -> T:
        return self._turnstile.go(call.name, call.subject, size, run)


class _Sqlite(apsw.VFS):
    def __init__(self, turnstile: Turnstile) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__(_NAME, self.below, makedefault=True)
        self.turnstile = turnstile

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        return self.turnstile.go(
            "xOpen", path.encode(), None, lambda _: _SqliteFile(self, path.encode(), name, flags)
        )

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        below = super().xDelete
        self.turnstile.go("xDelete", name.encode(), None, lambda _: below(name, syncdir))


class _SqliteFile(apsw.VFSFile):
    def __init__(
        self, vfs: _Sqlite, path: bytes, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._turnstile = vfs.turnstile
        self._path = path
        super().__init__(vfs.below, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        below = super().xRead
        return self._turnstile.go("xRead", self._path, amount, lambda _: below(amount, offset))

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        below, kept = super().xWrite, bytes(data)
        self._turnstile.go("xWrite", self._path, len(kept), lambda n: below(kept[:n], offset))

    def xSync(self, flags: int) -> None:  # noqa: N802
        below = super().xSync
        self._turnstile.go("xSync", self._path, None, lambda _: below(flags))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        below = super().xTruncate
        self._turnstile.go("xTruncate", self._path, None, lambda _: below(newsize))


def _through(turnstile: Turnstile, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return turnstile.go(name, b"", None, lambda _: real(*arguments, **options))

    return call


@contextmanager
def intercepted(gate: Gate, also: Sequence[tuple[object, str]] = ()) -> Iterator[Turnstile]:
    """Workspaces opened in here reach the disk through `gate` only; `also` are functions, by the
    object that has them, which do so without the port."""
    turnstile = Turnstile(gate)
    sqlite = _Sqlite(turnstile)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(holdfast.bootstrap.workspace, "LocalFilesystem", lambda: _Port(turnstile))
            for owner, name in also:
                patch.setattr(owner, name, _through(turnstile, name, getattr(owner, name)))
            yield turnstile
    finally:
        sqlite.unregister()
