"""The workspace's git repository as a target for commits and a mirror.

The engine decides what to commit and reads the content; an adapter runs git. Nothing here ever
changes a file of the workspace, contacts a remote, or moves a branch that was not named.
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
"""The content that git can hold; it has no directories."""

ContentReader: TypeAlias = Callable[[FileEntry], Iterator[bytes]]
"""The verified bytes of a file in a checkpoint, in pieces."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path of the workspace and its new content; None to remove it."""

    path: bytes
    content: Content | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """Changes to commit. `rules` are the ignore and attribute files that apply to them, as in the
    checkpoint. `seen_commit` is HEAD's commit at the checkpoint, if known. `accepted` are commits
    made from earlier checkpoints in its history."""

    workspace: Path
    changes: Sequence[PathChange]
    rules: Sequence[PathChange]
    read: ContentReader
    seen_commit: str | None = None
    accepted: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CommitWish:
    """How to make the commit.

    With `edit`, the user's editor opens on the message, in this process's terminal. `expected_head`
    is the head of a preview (`plan.head`); with `checked`, the commit is made only if HEAD is still
    there. Hooks that take longer than `timeout_s` are stopped; None means no limit. Editing the
    message does not count.
    """

    message: str
    edit: bool = False
    checked: bool = False
    expected_head: str | None = None
    timeout_s: float | None = None


class MirroredHistory(Protocol):
    """The content of a mirror: checkpoints in order, and names for some of them."""

    @property
    def owner(self) -> str:
        """Distinguishes this store's mirror from others."""

    def after(self, sequence: int) -> Sequence[Checkpoint]:
        """Some of the next checkpoints, in order; empty at the end."""

    def tree(self, digest: Digest) -> Tree:
        """`StoreDamaged` if the tree is missing or damaged."""

    def content(self, entry: FileEntry) -> Iterator[bytes]: ...

    def names(self) -> Mapping[bytes, CheckpointId]:
        """Ref names, without their prefix."""

    def approvals(self, approved: CheckpointId) -> Approvals:
        """All approvals so far in the session of this approved checkpoint."""

    def leaves_out(self, path: bytes) -> bool:
        """Whether a path is left out of git."""

    def has_time(self) -> bool:
        """Whether there is time for another checkpoint; always for the first one."""


@dataclass(frozen=True, slots=True)
class MirrorPlace:
    """A branch, and the prefix of the names, both in full, such as
    `refs/heads/holdfast-checkpoints` and `refs/holdfast-checkpoints/`."""

    branch: bytes
    names: bytes


@dataclass(frozen=True, slots=True)
class MirrorOutcome:
    """How many commits were added; not `complete` if time ran out. `warnings` lists failed parts,
    each with a fix."""

    commits: int = 0
    complete: bool = True
    warnings: tuple[str, ...] = ()


class WorkRepository(Protocol):
    """The repository that a workspace belongs to."""

    def main_branches(self, workspace: Path, names: Sequence[str]) -> MainBranches | None:
        """None if there is no readable repository. Starts no process."""

    def merged_into(self, workspace: Path, branch: str, *, since: str, tip: str) -> str | None:
        """A description of what was merged into a branch between two commits; None if nothing
        was."""

    def is_unborn(self, workspace: Path) -> bool:
        """Whether the current branch has no commit yet; `Refused` without a repository."""

    def plan_commit(self, work: HandOver) -> AcceptPlan:
        """What a commit would contain, and what prevents it. Nothing that others can see is
        written."""

    def commit(self, work: HandOver, wish: CommitWish) -> AcceptOutcome:
        """Commit to the current branch, with the user's hooks, identity and signature. `Refused` if
        something prevents it. Afterwards, the index matches the commit in those paths."""

    def mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        """Add missing checkpoints to the mirror. Never raises for problems with git or the store,
        and never touches HEAD, the index, files or any other branch."""

    def remake_mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        """Delete the mirror and rebuild it from the current history. Other refs that contain old
        mirror commits are listed in `warnings`."""

    def former_mirrors(self, workspace: Path, owner: str) -> Sequence[str]:
        """Refs with a mirror of this store although no mirror is configured; or the reason why that
        is unknown."""

    def bundle(self, place: MirrorPlace, history: MirroredHistory, fd: int) -> MirrorOutcome:
        """Write a git bundle with the content of a mirror, for `git clone`."""
