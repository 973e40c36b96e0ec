"""What each directory looked like when it was last scanned, kept between processes.

Purely a hint: a lost or refused entry costs reading files again, never a wrong result. An entry
is only used where the file system still shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class StatCache(Protocol):
    def load(self, generation: str) -> dict[bytes, bytes]:
        """Directory path to encoded entry; nothing when the entries are of another generation."""
        ...

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Replace entries; None drops a directory and all below it.

        May lose everything on a crash, never mix it up.
        """
        ...

    def erase(self) -> None:
        """Forget everything, and leave nothing of it on the medium."""
        ...

    def close(self) -> None: ...
