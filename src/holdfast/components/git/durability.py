"""Makes files durable that git wrote. Git syncs objects, but not directories, references and files
that it checks out.

Links are not followed: their text is in their directory. Files that are gone need no sync.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from holdfast.components.git.loose_objects import sync_all
from holdfast.components.git.repository import Repository

_MANY = 500


def sync_tree(top: bytes) -> None:
    """Sync a directory with everything below it."""
    _sync_paths([top, *_below(top)])


def sync_changed(top: bytes, paths: Iterable[bytes]) -> None:
    """Sync files below a directory that were written or removed, and all directories above them."""
    found = {top}
    for path in paths:
        while path:
            found.add(os.path.join(top, path))
            path = path.rpartition(b"/")[0]
    _sync_paths([place for place in found if not os.path.islink(place)])


def sync_references(repository: Repository, refs: Iterable[bytes]) -> None:
    """Sync references that git created, moved or deleted."""
    sync_changed(repository.common_dir, [*refs, b"packed-refs"])


def _below(directory: bytes) -> Iterator[bytes]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path
                yield from _below(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def _sync_paths(paths: Sequence[bytes]) -> None:
    if len(paths) > _MANY:
        os.sync()  # much faster than so many files, but it reports no errors
    sync_all(paths)
