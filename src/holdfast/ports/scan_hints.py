"""Hints for a scan of the workspace: the stat cache, and a second process that reads along.

A hint is never proof. The scan looks at each directory and its files again; a lost or refused hint
costs reading files again, never a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.ports.objects import ObjectWriter


class StatCache(Protocol):
    """What each directory looked like when it was last scanned, kept between processes. An entry is
    only used where the file system still shows the same numbers."""

    def load(self, generation: str) -> dict[bytes, bytes]:
        """Directory path to encoded entry; nothing when the entries are of another generation."""

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replace entries; None drops a directory and all below it.

        May lose everything on a crash, never mix it up.
        """

    def erase(self) -> None:
        """Forget everything, and leave nothing of it on the medium."""

    def close(self) -> None: ...


class ReadingAid(Protocol):
    """Reads from the other end what its starter reads from the beginning, until they meet.

    Only the contents that go with a directory are taken as they come. They are complete when
    `finish` says so.
    """

    def begin(self, root_fd: int, started_ns: int) -> None:
        """Start; where it cannot be had, nothing comes of it."""

    def receive(self) -> None:
        """Take in what has come so far, without waiting."""

    def directory(self, path: bytes) -> bytes | None:
        """What it says of a directory, in the form that scans are remembered in."""

    def stop(self) -> None:
        """Let it begin nothing more."""

    def finish(self) -> bool:
        """Wait for the rest; False when something that it spoke of did not come."""

    def close(self) -> None:
        """End it, whatever it is doing."""


class SecondReader(Protocol):
    """Has such help for the first scan of a workspace."""

    def aid_for(self, writer: ObjectWriter) -> ReadingAid | None:
        """Help whose contents go to this writer; nothing is started yet. None where there is none,
        and for a store that has contents already: they would be stored again."""
