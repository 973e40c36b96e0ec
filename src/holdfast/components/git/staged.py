"""What is staged: paths of the index that differ from a commit, and the file that a split index
shares.

A split index is two files: a small one, and one that it shares with earlier indexes and names. The
name of the shared file is its checksum, so it never changes. Git deletes it when no index has
needed it for a while, so a checkpoint holds both files and a restore puts a missing one back.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.repository import read_whole, replace_file
from holdfast.components.git.states import SHARED_INDEX
from holdfast.ports.component import ComponentProblem, RestoreOf
from holdfast.values.classes import dataclass, field

_GITLINK = b"160000"


@dataclass(slots=True)
class Staged:
    """Status letter and path of each difference; `blobs` is content that no commit may have."""

    rows: list[tuple[str, bytes]] = field(default_factory=list)
    blobs: set[str] = field(default_factory=set)


def read_staged(git: Git, commit: str | None) -> Staged:
    """One process; another one when paths are in conflict. No file of the workspace is read."""
    if commit is None:
        return _listed(git.run("ls-files", "--stage", "-z"))
    raw = git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", commit)
    staged = Staged()
    fields = raw.split(b"\0")
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, oid, status = head.lstrip(b":").split(b" ")
        staged.rows.append((status.decode()[:1], path))
        if mode not in (_GITLINK, b"000000") and oid.strip(b"0"):
            staged.blobs.add(oid.decode())
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
        if mode != _GITLINK:
            staged.blobs.add(oid.decode())
    return staged


_NAME = re.compile(r"sharedindex\.[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_MODE = 0o644


def shared_name(git: Git) -> str | None:
    """The file that the index of the repository shares; None when it is whole by itself."""
    shown = os.fsdecode(git.run("rev-parse", "--shared-index-path").rstrip(b"\n"))
    if not shown:
        return None
    name = os.path.basename(shown)
    if not _NAME.match(name) or not os.path.isfile(git.repository.own(os.fsencode(name))):
        raise GitFailed(f"the file {name} that the index shares is not there", "run: git reset")
    return name


def place_shared(git: Git, request: RestoreOf) -> None:
    """Let the file that the index of a checkpoint shares be there; durable with its directory."""
    name = named(request.target.facts)
    if name is None:
        return
    place = git.repository.own(os.fsencode(name))
    data = b"".join(request.contents.read(SHARED_INDEX))
    if read_whole(place) != data:
        replace_file(place, data, _MODE)
    with contextlib.suppress(OSError):
        os.utime(place)  # git drops the ones that nothing has used for long


def is_placed(git: Git, request: RestoreOf) -> bool:
    name = named(request.target.facts)
    return name is None or os.path.isfile(git.repository.own(os.fsencode(name)))


def named(facts: Any) -> str | None:
    """What a checkpoint says; it may come from anywhere."""
    name = facts.get("shared_index")
    if name is not None and not (isinstance(name, str) and _NAME.match(name)):
        raise ComponentProblem("what the checkpoint says about git is unusable: its shared index")
    return name
