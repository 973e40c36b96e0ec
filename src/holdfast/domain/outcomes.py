"""The outcome of a save or a restore: what was done, what was not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import OperationKind
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.values.classes import dataclass

if TYPE_CHECKING:  # a save reports back as well, and needs no plan
    from holdfast.domain.git.drift import GitDrift
    from holdfast.domain.restore.plan import ComponentOutcome, Kept, Missing, Step


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """A durable checkpoint and everything worth saying about it. `deduplicated`: nothing had
    changed for a moment, and `checkpoint` is the one there was (SE-12). `degraded`: what
    components could not capture, each with the reason and the fix. `may_have_databases` is False if
    no file near the top of the workspace is named like a SQLite database."""

    checkpoint: Checkpoint
    skipped: tuple[Skipped, ...]
    bytes_stored: int
    bytes_deduplicated: int
    warnings: tuple[str, ...] = ()
    deduplicated: bool = False
    degraded: tuple[str, ...] = ()
    may_have_databases: bool = True

    @property
    def failures(self) -> tuple[Skipped, ...]:
        return tuple(s for s in self.skipped if s.reason.is_failure)


@dataclass(frozen=True, slots=True)
class SavedFirst:
    """The safety checkpoint of unsaved changes, None if there were none or they could not be
    saved, which `warnings` then says."""

    checkpoint: CheckpointId | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """A checkpoint that is gone from history, and the space that gave back. `waiting`: there was
    little to give back, and it waits for the next cleanup. `saved_first` has what was unsaved."""

    checkpoint: CheckpointId
    freed_bytes: int
    warnings: tuple[str, ...] = ()
    waiting: bool = False
    saved_first: CheckpointId | None = None


@dataclass(frozen=True, slots=True)
class PathProblem:
    """A path that could not be restored, or that changed during the restore."""

    path: bytes
    reason: str


NOTHING_CHANGED = "nothing was changed"
RESTORE_DONE = "the restore was already done; to undo it: holdfast undo"
"""Said of a restore that is cancelled before it begins, or after it was finished."""


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """A finished restore. `conflicts` were changed while it ran; their bytes are in `safety`. `git`
    is where HEAD stays elsewhere than it was at the checkpoint. `kept` lists paths that the
    checkpoint does not have and that stay anyway; `missing` is what it had left out and is gone
    now. `verified` speaks of the `compared` files, and of no others.

    Not `recorded`: there was nothing to do and nothing was written. `record` and `safety` are then
    the HEAD there was and the target, which is what the workspace holds.
    """

    restored_to: CheckpointId
    record: CheckpointId
    safety: CheckpointId
    steps: tuple[Step, ...]
    skipped: tuple[PathProblem, ...] = ()
    conflicts: tuple[PathProblem, ...] = ()
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    verified: bool = True
    recorded: bool = True
    components: tuple[ComponentOutcome, ...] = ()
    git: GitDrift | None = None
    missing: tuple[Missing, ...] = ()
    compared: int = 0

    @property
    def files_changed(self) -> int:
        return sum(not isinstance(s.after or s.before, DirectoryEntry) for s in self.steps)


@dataclass(frozen=True, slots=True)
class RecoveredRestore:
    """An interrupted restore that was finished, or `rolled_back`. `restored_to` is the checkpoint
    it went to, and None if it had not begun. `overwritten` are files that changed between the
    interruption and the recovery, and that the recovery replaced or removed: `safety` has them, and
    undo returns to it."""

    kind: OperationKind = OperationKind.RESTORE
    restored_to: CheckpointId | None = None
    name: str | None = None
    rolled_back: bool = False
    files_changed: int = 0
    overwritten: tuple[bytes, ...] = ()
    safety: CheckpointId | None = None
