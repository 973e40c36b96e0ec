"""Whether a main branch that HEAD stands on has gained a merge, or the work of another branch.

    HEAD and its branch, read as files → moved? → the branch's log tells how → else git is asked

Guarantee: while the branch stands where it stood, no process is started, and a handful of small
files is read. Not guaranteed: that what was squashed, picked or rebased onto it is taken for a
merge; it makes commits like any others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.components.git.plain_files import opened
from holdfast.components.git.references import BrokenReference, read_head, read_reference
from holdfast.components.git.repository import Repository, find_repository
from holdfast.domain.git.merges import MainBranches, Unclear, merged_since, read_moves

_BRANCHES = b"refs/heads/"
_LOG_BYTES = 64 << 10
_ASKED_S = 20.0


def main_branches(workspace: Path, names: Sequence[str]) -> MainBranches | None:
    """None where there is no repository, or none that can be read."""
    repository = find_repository(workspace)
    if repository is None:
        return None
    wanted = {_BRANCHES + name.encode("utf-8", "surrogateescape"): name for name in names}
    try:
        head = read_head(repository)
        tips = {
            name: commit
            for ref, name in wanted.items()
            if (commit := head.commit if ref == head.ref else read_reference(repository, ref))
        }
    except (BrokenReference, OSError):
        return None
    current = wanted.get(head.ref or b"")
    under_way = current is not None and os.path.exists(repository.own(b"MERGE_HEAD"))
    return MainBranches(tips, current if current in tips else None, under_way)


def merged_into(
    workspace: Path, branch: str, known: str, tip: str, environment: Mapping[str, str]
) -> str | None:
    """What was merged into a branch between the commits `known` and `tip`, in words."""
    repository = find_repository(workspace)
    if repository is None:
        return None
    ref = _BRANCHES + branch.encode("utf-8", "surrogateescape")
    merged = merged_since(read_moves(_end_of(repository.shared(b"logs", ref))), known, tip)
    if isinstance(merged, Unclear):
        merged = _asked(repository, ref, known, tip, environment)
    return None if merged is None else f"{merged} into {branch}"


def _end_of(path: bytes) -> bytes:
    """The last entries of a log, however long it is."""
    try:
        with opened(path) as fd:
            if fd is None:
                return b""
            size = os.fstat(fd).st_size
            return os.pread(fd, _LOG_BYTES, max(size - _LOG_BYTES, 0))
    except OSError:
        return b""


def _asked(
    repository: Repository, ref: bytes, known: str, tip: str, environment: Mapping[str, str]
) -> str | None:
    """Without a log: a commit with two parents is new, or another branch stands where it went."""
    from holdfast.components.git.commands import Git, GitFailed

    git = Git(repository, environment, _ASKED_S)
    try:
        if git.run("rev-list", "--min-parents=2", "--max-count=1", f"{known}..{tip}", "--"):
            return "Merged a branch"
        if git.run("rev-list", "--max-count=1", f"{tip}..{known}", "--"):
            return None  # it went elsewhere, not forward
        names = git.run(
            "for-each-ref", "--points-at", tip, "--format=%(refname)", "refs/heads", "refs/remotes"
        )
    except GitFailed:
        return None
    own = ref.removeprefix(_BRANCHES)
    others = [
        name.split(b"/", 2)[2]
        for name in names.splitlines()
        if name != ref and not name.endswith((b"/" + own, b"/HEAD"))
    ]
    return f"Merged {os.fsdecode(others[0])[:80]}" if others else None
