"""The git repository of a workspace as a place to hand work over to: commits, and a mirror.

The engine decides what is handed over and reads the content; an adapter knows git. Nothing here
ever changes a file of the workspace, talks to a remote, or moves a branch that was not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from holdfast.domain.trees.entries import FileEntry, SymlinkEntry

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.git.branches import MainBranches
    from holdfast.domain.git.commits import AcceptOutcome, AcceptPlan
    from holdfast.domain.git.mirror_commits import Approvals
    from holdfast.domain.ids import CheckpointId, Digest
    from holdfast.domain.trees.tree import Tree

Content: TypeAlias = FileEntry | SymlinkEntry
"""What git can hold: it knows no directories."""

ContentReader: TypeAlias = Callable[[FileEntry], Iterator[bytes]]
"""The bytes of a file in a checkpoint, piece by piece and proven."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path of the workspace and what it shall hold; None for nothing."""

    path: bytes
    content: Content | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """Changes that shall become one commit. `rules` are the ignore and attribute files that apply
    to them, as the checkpoint has them; `seen_commit` is HEAD's commit when it was taken, if that
    is known; `accepted` are commits that were made of what it grew from."""

    workspace: Path
    changes: Sequence[PathChange]
    rules: Sequence[PathChange]
    read: ContentReader
    seen_commit: str | None = None
    accepted: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CommitWish:
    """How the commit shall be made. With `edit` the user's editor is opened on the message, on the
    terminal of this process. `expected_head` is what a preview saw (`plan.head`); with `checked` a
    commit is made only if it is still so. Hooks that take longer than `timeout_s` are ended; None
    for no limit, and there is none while the user edits."""

    message: str
    edit: bool = False
    checked: bool = False
    expected_head: str | None = None
    timeout_s: float | None = None


class MirroredHistory(Protocol):
    """What a mirror shows: checkpoints in their order, and names for some of them."""

    @property
    def owner(self) -> str:
        """Tells one store's mirror from another's."""

    def after(self, sequence: int) -> Sequence[Checkpoint]:
        """Some of the next checkpoints in order; none when there are no more."""

    def tree(self, digest: Digest) -> Tree:
        """`StoreDamaged` when it is not there, or not what it was."""

    def content(self, entry: FileEntry) -> Iterator[bytes]: ...

    def names(self) -> Mapping[bytes, CheckpointId]:
        """Names of refs, without the place where they lie."""

    def approvals(self, approved: CheckpointId) -> Approvals:
        """Those of the session that this checkpoint was approved in, up to now."""

    def leaves_out(self, path: bytes) -> bool:
        """Whether a path is not for git."""

    def has_time(self) -> bool:
        """Whether another checkpoint may be begun; the first one always may."""


@dataclass(frozen=True, slots=True)
class MirrorPlace:
    """A branch, and where the names lie: both whole, such as `refs/heads/holdfast-checkpoints` and
    `refs/holdfast-checkpoints/`."""

    branch: bytes
    names: bytes


@dataclass(frozen=True, slots=True)
class MirrorOutcome:
    """How many commits were added; not `complete` when time ran out. Failed parts are in
    `warnings`, each with the way out."""

    commits: int = 0
    complete: bool = True
    warnings: tuple[str, ...] = ()


class WorkRepository(Protocol):
    """The repository that a workspace belongs to."""

    def main_branches(self, workspace: Path, names: Sequence[str]) -> MainBranches | None:
        """None where there is no repository, or none that can be read. Starts no process."""

    def merged_into(self, workspace: Path, branch: str, *, since: str, tip: str) -> str | None:
        """What was merged into a branch between two commits, in words; None for nothing."""

    def is_unborn(self, workspace: Path) -> bool:
        """Whether the present branch has no commit yet; `Refused` when there is no repository."""

    def plan_commit(self, work: HandOver) -> AcceptPlan:
        """What a commit would hold, and what is in its way; nothing is written anywhere that
        anybody else can see."""

    def commit(self, work: HandOver, wish: CommitWish) -> AcceptOutcome:
        """Make the commit on the present branch, with the user's hooks, identity and signature;
        `Refused` when something is in its way. The index then agrees with it in those paths."""

    def mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        """Add what is missing to the mirror. Never raises for trouble with git or the store, and
        never touches HEAD, the index, files or any other branch."""

    def remake_mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        """Take the mirror away and make it again from what there is now. Refs besides the mirror
        that have some of the old one are in `warnings`."""

    def former_mirrors(self, workspace: Path, owner: str) -> Sequence[str]:
        """Refs that hold a mirror of this store although none is asked for; or, where that cannot
        be found out, why."""

    def bundle(self, place: MirrorPlace, history: MirroredHistory, fd: int) -> MirrorOutcome:
        """Write a git bundle that holds what a mirror would, and can be cloned."""
