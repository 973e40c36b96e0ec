"""What a running restore has done so far, and what it displaced from the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.domain.outcomes import PathProblem
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import Step
from holdfast.domain.sqlite_files import SHARED_MEMORY, database_of
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry, SymlinkEntry
from holdfast.domain.wording import Remark
from holdfast.values.classes import dataclass, field


class StepFailed(Exception):
    """One step could not be done; the reason is for people."""

    def __init__(self, path: bytes, reason: str, *, disk_full: bool = False) -> None:
        super().__init__(f"{to_text(path)}: {reason}")
        self.path = path
        self.reason = reason
        self.disk_full = disk_full


@dataclass(frozen=True, slots=True)
class Displaced:
    """Something a step took out of the workspace, lying in a staging slot; `whole` when it is a
    database together with what lay beside it."""

    path: bytes
    area: int
    slot: bytes
    expected: FileEntry | SymlinkEntry | None
    whole: bool = False


@dataclass(slots=True)
class RestoreProgress:
    """What has been done so far, and how to take it back. `in_place` was read back already when it
    was written; `in_use` are databases that others have open."""

    steps: list[Step] = field(default_factory=list)
    displaced: list[Displaced] = field(default_factory=list)
    problems: list[PathProblem] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)
    directories: set[bytes] = field(default_factory=set)
    changed_modes: set[bytes] = field(default_factory=set)
    in_place: set[bytes] = field(default_factory=set)
    in_use: list[bytes] = field(default_factory=list)

    def tells(self, step: Step) -> bool:
        """Whether the step is worth telling of: what programs share that have a database open is
        theirs, and so is the log as long as they have."""
        base = database_of(step.path)
        if base is None or base not in self.in_place:
            return True
        return base not in self.in_use and not step.path.endswith(SHARED_MEMORY)

    @property
    def to_be_read_back(self) -> list[Step]:
        return [step for step in self.steps if step.path not in self.in_place]

    @property
    def compared_files(self) -> int:
        """Files and links that were compared with the checkpoint: there, or gone."""
        steps = [step for step in self.steps if not isinstance(step.after, DirectoryEntry)]
        return len({s.path for s in steps if not isinstance(s.before, DirectoryEntry) or s.after})

    def warnings(self) -> Iterator[str]:
        for path in self.in_use:
            yield Remark(
                f"{to_text(path)} is open in another program: it has the checkpoint's content, but "
                f"SQLite's counters in it went on, so that it shows as changed"
            )
