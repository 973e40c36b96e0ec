"""Hints for a scan of the workspace: the stat cache, and a second process that reads files too.

A hint is never proof. The scan checks each directory and its files again. A lost or rejected hint
means that files are read again, never a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.ports.objects import ObjectWriter


class StatCache(Protocol):
    """Directory metadata of the last scan, kept between processes.

    An entry is used only while the file system still shows the same numbers."""

    def load(self, generation: str) -> dict[bytes, bytes]:
        """Encoded entries by directory path; empty if they belong to another generation."""

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replace entries; None removes a directory and everything below it.

        A crash may lose everything, but never mixes entries up.
        """

    def erase(self) -> None:
        """Delete everything, including its traces on the disk."""

    def close(self) -> None: ...


class ReadingAid(Protocol):
    """A second reader that starts from the other end, until the two meet.

    Content that belongs to a directory is used as it arrives. It is complete when `finish` returns
    True.
    """

    def begin(self, root_fd: int, started_ns: int) -> None:
        """Start. If that is not possible, nothing happens."""

    def receive(self) -> None:
        """Process what has arrived so far, without waiting."""

    def directory(self, path: bytes) -> bytes | None:
        """Its report on a directory, in the format of remembered scans."""

    def stop(self) -> None:
        """Start no further directory."""

    def finish(self) -> bool:
        """Wait for the rest; False if something that it announced did not arrive."""

    def close(self) -> None:
        """Stop it, whatever it is doing."""


class SecondReader(Protocol):
    """Provides a second reader for the first scan of a workspace."""

    def aid_for(self, writer: ObjectWriter) -> ReadingAid | None:
        """A reader whose contents go to this writer; nothing is started yet. None if there is none,
        or if the store already has content, which would be stored twice."""
