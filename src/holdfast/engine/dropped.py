"""Reading a checkpoint that somebody deletes meanwhile: not damage, and told as what it is.

Readers hold no lock, so that they never keep anybody waiting; what is deleted while they are at it
may be collected before they are done, as when a difference waits in a pager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import ObjectMissing, Refused
from holdfast.engine.vault import Vault

if TYPE_CHECKING:
    from holdfast.domain.bundle_rows import BundledCheckpoint

Row: TypeAlias = "Checkpoint | BundledCheckpoint | None"


@contextmanager
def unless_dropped(
    vault: Vault, checkpoints: Iterable[Row], doing: str, hint: str
) -> Iterator[None]:
    """`Refused` in place of `ObjectMissing`, where one of them is not what it was any more."""
    try:
        yield
    except ObjectMissing:
        for row in checkpoints:
            if row is None:
                continue
            now = vault.catalog.checkpoint(row.session_id, row.id)
            if now is None or now.tree != row.tree:
                lost = "deleted" if now is None else "purged"
                raise Refused(
                    f"checkpoint {row.id} was {lost} while it was being {doing}", hint=hint
                ) from None
        raise
