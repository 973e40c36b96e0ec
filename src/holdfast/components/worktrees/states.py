"""Worktrees in a checkpoint, as checked values, and the files of a worktree on disk.

Each worktree file is a content whose name has everything except its bytes: `0/f/src/app.py` is a
file of the first worktree, `x` an executable one, `l` a link, `g` a missing one that git tracks. So
the state alone lists the captured files. `0/index/` is its index. If that is split, the content
`0/shared/sharedindex.…` is the shared file that it names.

On disk, every path is opened from the top of the worktree, directory by directory, by handle: no
link is ever followed. A written file appears completely or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from blake3 import blake3

from holdfast.components.files import (
    DIRECTORY_FLAGS,
    READ_FLAGS,
    blocks_of,
    entered,
    new_file,
    replacement,
    write_all,
)
from holdfast.components.git.staged import is_shared_name
from holdfast.components.git.states import checked_branch, checked_oid
from holdfast.domain.component_states import ComponentState
from holdfast.domain.ids import Digest
from holdfast.domain.paths import STAGING_PREFIX, from_text, require_safe_path, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import ComponentProblem

FILE, EXECUTABLE, LINK, GONE = "f", "x", "l", "g"
INDEX, SHARED_INDEX = "index", "shared"
_LONGEST_NAME = 1000


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One path that differed from the index, or that was untracked."""

    kind: str
    digest: Digest
    content: str


@dataclass(frozen=True, slots=True)
class Worktree:
    """One linked worktree. `files` is None if only its path and HEAD were saved. `index` names its
    index, if saved, `shared` the shared file of that, if it is split, and `staged` is its
    `staged_digest`. `born` identifies it if it was moved. Without `is_there`, git knew it but its
    directory was gone."""

    path: bytes
    ref: bytes | None
    commit: str | None
    files: Mapping[bytes, SavedFile] | None = None
    index: str | None = None
    born: str | None = None
    is_there: bool = True
    staged: str | None = None
    shared: str | None = None


@dataclass(frozen=True, slots=True)
class WorktreesState:
    """`absent` are paths without a worktree, or without its directory, where a restore was about to
    create one; `new_refs` are branches that it was about to create, with their commits."""

    worktrees: tuple[Worktree, ...] = ()
    absent: tuple[bytes, ...] = ()
    new_refs: Mapping[bytes, str] = field(default_factory=dict)
    kept: tuple[bytes, str] | None = None

    def at(self, path: bytes) -> Worktree | None:
        return next((one for one in self.worktrees if one.path == path), None)


def content_name(number: int, kind: str, path: bytes) -> str | None:
    """None if the path is too long."""
    name = f"{number}/{kind}/{to_text(path)}"
    return name if len(name) <= _LONGEST_NAME else None


def decode(state: ComponentState) -> WorktreesState:
    """`ComponentProblem` if no capture could have made this."""
    try:
        return _decode(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"the checkpoint's worktree data is unusable: {error}"
        raise ComponentProblem(text) from None


def _decode(state: ComponentState) -> WorktreesState:
    rows: list[Mapping[str, Any]] = list(state.facts["worktrees"])
    files: list[dict[bytes, SavedFile]] = [{} for _ in rows]
    indexes: dict[int, str] = {}
    shared: dict[int, str] = {}
    for content in state.contents:
        number, kind, path = content.name.split("/", 2)
        if kind == INDEX:
            indexes[int(number)] = content.name
        elif kind == SHARED_INDEX and is_shared_name(path):
            shared[int(number)] = content.name
        elif kind in (FILE, EXECUTABLE, LINK, GONE):
            place = require_safe_path(from_text(path))
            files[int(number)][place] = SavedFile(kind, content.digest, content.name)
        else:
            raise ValueError(f"{content.name!r:.80} is not a file")
    worktrees = tuple(
        Worktree(
            _place(row["path"]),
            None if row["ref"] is None else checked_branch(row["ref"]),
            None if row["commit"] is None else checked_oid(row["commit"]),
            files[number] if row["files"] is True else None,
            indexes.get(number),
            None if row.get("born") is None else str(row["born"]),
            row.get("is_there") is not False,
            None if row.get("staged") is None else str(row["staged"]),
            shared.get(number),
        )
        for number, row in enumerate(rows)
    )
    notes = state.notes
    kept = (from_text(notes["ref"]), checked_oid(notes["commit"])) if "ref" in notes else None
    return WorktreesState(
        worktrees,
        tuple(_place(path) for path in state.facts.get("absent", ())),
        {
            checked_branch(ref): checked_oid(oid)
            for ref, oid in state.facts.get("new_refs", {}).items()
        },
        kept,
    )


def _place(text: str) -> bytes:
    path = from_text(text)
    if not os.path.isabs(path) or os.path.normpath(path) != path or b"\0" in path:
        raise ValueError(f"{text!r:.80} is not a valid worktree path")
    return path


_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
NOTHING = digest_of(b"")


class WorktreeFiles:
    """`top` is the worktree's directory."""

    def __init__(self, top: bytes) -> None:
        self._top = top

    def kind(self, path: bytes) -> str | None:
        """None if it is neither a file nor a link."""
        try:
            with self._parent(path) as (parent, name):
                mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        except OSError as error:
            if error.errno in _NOT_THERE:
                return GONE
            raise
        if stat.S_ISLNK(mode):
            return LINK
        if stat.S_ISREG(mode):
            return EXECUTABLE if mode & 0o100 else FILE
        return None

    def look(self, path: bytes) -> tuple[str | None, Digest]:
        """The kind and digest of the current entry."""
        kind = self.kind(path)
        if kind is None or kind == GONE:
            return kind, NOTHING
        whole = blake3()
        for block in self.read(path, kind):
            whole.update(block)
        return kind, Digest(whole.digest())

    def read(self, path: bytes, kind: str) -> Iterator[bytes]:
        with self._parent(path) as (parent, name):
            if kind == LINK:
                yield os.readlink(name, dir_fd=parent)
                return
            fd = os.open(name, READ_FLAGS, dir_fd=parent)
        try:
            yield from blocks_of(fd)
        finally:
            os.close(fd)

    def write(self, path: bytes, kind: str, pieces: Iterator[bytes]) -> None:
        with self._parent(path, make=True) as (parent, name):
            beside = STAGING_PREFIX + name[:200]
            with replacement(parent, name, beside):
                if kind == LINK:
                    os.symlink(b"".join(pieces), beside, dir_fd=parent)
                else:
                    mode = 0o755 if kind == EXECUTABLE else 0o644
                    with new_file(beside, mode, parent) as fd:
                        for piece in pieces:
                            write_all(fd, piece)
            os.fsync(parent)

    def remove(self, path: bytes) -> None:
        """Remove the file, and directories that become empty."""
        try:
            with self._parent(path) as (parent, name):
                os.unlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return
            raise
        while b"/" in path:
            path = path.rpartition(b"/")[0]
            try:
                with self._parent(path) as (parent, name):
                    os.rmdir(name, dir_fd=parent)
            except OSError:
                return

    @contextmanager
    def _parent(self, path: bytes, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        *above, name = path.split(b"/")
        top = os.open(self._top, DIRECTORY_FLAGS)
        with entered(top, above, _make_directory if make else None) as fd:
            yield fd, name


def _make_directory(above: int, name: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=above)
