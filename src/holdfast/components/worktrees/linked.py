"""The linked worktrees of a repository as they are now, and which of their files git misses.

A worktree is its administrative directory below `worktrees/` of the repository, and the directory
whose `.git` leads back there. One whose directory is gone is still registered until it is pruned.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast.components.git.commands import Git
from holdfast.components.git.repository import Repository, linked_directory
from holdfast.components.git.status import read_worktrees
from holdfast.domain.paths import from_text, is_safe_name
from holdfast.domain.trees.objects import digest_of

_GITLINK = b"160000"
_LINE_BYTES = 4096
_OID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Linked:
    """One that is registered; `is_there` tells that its directory leads back to it. `born` tells it
    from every other one, wherever it is moved to; None when nothing does."""

    path: bytes
    ref: bytes | None
    commit: str | None
    git_dir: bytes
    is_there: bool
    born: str | None = None

    def repository(self, common_dir: bytes) -> Repository:
        return Repository(self.path, self.git_dir, common_dir)


def linked_worktrees(repository: Repository) -> list[Linked]:
    """All but the one that the workspace itself is in."""
    found = []
    for row in read_worktrees(repository):
        path = from_text(row["path"])
        if row["here"] or not os.path.isabs(path):
            continue
        git_dir = repository.shared(b"worktrees", from_text(row["name"]))
        there = linked_directory(path)
        found.append(
            Linked(
                os.path.normpath(path),
                None if row["ref"] is None else from_text(row["ref"]),
                row["commit"],
                git_dir,
                there is not None and os.path.realpath(there) == os.path.realpath(git_dir),
                _born(git_dir),
            )
        )
    return found


def _born(git_dir: bytes) -> str | None:
    """Its name in the repository, and the first line of its log: who made it when, and where."""
    try:
        fd = os.open(os.path.join(git_dir, b"logs/HEAD"), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        line, end, _ = os.read(fd, _LINE_BYTES).partition(b"\n")
    except OSError:
        return None
    finally:
        os.close(fd)
    # A log that was cut off begins with some other commit, and proves nothing.
    if not end or not line.startswith(b"0" * _OID_LENGTH):
        return None
    return digest_of(os.path.basename(git_dir) + b"\n" + line).hex()


def changed_paths(git: Git) -> list[bytes]:
    """Paths whose files are not those of the index, as far as their times tell, and paths that git
    neither knows nor ignores. No content is read."""
    raw = git.run("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
    fields = raw.split(b"\0")
    changed = {
        path
        for head, path in zip(fields[0::2], fields[1::2], strict=False)
        if _GITLINK not in head.lstrip(b":").split(b" ")[:2]
    }
    others = git.run("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    # A directory stands for a repository in it, which is not of this worktree.
    changed.update(path for path in others if path and not path.endswith(b"/"))
    return sorted(path for path in changed if all(map(is_safe_name, path.split(b"/"))))


def unknown_to_git(git: Git) -> list[bytes]:
    """Everything that no index has, ignored or not; a directory with a slash behind it stands for
    another repository, and so does a submodule."""
    others = [path for path in git.run("ls-files", "-z", "--others").split(b"\0") if path]
    listed = git.run("ls-files", "-z", "--stage").split(b"\0")
    submodules = [line.partition(b"\t")[2] + b"/" for line in listed if line.startswith(_GITLINK)]
    return others + submodules
