"""HEAD is elsewhere than at a checkpoint: files that come back then belong to another commit."""

from __future__ import annotations

from holdfast.domain.component_states import EXACT
from holdfast.domain.remarks import Remark
from holdfast.values.classes import dataclass

OFFERED = (EXACT, "branch")
"""The ways to bring git back with the files."""

TO_RESTORE_GIT = "--git exact or --git branch restores git as well"


@dataclass(frozen=True, slots=True)
class GitPlace:
    """Where HEAD is: a branch, None when it is detached, and a commit, None before the first."""

    branch: str | None
    commit: str | None

    def __str__(self) -> str:
        if self.commit is None:
            return f"{self.branch} (no commit yet)"
        return f"{self.branch or 'detached'}@{self.commit[:7]}"


@dataclass(frozen=True, slots=True)
class GitDrift:
    """Where git was at the checkpoint, and where it is. `changed_files` is what a commit of
    everything would contain after the restore; None when that is not known."""

    then: GitPlace
    now: GitPlace
    changed_files: int | None = None

    @property
    def on_one_branch(self) -> bool:
        """Whether commits were made, and no other branch was checked out."""
        return self.then.branch is not None and self.then.branch == self.now.branch

    def words(self, *, planned: bool = False) -> str:
        """`planned`: the restore has not happened yet. A remark if only commits were made since:
        that is how people work. On another branch, the files would be committed to it."""
        text = f"the checkpoint was made on {self.then}; git is on {self.now} and stays there"
        if self.changed_files is not None:
            files = "file" if self.changed_files == 1 else "files"
            when = "then" if planned else "now"
            text += f", so a commit would {when} contain {self.changed_files:,} changed {files}"
        text = f"{text}; {TO_RESTORE_GIT}"
        return Remark(text) if self.on_one_branch else text
