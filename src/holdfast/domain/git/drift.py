"""HEAD is elsewhere than at a checkpoint: files that come back then belong to another commit."""

from __future__ import annotations

from holdfast.domain.component_states import EXACT
from holdfast.domain.wording import Remark, count_words
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
    everything would contain after the restore, `new_files` of them unknown to git; None when that
    is not known."""

    then: GitPlace
    now: GitPlace
    changed_files: int | None = None
    new_files: int = 0

    @property
    def matters(self) -> bool:
        """Whether a commit could surprise: not if nothing is left to commit on the same branch."""
        return not self.on_one_branch or self.changed_files != 0

    @property
    def on_one_branch(self) -> bool:
        """Whether commits were made, and no other branch was checked out."""
        return self.then.branch is not None and self.then.branch == self.now.branch

    def words(self, *, planned: bool = False) -> str:
        """`planned`: the restore has not happened yet. A remark if only commits were made since:
        that is how people work. On another branch, the files would be committed to it."""
        text = f"the checkpoint was made on {self.then}; git is on {self.now} and stays there"
        if self.changed_files is not None:
            when = "then" if planned else "now"
            text += (
                f", so a commit would {when} contain {_files(self.changed_files, self.new_files)}"
            )
        text = f"{text}; {TO_RESTORE_GIT}"
        return Remark(text) if self.on_one_branch else text


def _files(all_of_them: int, new: int) -> str:
    """Changed files are counted as dirty ones are, without those that git does not know."""
    changed = all_of_them - new
    if not new:
        return count_words(changed, "changed file")
    files = count_words(new, "new file")
    return f"{changed:,} changed and {files}" if changed else files
