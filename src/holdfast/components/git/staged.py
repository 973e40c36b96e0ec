"""Staged content: index paths that differ from a commit, and the shared file of a split index.

A split index consists of a small file, and a shared one that it names. The name of the shared file
is its checksum, so it never changes. Git deletes it when no index has used it for a while. So a
checkpoint holds both files, and a restore recreates a missing one.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from holdfast.components.files import blocks_of
from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.index_file import GITLINK, read_index
from holdfast.components.git.repository import Repository, read_whole, replace_file
from holdfast.components.git.states import SHARED_INDEX
from holdfast.components.git.status import submodule_commit
from holdfast.domain.paths import to_text
from holdfast.ports.component import ComponentProblem, RestoreOf
from holdfast.values.classes import NamedTuple, dataclass, field

GITLINK_MODE, ABSENT_MODE = b"160000", b"000000"
_MOST_SUBMODULES = 2000


class TreeRow(NamedTuple):
    """One path that differs between two trees: new mode and object, and the status letter. A
    removed path has the mode 000000."""

    path: bytes
    mode: bytes
    oid: bytes
    status: str


def staged_rows(git: Git, tree: str) -> list[TreeRow]:
    """Differences between the index and a tree or commit."""
    return _differences(git, "diff-index", "--cached", tree)


def tree_rows(git: Git, old: str, new: str) -> list[TreeRow]:
    """Differences between two trees."""
    return _differences(git, "diff-tree", "-r", old, new)


def _differences(git: Git, command: str, option: str, *trees: str) -> list[TreeRow]:
    raw = git.run(command, option, "--raw", "-z", "--no-renames", "--no-abbrev", *trees)
    fields = raw.split(b"\0")
    rows = []
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, oid, status = head.lstrip(b":").split(b" ")
        rows.append(TreeRow(path, mode, oid, status.decode()[:1]))
    return rows


@dataclass(slots=True)
class Staged:
    """Status letter and path of each difference; `blobs` may be in no commit."""

    rows: list[tuple[str, bytes]] = field(default_factory=list)
    blobs: set[str] = field(default_factory=set)


def read_staged(git: Git, commit: str | None) -> Staged:
    """One process; another one if paths are in conflict. No workspace file is read."""
    if commit is None:
        return _listed(git.run("ls-files", "--stage", "-z"))
    staged = Staged()
    for row in staged_rows(git, commit):
        staged.rows.append((row.status, row.path))
        if row.mode not in (GITLINK_MODE, ABSENT_MODE) and row.oid.strip(b"0"):
            staged.blobs.add(row.oid.decode())
    if any(status == "U" for status, _ in staged.rows):
        staged.blobs |= _listed(git.run("ls-files", "--unmerged", "-z")).blobs
    return staged


def _listed(listing: bytes) -> Staged:
    staged = Staged()
    for line in listing.split(b"\0"):
        if not line:
            continue
        head, _, path = line.partition(b"\t")
        mode, oid, _ = head.split(b" ")
        staged.rows.append(("A", path))
        if mode != GITLINK_MODE:
            staged.blobs.add(oid.decode())
    return staged


def read_submodules(
    git: Git, commit: str | None, index_fd: int, *, is_split: bool
) -> list[list[Any]]:
    """Path, the commit in the index, and the checked-out commit. `UnknownIndex` if the index cannot
    be read; git reads one that `is_split`."""
    repository = git.repository
    declared = os.path.exists(os.path.join(repository.top, b".gitmodules"))
    if not declared and not os.path.isdir(repository.shared(b"modules")):
        return []
    if is_split:
        listed = (line.partition(b"\t") for line in git.run("ls-files", "-sz").split(b"\0"))
        rows = [(head.split(b" "), path) for head, _, path in listed if path]
        found = [(path, head[1].decode()) for head, path in rows if head[0] == GITLINK_MODE]
    else:
        entries = read_index(b"".join(blocks_of(index_fd)), commit)
        found = [(e.path, e.oid) for e in entries if e.mode == GITLINK]
    return [
        [to_text(path), oid, submodule_commit(repository, path)]
        for path, oid in found[:_MOST_SUBMODULES]
    ]


_NAME = re.compile(r"sharedindex\.[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_MODE = 0o644


def is_shared_name(name: str) -> bool:
    return _NAME.match(name) is not None


def shared_name(git: Git) -> str | None:
    """The shared file of the repository's index; None if it is not split."""
    shown = os.fsdecode(git.run("rev-parse", "--shared-index-path").rstrip(b"\n"))
    if not shown:
        return None
    name = os.path.basename(shown)
    if not is_shared_name(name) or not os.path.isfile(git.repository.own(os.fsencode(name))):
        raise GitFailed(f"the shared index file {name} is missing", "run: git reset")
    return name


def place_shared(git: Git, request: RestoreOf) -> None:
    """Recreate the shared file of a checkpoint's index."""
    name = recorded_name(request.target.facts)
    if name is None:
        return
    write_shared(git.repository, name, b"".join(request.contents.read(SHARED_INDEX)))


def write_shared(repository: Repository, name: str, data: bytes) -> None:
    """Recreate a shared file; durable with its directory."""
    place = repository.own(os.fsencode(name))
    if read_whole(place) != data:
        replace_file(place, data, _MODE)
    with contextlib.suppress(OSError):
        os.utime(place)  # git deletes files that were not used for long


def is_placed(git: Git, request: RestoreOf) -> bool:
    name = recorded_name(request.target.facts)
    return name is None or os.path.isfile(git.repository.own(os.fsencode(name)))


def recorded_name(facts: Any) -> str | None:
    """The name in a checkpoint's facts, which may come from anywhere."""
    name = facts.get("shared_index")
    if name is not None and not (isinstance(name, str) and is_shared_name(name)):
        raise ComponentProblem("the checkpoint's git data is unusable: its shared index")
    return name
