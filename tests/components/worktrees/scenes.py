"""Repositories with several worktrees, and pictures of them by plain git and plain files."""

from __future__ import annotations

from pathlib import Path

from tests.components.git.repositories import git, with_history, write
from tests.support.tree_hash import Node, describe


def with_worktrees(place: Path) -> Path:
    """One on a branch, with staged, changed, deleted and unknown files; one on no branch."""
    with_history(place)
    side, loose = place.parent / "side-work", place.parent / "loose-work"
    git(place, "worktree", "add", "-q", str(side), "side")
    git(place, "worktree", "add", "-q", "--detach", str(loose), "main~1")
    write(side / "code.txt", "staged in the worktree\n")
    git(side, "add", "code.txt")
    write(side / "code.txt", "and changed again\n")
    (side / "docs/guide.txt").unlink()
    write(side / "deep/new.txt", "nobody knows\n")
    (side / "run.sh").write_text("#!/bin/sh\n")
    (side / "run.sh").chmod(0o755)
    (side / "link").symlink_to("code.txt")
    write(loose / "code.txt", "changed here\n")
    return place


def worktrees_picture(place: Path) -> dict[str, object]:
    """The HEAD of each, what git says about it, and all of its files."""
    seen: dict[str, object] = {
        "refs": git(place, "for-each-ref", "refs/heads", "refs/tags", "refs/stash")
    }
    for line in git(place, "worktree", "list", "--porcelain").split("\n\n"):
        rows = line.split("\n")
        path = Path(rows[0].removeprefix("worktree "))
        if not rows[0] or path == place:
            continue
        if not path.exists():  # git still knows it
            seen[str(path)] = rows[1:]
            continue
        status = git(path, "status", "--porcelain")
        seen[str(path)] = (rows[1:], status, worktree_files(path))
        seen[f"{path} staged"] = git(path, "ls-files", "--stage")
    return seen


def worktree_files(path: Path) -> dict[bytes, Node]:
    """Files and links; git knows no directories."""
    found = describe(path).items()
    return {name: node for name, node in found if name != b".git" and node.kind != "directory"}
