"""The outcome of a save or a restore: what was done, what was not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.ids import CheckpointId
from holdfast.domain.operations import OperationKind
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.values.classes import dataclass

if TYPE_CHECKING:  # saves use this module too, without plans
    from holdfast.domain.git.drift import GitDrift
    from holdfast.domain.restore.plan import ComponentOutcome, Kept, Missing, Step


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """A durable checkpoint and its report. `deduplicated`: nothing had changed since a moment ago,
    and `checkpoint` is the existing one (SE-12). `degraded` lists what components could not
    capture, each with the reason and the fix. `may_have_databases` is False if no file near the top
    of the workspace is named like a SQLite database."""

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
    """The safety checkpoint of unsaved changes. None if there were none, or if they could not be
    saved, as `warnings` then say."""

    checkpoint: CheckpointId | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """A deleted checkpoint and the freed space. `waiting`: the space is small, and the next cleanup
    frees it. `saved_first` is the safety checkpoint of unsaved changes."""

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
"""Messages for a restore that was cancelled before it began, or after it finished."""


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """A finished restore. `conflicts` were changed while it ran; their bytes are in `safety`. `git`
    is set if HEAD is elsewhere than at the checkpoint. `kept` lists paths that are not in the
    checkpoint and stay anyway. `missing` lists paths that the checkpoint had left out and that are
    gone now. `verified` covers only the `compared` files.

    Not `recorded`: there was nothing to do, and nothing was written. Then `record` is the current
    HEAD, and `safety` is the target, which equals the workspace.
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
    """An interrupted restore that was finished, or `rolled_back`. `restored_to` is its target
    checkpoint, None if it had not begun. `overwritten` lists files changed between the interruption
    and the recovery, which the recovery replaced or removed. They are saved in `safety`, and undo
    restores them."""

    kind: OperationKind = OperationKind.RESTORE
    restored_to: CheckpointId | None = None
    name: str | None = None
    rolled_back: bool = False
    files_changed: int = 0
    overwritten: tuple[bytes, ...] = ()
    safety: CheckpointId | None = None
