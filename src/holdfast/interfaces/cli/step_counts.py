"""How many files and directories a restore makes, rewrites and removes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.domain.entries import DirectoryEntry
from holdfast.domain.restore_plans import Step, StepType


class StepCounts(NamedTuple):
    """Files and links by what happens to them, and directories apart."""

    created: int
    restored: int
    deleted: int
    directories: int = 0

    @property
    def total(self) -> int:
        """Of files and links."""
        return self.created + self.restored + self.deleted


def count_steps(steps: Iterable[Step]) -> StepCounts:
    created = restored = deleted = directories = 0
    for step in steps:
        if isinstance(step.after or step.before, DirectoryEntry):
            directories += 1
        elif step.type is StepType.CREATE:
            created += 1
        elif step.type is StepType.DELETE:
            deleted += 1
        else:
            restored += 1
    return StepCounts(created, restored, deleted, directories)
