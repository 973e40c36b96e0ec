"""Work to be accepted, and what it looks like in a repository afterwards, read with plain git."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import SessionCheckpointer
from tests.components.git.repositories import git, write
from tests.support.tree_hash import describe


@contextmanager
def work_to_accept(place: Path, reason: str) -> Iterator[SessionCheckpointer]:
    """A session with two checkpoints: how it began, and the code at "three" for this reason."""
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        session.checkpoint(reason)
        yield session


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
