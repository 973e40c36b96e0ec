"""HEAD now or at a checkpoint, as in `main@1a2b3c4, 3 dirty`, and the differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.component_states import EXACT
from holdfast.domain.wording import Remark, count_words, printable
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState

OFFERED = (EXACT, "branch")
"""The modes for restoring git with the files."""

TO_RESTORE_GIT = "to restore git too: --git exact or --git branch"


@dataclass(frozen=True, slots=True)
class GitPlace:
    """Where HEAD is. `branch` is None if detached, `commit` is None before the first."""

    branch: str | None
    commit: str | None

    def __str__(self) -> str:
        if self.commit is None:
            return f"{self.branch} (no commit yet)"
        return f"{self.branch or 'detached'}@{self.commit[:7]}"


@dataclass(frozen=True, slots=True)
class GitDrift:
    """Where git was at the checkpoint, and where it is now. `changed_files` counts the files that a
    commit of everything would contain after the restore, None if unknown; `new_files` of them are
    untracked. `unstaged_files` were staged at the checkpoint and are not now; counted only if HEAD
    has not moved."""

    then: GitPlace
    now: GitPlace
    changed_files: int | None = None
    new_files: int = 0
    unstaged_files: int = 0

    @property
    def moved(self) -> bool:
        return self.then != self.now

    @property
    def matters(self) -> bool:
        """Whether a commit could surprise the user: not if the branch is the same and nothing is
        left to commit."""
        return not self.on_one_branch or self.changed_files != 0

    @property
    def on_one_branch(self) -> bool:
        """Whether the same branch is still checked out; commits may have been made."""
        return self.then.branch is not None and self.then.branch == self.now.branch

    def words(self, *, planned: bool = False) -> str:
        """`planned`: the restore has not happened yet. Only a remark if just commits were made,
        which is normal work. On another branch, the files would be committed there."""
        if not self.moved:
            files = count_words(self.unstaged_files, "file")
            are, was = ("is", "was") if self.unstaged_files == 1 else ("are", "were")
            text = f"{files} that {was} staged at the checkpoint {are} not staged now"
            return Remark(f"{text}; {TO_RESTORE_GIT}")
        text = f"the checkpoint was made on {self.then}; git is on {self.now} and stays there"
        if self.changed_files is not None:
            when = "then" if planned else "now"
            text += (
                f", so a commit would {when} contain {_files(self.changed_files, self.new_files)}"
            )
        text = f"{text}; {TO_RESTORE_GIT}"
        return Remark(text) if self.on_one_branch else text


def _files(all_of_them: int, new: int) -> str:
    """Counts new files separately, because dirty files do not include them."""
    changed = all_of_them - new
    if not new:
        return count_words(changed, "changed file")
    files = count_words(new, "new file")
    return f"{changed:,} changed and {files}" if changed else files


_SHORT = 7


@dataclass(frozen=True, slots=True)
class PresentGit:
    """Where HEAD is now. `branch` is None if detached, `commit` is None before the first. `dirty`
    counts tracked files that are changed, deleted or staged, None if unknown."""

    branch: str | None
    commit: str | None
    dirty: int | None

    def __str__(self) -> str:
        return head_words(self.branch, self.commit, self.dirty)


def git_place(state: ComponentState | None, checkpoint: Checkpoint | None) -> str | None:
    """The recorded place; None if there was no repository or nothing usable was recorded."""
    head = None if state is None else state.facts.get("head")
    if state is None or not isinstance(head, Mapping):
        return None
    ref, commit = head.get("ref"), head.get("commit")
    branch = str(ref).removeprefix("refs/heads/") if ref else None
    dirty = dirty_files(state, checkpoint)
    return head_words(branch, commit and str(commit), None if dirty is None else dirty["count"])


def head_words(branch: str | None, commit: str | None, dirty: int | None) -> str:
    name = printable(branch) if branch else "detached"
    words = f"{name}@{commit[:_SHORT]}" if commit else f"{name}, no commit yet"
    return f"{words}, {dirty:,} dirty" if dirty else words


def dirty_files(state: ComponentState, checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    """How many tracked files were changed, deleted or staged, and the first few; None if unknown.
    Restore records are skipped, because theirs may predate the restore."""
    dirty = state.notes.get("dirty")
    if checkpoint is None or checkpoint.kind.is_record:
        return None
    if not isinstance(dirty, Mapping) or type(dirty.get("count")) is not int:
        return None
    files = dirty.get("files")
    names = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
    return {"count": dirty["count"], "files": names}
