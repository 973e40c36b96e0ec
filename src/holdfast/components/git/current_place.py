"""Where HEAD is now and how many files are dirty, for a screen: nothing is captured.

git is as a checkpoint has it → what was dirty then, and paths that changed since: no process
else                          → every path of the index, and what is staged (1 process)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from holdfast.components.git.dirty_files import all_dirty, dirty_now
from holdfast.components.git.index_file import GITLINK, read_index
from holdfast.components.git.plain_files import blocks_of, opened
from holdfast.components.git.references import Head, read_head
from holdfast.components.git.repository import Repository
from holdfast.components.git.states import HEADS
from holdfast.components.git.status import is_as_before, submodule_commit
from holdfast.domain.git.index import UnknownIndex
from holdfast.domain.git.place import PresentGit
from holdfast.domain.paths import to_text
from holdfast.ports.component import CaptureRequest


def present_as_before(repository: Repository, request: CaptureRequest) -> PresentGit | None:
    """None when the state before does not say it."""
    previous = request.previous
    if previous is None or not is_as_before(repository, previous, now_ns=request.now_ns):
        return None
    found = dirty_now(repository, request, previous, request.changed())
    return None if found is None else _place(read_head(repository), int(found["count"]))


def present(
    repository: Repository, environment: Mapping[str, str], request: CaptureRequest
) -> PresentGit:
    head = read_head(repository)
    return _place(head, _dirty(repository, environment, request, head))


def _place(head: Head, dirty: int | None) -> PresentGit:
    branch = None if head.ref is None else to_text(head.ref.removeprefix(HEADS))
    return PresentGit(branch, head.commit, dirty)


def _dirty(
    repository: Repository, environment: Mapping[str, str], request: CaptureRequest, head: Head
) -> int | None:
    """None where that is not known."""
    from holdfast.components.git.commands import Git, GitFailed
    from holdfast.components.git.uncommitted import read_staged

    try:
        with opened(repository.own(b"index")) as index_fd:
            if index_fd is None:
                return 0
            git = Git(repository, environment, request.timeout_s)
            staged = [path for _, path in read_staged(git, head.commit).rows]
            submodules = _submodules(repository, head, index_fd)
            workspace = os.fsencode(request.workspace)
            found = all_dirty(
                repository, workspace, index_fd, head.commit, staged, submodules, request.seen
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
