"""Where a repository is, or was at a checkpoint, in a few words: `main@1a2b3c4, 3 dirty`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.wording import printable
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.component_states import ComponentState

_SHORT = 7


@dataclass(frozen=True, slots=True)
class PresentGit:
    """Where HEAD is now: a branch, None when it is detached; a commit, None before the first; and
    how many tracked files are changed, deleted or staged, None where that is not known."""

    branch: str | None
    commit: str | None
    dirty: int | None

    def __str__(self) -> str:
        return _words(self.branch, self.commit, self.dirty)


def git_place(state: ComponentState | None, checkpoint: Checkpoint | None) -> str | None:
    """From what the component recorded; None where there was no repository, or nothing usable."""
    head = None if state is None else state.facts.get("head")
    if state is None or not isinstance(head, Mapping):
        return None
    ref, commit = head.get("ref"), head.get("commit")
    branch = str(ref).removeprefix("refs/heads/") if ref else None
    dirty = dirty_files(state, checkpoint)
    return _words(branch, commit and str(commit), None if dirty is None else dirty["count"])


def _words(branch: str | None, commit: str | None, dirty: int | None) -> str:
    name = printable(branch) if branch else "detached"
    words = f"{name}@{commit[:_SHORT]}" if commit else f"{name}, no commit yet"
    return f"{words}, {dirty:,} dirty" if dirty else words


def dirty_files(state: ComponentState, checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    """How many tracked files were changed, deleted or staged, and the first of them; None where
    that is not known. The records of a restore may say what was before it."""
    dirty = state.notes.get("dirty")
    if checkpoint is None or checkpoint.kind.is_record:
        return None
    if not isinstance(dirty, Mapping) or type(dirty.get("count")) is not int:
        return None
    files = dirty.get("files")
    names = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
    return {"count": dirty["count"], "files": names}
