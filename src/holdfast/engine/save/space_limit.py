"""The space limit of a save, from budgets and free disk space.

Guarantees: the last part of the disk is never filled. Small changes are always saved, even over
budget, so that reaching a budget never ends protection.

Measuring stats every file, which takes as long as a small save. Most saves are small, so a save of
a known workspace starts without measuring (`MeasuringWriter`).
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.domain.errors import NoSpace
from holdfast.domain.ids import Digest
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import DISK_RESERVE_BYTES
from holdfast.ports.objects import ObjectWriter, WriteTotals

_WARN_AT = 0.8
_LARGEST_RESERVE_BYTES = 1 << 20
_LEAST_RESERVE_BYTES = 64 << 10
_RESERVED_SHARE = 100


class SpaceLimit:
    """The bytes that a save may add (`bytes`), and the budgets' remaining space without reserve."""

    def __init__(self, vault: Vault, *, budget: bool = True) -> None:
        self._budget_bytes = vault.settings.budget
        self._used_bytes = vault.space.size_bytes()
        own_left = self._budget_bytes - self._used_bytes
        self._total_bytes = vault.settings.total_budget
        self._others_bytes = vault.space.others_bytes(self._used_bytes)
        total_left = self._total_bytes - self._used_bytes - self._others_bytes
        self.budget_left = min(own_left, total_left)
        self.is_total = total_left < own_left
        self._disk_left = vault.space.free_bytes() - DISK_RESERVE_BYTES
        self.is_disk = self._disk_left < self.budget_left
        left = max(self.budget_left, _reserve(self._budget_bytes)) if budget else self._disk_left
        self.bytes = max(min(left, self._disk_left), 0)
        if budget and not self.bytes:
            raise self.explanation()

    def explanation(self) -> NoSpace:
        return disk_almost_full(self._disk_left + DISK_RESERVE_BYTES)

    def warnings(self, stored_bytes: int) -> tuple[str, ...]:
        """About the budget that is closer to its limit."""
        share = (self._used_bytes + stored_bytes) / self._budget_bytes
        total = (self._used_bytes + self._others_bytes + stored_bytes) / self._total_bytes
        if max(share, total) < _WARN_AT:
            return ()
        if share >= total:
            used = f"the store has used {share:.0%} of its disk budget"
            return (f"{used}; to see what can be deleted: holdfast cleanup --dry-run",)
        used = f"all stores together have used {total:.0%} of total_budget"
        return (f"{used}; stores without a workspace: holdfast cleanup --stores --dry-run",)


def _reserve(budget_bytes: int) -> int:
    share = budget_bytes // _RESERVED_SHARE
    return max(_LEAST_RESERVE_BYTES, min(share, _LARGEST_RESERVE_BYTES))


def disk_almost_full(free_bytes: int) -> NoSpace:
    """The error for a checkpoint that would fill the store's disk."""
    from holdfast.domain.wording import size_words  # imported late: few saves fail

    found = f"only {size_words(free_bytes)} are free"
    if free_bytes > DISK_RESERVE_BYTES:
        found = f"this checkpoint does not fit into the {size_words(free_bytes)} that are free"
    return NoSpace(
        f"the disk of the store is almost full: {found}, and Holdfast leaves the last "
        f"{size_words(DISK_RESERVE_BYTES)} to other programs",
        hint="free some disk space, or move the store: set HOLDFAST_HOME",
    )


class MeasuringWriter:
    """Passes objects on. After `allowance_bytes` of new content it calls `measure` once, which
    raises `BudgetReached` if the save does not fit."""

    def __init__(
        self, writer: ObjectWriter, allowance_bytes: int, measure: Callable[[], None]
    ) -> None:
        self._writer = writer
        self._left_bytes = allowance_bytes
        self._measure: Callable[[], None] | None = measure

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        is_new = self._writer.add(digest, data, similar_to=similar_to)
        if is_new and self._measure is not None:
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                measure, self._measure = self._measure, None
                measure()
        return is_new

    def commit(self) -> WriteTotals:
        return self._writer.commit()

    def abandon(self) -> None:
        self._writer.abandon()
