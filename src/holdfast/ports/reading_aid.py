"""Help with reading a workspace of which nothing is known yet: somebody who begins at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.ports.objects import ObjectWriter


class ReadingAid(Protocol):
    """Reads from the other end what its starter reads from the beginning, until they meet.

    What it says of a directory is a hint: its starter looks at the directory and its files again,
    as it would after any earlier scan. Only the contents that go with it are taken as they come,
    and they are complete when `finish` says so.
    """

    def begin(self, root_fd: int, started_ns: int) -> None:
        """Start; where it cannot be had, nothing comes of it."""
        ...

    def receive(self) -> None:
        """Take in what has come so far, without waiting."""
        ...

    def directory(self, path: bytes) -> bytes | None:
        """What it says of a directory, in the form that scans are remembered in."""
        ...

    def stop(self) -> None:
        """Let it begin nothing more."""
        ...

    def finish(self) -> bool:
        """Wait for the rest; False when something that it spoke of did not come."""
        ...

    def close(self) -> None:
        """End it, whatever it is doing."""
        ...


class SecondReader(Protocol):
    """Has such help for the first scan of a workspace."""

    def aid_for(self, writer: ObjectWriter) -> ReadingAid | None:
        """Help whose contents go to this writer; nothing is started yet. None where there is none,
        and for a store that has contents already: they would be stored again."""
        ...
