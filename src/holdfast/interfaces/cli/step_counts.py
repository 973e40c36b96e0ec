"""How many files a restore makes, rewrites and removes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.domain.entries import DirectoryEntry
from holdfast.domain.restore_plans import Step, StepType


class StepCounts(NamedTuple):
    """Files and links; directories are not counted."""

    created: int
    restored: int
    deleted: int

    @property
    def total(self) -> int:
        return self.created + self.restored + self.deleted


def count_steps(steps: Iterable[Step]) -> StepCounts:
    created = restored = deleted = 0
    for step in steps:
        if isinstance(step.after or step.before, DirectoryEntry):
            continue
        if step.type is StepType.CREATE:
            created += 1
        elif step.type is StepType.DELETE:
            deleted += 1
        else:
            restored += 1
    return StepCounts(created, restored, deleted)
