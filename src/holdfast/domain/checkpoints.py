"""A checkpoint as stored in the catalog, and the reasons for skipped paths."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.paths import GIT_DIRECTORY
from holdfast.values.classes import NamedTuple, dataclass


class Kind(StrEnum):
    """The cause of a checkpoint. The last two are records of restores."""

    MANUAL = "manual"
    INITIAL = "initial"
    MESSAGE = "message"
    TOOL = "tool"
    RISKY = "risky"
    INTERVAL = "interval"
    THRESHOLD = "threshold"
    END_OF_DAY = "end-of-day"
    MERGE = "merge"
    SAFETY = "safety"
    RESTORE = "restore"

    @property
    def is_record(self) -> bool:
        return self in (Kind.SAFETY, Kind.RESTORE)


RECORD_KINDS = (Kind.SAFETY, Kind.RESTORE)
AUTOMATIC_KINDS = (
    Kind.MESSAGE,
    Kind.TOOL,
    Kind.RISKY,
    Kind.INTERVAL,
    Kind.THRESHOLD,
    Kind.END_OF_DAY,
    Kind.MERGE,
)
"""Made by a trigger, not by a person; the first checkpoint of a session is neither."""

KINDS_OF_TYPE = {
    "manual": (Kind.MANUAL,),
    "auto": tuple(kind for kind in AUTOMATIC_KINDS if kind is not Kind.RISKY),
    "session": (Kind.INITIAL, *RECORD_KINDS),
    "risky": (Kind.RISKY,),
}
"""Kinds grouped into the four types that agent tools offer as filters."""


def kinds_named(text: str) -> tuple[Kind, ...]:
    """Parse kinds separated by commas; `auto` means all automatic ones. Empty if one is unknown."""
    kinds: list[Kind] = []
    for word in text.lower().split(","):
        if word in ("auto", "automatic"):
            kinds += AUTOMATIC_KINDS
            continue
        kind = next((kind for kind in Kind if kind.value == word), None)
        if kind is None:
            return ()
        kinds.append(kind)
    return tuple(kinds)


SETUP_TAG = "holdfast-setup"
"""The tag of checkpoints made around `install` or `uninstall`, so that files these remove are not
lost."""


class SkipReason(StrEnum):
    """Why a path is not in a checkpoint, or only in part."""

    IGNORED = "ignored"
    FILTERED = "excluded by file_filter"
    TOO_LARGE = "larger than max_file_size"
    SPECIAL = "special file"
    UNREADABLE = "unreadable"
    UNSTABLE = "changed while being read"

    GIT_DATA = "git data"
    OWN_DATA = "holdfast's own data"
    TOO_DEEP = "nested too deeply"
    XATTRS = "extended attributes not captured"
    OUTSIDE_LINK = "hardlink to a path outside the workspace"
    PURGED = "removed for good by holdfast purge"
    LOST = "lost because the store was damaged"
    SHARED_MEMORY = "recreated when the database is opened"
    OVER_BUDGET = "no room in the disk budget"
    TRANSACTION = "part of an open database transaction"
    WORKTREE = "a linked worktree: a separate workspace"
    REPOSITORY = "a repository: a separate workspace"
    NAMED = "ignored, but captured because a tool named it"
    UNKNOWN_INDEX = "the git index cannot be read, so ignored files that git tracks are left out"

    @property
    def is_failure(self) -> bool:
        """Failures make a save partial; the others are policy or notes."""
        return self in (
            SkipReason.UNREADABLE,
            SkipReason.UNSTABLE,
            SkipReason.TOO_DEEP,
            SkipReason.LOST,
            SkipReason.UNKNOWN_INDEX,
            SkipReason.OVER_BUDGET,
        )

    @property
    def is_another_workspace(self) -> bool:
        return self in (SkipReason.WORKTREE, SkipReason.REPOSITORY)

    @property
    def content_is_captured(self) -> bool:
        """Whether this is a note about a path that is in the checkpoint."""
        return self in (
            SkipReason.UNSTABLE,
            SkipReason.XATTRS,
            SkipReason.OUTSIDE_LINK,
            SkipReason.NAMED,
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """One path left out, with the reason and its detail (the rule, the size, the error)."""

    path: bytes
    reason: SkipReason
    detail: str = ""

    @property
    def is_expected(self) -> bool:
        """True for Holdfast's own marker, and for the repository, whose state is saved
        separately."""
        own = self.reason is SkipReason.GIT_DATA and self.path == GIT_DIRECTORY
        return own or self.reason is SkipReason.OWN_DATA

    def describe(self) -> str:
        return f"{self.reason.value} ({self.detail})" if self.detail else self.reason.value


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many paths differ from the parent."""

    added: int = 0
    modified: int = 0
    removed: int = 0

    @property
    def total(self) -> int:
        return self.added + self.modified + self.removed

    def to_dict(self) -> dict[str, int]:
        return {"added": self.added, "modified": self.modified, "removed": self.removed}


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the conversation a checkpoint was taken: after which message, for which tool use."""

    message_index: int | None = None
    tool_use_id: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One catalog row: a tree, its intent and its place in the history.

    `sequence` orders checkpoints (I7); `created_at_ns` is wall-clock time, for display only.
    `report` names the object that lists everything left out. `components` names the object that
    lists state other than files. `round` is the round of work it belongs to.
    """

    sequence: int
    id: CheckpointId
    session_id: SessionId
    parent: CheckpointId | None
    kind: Kind
    created_at_ns: int
    tree: Digest
    intent: SnapshotIntent
    files: int
    size_bytes: int
    changed: ChangeCounts
    report: Digest | None = None
    restores_from: CheckpointId | None = None
    partial: bool = False
    message_index: int | None = None
    tool_use_id: str | None = None
    round: int = 1
    components: Digest | None = None

    @property
    def name(self) -> str | None:
        return self.intent.checkpoint_name

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(self.created_at_ns / 1e9, tz=UTC)


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint before a catalog gives it a sequence number, as in a bundle."""

    id: CheckpointId
    session_id: SessionId
    parent: CheckpointId | None
    kind: Kind
    created_at_ns: int
    tree: Digest
    intent: SnapshotIntent
    files: int
    size_bytes: int
    changed: ChangeCounts
    report: Digest | None = None
    restores_from: CheckpointId | None = None
    partial: bool = False
    message_index: int | None = None
    tool_use_id: str | None = None
    round: int = 1
    components: Digest | None = None


class Milestone(NamedTuple):
    """The part of a checkpoint needed to count a whole session.

    A plain tuple, because tens of thousands are read at once.
    """

    sequence: int
    id: CheckpointId
    kind: Kind
    message_index: int | None
