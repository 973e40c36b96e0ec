"""Where HEAD is now and how many files are dirty, for a screen: nothing is captured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.dirty import all_dirty
from holdfast.components.git.finding import Repository
from holdfast.components.git.index_file import GITLINK, read_index
from holdfast.components.git.looking import submodule_commit
from holdfast.components.git.plain_files import blocks_of, opened
from holdfast.components.git.references import Head, read_head
from holdfast.components.git.staging import read_staged
from holdfast.components.git.states import HEADS
from holdfast.domain.git_index import UnknownIndex
from holdfast.domain.git_place import PresentGit
from holdfast.domain.paths import to_text
from holdfast.ports.component import SeenDirectory

Seen = Callable[[], Iterable[SeenDirectory]]


def present(git: Git, workspace: bytes, seen: Seen) -> PresentGit:
    head = read_head(git.repository)
    branch = None if head.ref is None else to_text(head.ref.removeprefix(HEADS))
    return PresentGit(branch, head.commit, _dirty(git, workspace, head, seen))


def _dirty(git: Git, workspace: bytes, head: Head, seen: Seen) -> int | None:
    """None where that is not known."""
    repository = git.repository
    try:
        with opened(repository.own(b"index")) as index_fd:
            if index_fd is None:
                return 0
            staged = [path for _, path in read_staged(git, head.commit).rows]
            submodules = _submodules(repository, head, index_fd)
            found = all_dirty(
                repository, workspace, index_fd, head.commit, staged, submodules, seen
            )
    except (GitFailed, UnknownIndex, OSError):
        return None
    return None if found is None else int(found["count"])


def _submodules(repository: Repository, head: Head, index_fd: int) -> list[list[Any]]:
    """Path, the commit that the index names, and the one that is checked out."""
    if not os.path.exists(os.path.join(repository.top, b".gitmodules")):
        return []
    entries = read_index(b"".join(blocks_of(index_fd)), len(head.commit or "0" * 40) // 2)
    return [
        [to_text(entry.path), entry.oid, submodule_commit(repository, entry.path)]
        for entry in entries
        if entry.mode == GITLINK
    ]
