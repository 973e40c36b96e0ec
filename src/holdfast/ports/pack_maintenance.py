"""Surgery on packs, the files in which the local store keeps its objects.

For repairs and for exact erasure only. The caller holds the store's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from holdfast.domain.ids import Digest


class PackMaintenance(Protocol):
    def damaged_packs(self) -> Mapping[int, str]:
        """Packs that are not whole up to where they are known to be, by number, and why."""
        ...

    def mend_packs(self, occasion: str) -> int:
        """Rewrite damaged packs from their sound records; how many there were.

        The old files are quarantined under `occasion`. No object that can be read is lost.
        """
        ...

    def erase_all_but(self, needed: AbstractSet[Digest]) -> int:
        """Leave `needed` on the medium, and no byte of any other object, in whatever form; the
        bytes given back.

        Interrupted, it loses nothing that is needed and can be run again. `Busy` when a reader
        keeps it from finishing.
        """
        ...

    def stored_form(self, digest: Digest) -> bytes:
        """The bytes that stand for an object on the medium: what a raw file would show."""
        ...
