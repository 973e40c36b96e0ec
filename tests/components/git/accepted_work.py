"""What accepted work looks like in a repository, read with plain git."""

from __future__ import annotations

from pathlib import Path

from tests.components.git.repositories import git, write
from tests.support.tree_hash import describe


def files(place: Path) -> dict[bytes, object]:
    return {
        path: node
        for path, node in describe(place).items()
        if b".git" not in path.split(b"/") and not path.startswith(b".holdfast")
    }


def committed(place: Path, commit_id: str = "HEAD") -> dict[str, str]:
    """What a commit changed: path to status letter."""
    listed = git(place, "show", "--name-status", "--no-renames", "--format=", "-z", commit_id)
    fields = listed.split("\0")[:-1]
    return dict(zip(fields[1::2], fields[0::2], strict=True))


def hook(place: Path, name: str, body: str) -> None:
    path = place / ".git/hooks" / name
    write(path, f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
