"""Which repository a workspace belongs to, found as git finds it, with a few system calls.

The nearest `.git` from the workspace upwards: a directory, or a file that leads to one (a linked
worktree, a submodule). One above the workspace only counts when it belongs to whoever runs this:
anybody may put a `.git` into a directory that all can write to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.components.git.plain_files import read_small
from holdfast.values.classes import dataclass, replace

_LINK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Repository:
    """`git_dir` holds what belongs to this worktree (HEAD, index), `common_dir` what all share.
    `ours` are branches that Holdfast writes itself: no part of the user's work."""

    top: bytes
    git_dir: bytes
    common_dir: bytes
    ours: frozenset[bytes] = frozenset()

    def own(self, *names: bytes) -> bytes:
        return os.path.join(self.git_dir, *names)

    def shared(self, *names: bytes) -> bytes:
        return os.path.join(self.common_dir, *names)


def find_repository(workspace: Path, *, ours: frozenset[bytes] = frozenset()) -> Repository | None:
    """None when there is none. One that is broken is found as well, as long as it was one."""
    at = os.fsencode(workspace)
    inside = True
    while True:
        found = _repository_at(at, inside)
        if found is not None:
            return replace(found, ours=ours) if ours else found
        above = os.path.dirname(at)
        if above == at:
            return None
        at, inside = above, False


def repository_at(top: bytes) -> Repository | None:
    """The one that is in this very directory."""
    return _repository_at(top, inside=True)


def _repository_at(top: bytes, inside: bool) -> Repository | None:
    link = os.path.join(top, b".git")
    try:
        status = os.stat(link)
    except OSError:
        return None
    if not inside and status.st_uid != os.geteuid():
        return None
    if stat.S_ISDIR(status.st_mode):
        git_dir = link
    elif stat.S_ISREG(status.st_mode):
        git_dir = linked_directory(top) or link
    else:
        return None
    common = common_directory(git_dir)
    # A directory of that name which never was a repository is none of our business.
    if git_dir != link and not os.path.isdir(git_dir):
        return Repository(top, git_dir, git_dir)
    return Repository(top, git_dir, common) if os.path.isdir(common + b"/objects") else None


def linked_directory(top: bytes) -> bytes | None:
    """Where the file `.git` of a worktree or submodule leads."""
    text = read_small(os.path.join(top, b".git"), _LINK_BYTES)
    if text is None or not text.startswith(b"gitdir:"):
        return None
    return os.path.normpath(os.path.join(top, text[len(b"gitdir:") :].strip(b" \n")))


def common_directory(git_dir: bytes) -> bytes:
    text = read_small(os.path.join(git_dir, b"commondir"), _LINK_BYTES)
    if text is None:
        return git_dir
    return os.path.normpath(os.path.join(git_dir, text.strip(b"\n")))
