"""How much a save may add to the store: what the budget and the disk leave.

Guarantee: the last part of the disk is never filled.
"""

from __future__ import annotations

from holdfast.domain.errors import BudgetReached, NoSpace
from holdfast.engine.vault import Vault

DISK_RESERVE_BYTES = 64 << 20
"""Never filled: other programs, and our own log, need room to end well."""

_WARN_AT = 0.8


class SpaceLimit:
    """How much a save may add, and what to say when that is not enough."""

    def __init__(self, vault: Vault, *, budget: bool = True) -> None:
        self._budget_bytes = vault.settings.budget
        self._used_bytes = vault.access.size_bytes()
        self._budget_left = self._budget_bytes - self._used_bytes
        self._disk_left = vault.access.free_bytes() - DISK_RESERVE_BYTES
        left = min(self._budget_left, self._disk_left) if budget else self._disk_left
        self.bytes = max(left, 0)
        self._for_disk = not budget or self._disk_left <= self._budget_left
        if budget and left <= 0:
            raise self.explanation()

    def explanation(self) -> NoSpace:
        from holdfast.domain.sizes import size_words  # imported late: hardly any save fails

        if self._for_disk:
            free, kept = self._disk_left + DISK_RESERVE_BYTES, size_words(DISK_RESERVE_BYTES)
            return NoSpace(
                f"the disk of the store is (almost) full: this checkpoint does not fit into the "
                f"{size_words(free)} that are free, of which the last {kept} are left alone",
                hint="free some disk space, or move the store: set HOLDFAST_HOME",
            )
        used, budget = size_words(self._used_bytes), size_words(self._budget_bytes)
        return BudgetReached(
            f"the store takes {used} of its budget of {budget}: this checkpoint does not fit",
            hint="raise it: holdfast config set budget '\"10 GB\"', "
            "or drop checkpoints: holdfast cleanup, holdfast delete REF",
        )

    def warnings(self, stored_bytes: int) -> tuple[str, ...]:
        share = (self._used_bytes + stored_bytes) / self._budget_bytes
        if share < _WARN_AT:
            return ()
        return (f"the store has used {share:.0%} of its disk budget",)
