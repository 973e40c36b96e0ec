"""Which of some files hold work that no commit has: changed, staged or unknown to git.

    index entry with the times and size of the file → as staged; else its bytes are hashed as git
    would → the same as staged, or changed; what is staged is compared with HEAD (1 process)
    unknown to git → ignored by its rules? (1 process)

Filters are not run, so a file that one of them changes on the way into git may count as changed;
line ends that git converts do not. For a warning that is enough.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.index_file import IndexEntries, IndexEntry
from holdfast.components.git.plain_files import read_whole
from holdfast.components.git.references import read_head
from holdfast.components.git.repository import Repository
from holdfast.domain.paths import to_text
from holdfast.domain.wording import Remark, printable
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


_SHOWN = 3
_LARGEST_HASHED = 32 << 20


def uncommitted(git: Git, workspace: bytes, paths: Sequence[bytes]) -> list[str]:
    """A line for people, or none. `paths` are relative to the workspace."""
    repository = git.repository
    below = os.path.relpath(workspace, repository.top)
    prefix = b"" if below == b"." else below + b"/"
    head = read_head(repository)
    oid_bytes = len(head.commit or "0" * 40) // 2
    index = read_whole(repository.own(b"index"))
    known = IndexEntries(index, oid_bytes) if index else {}
    staged = {path for _, path in read_staged(git, head.commit).rows} if known else set()
    found = []
    for path in sorted(paths):
        name = prefix + path
        there = os.path.lexists(os.path.join(workspace, path))
        if there and (name in staged or differs_from_index(repository, known.get(name), name)):
            found.append(path)
    unknown = {prefix + path for path in found if prefix + path not in known}
    ignored = ignored_paths(git, unknown)
    found = [path for path in found if prefix + path not in ignored]
    if not found:
        return []
    names = ", ".join(_clean(path) for path in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    have = "has changes" if len(found) == 1 else "have changes"
    return [Remark(f"{names}{more} {have} that are not committed in git; they are saved first")]


def ignored_paths(git: Git, paths: set[bytes]) -> set[bytes]:
    """Those of some files that git does not know, and is told to ignore."""
    if not paths:
        return set()
    try:
        given = b"\0".join(sorted(paths))
        return set(git.run("check-ignore", "--stdin", "-z", given=given).split(b"\0"))
    except GitFailed:
        return set()  # its status tells that there are none


def differs_from_index(repository: Repository, entry: IndexEntry | None, path: bytes) -> bool:
    """Whether a file is another than the index says; one that it does not know is."""
    if entry is None:
        return True
    place = os.path.join(repository.top, path)
    try:
        status = os.lstat(place)
        if (status.st_mtime_ns, status.st_size & 0xFFFFFFFF) == (entry.mtime_ns, entry.size):
            return False
        if stat.S_ISLNK(status.st_mode):
            return _oid(os.readlink(place), entry) != entry.oid
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_HASHED:
            return True
        data = read_whole(place)
    except OSError:
        return True
    return not is_content_of(data, entry)


def is_content_of(data: bytes, entry: IndexEntry) -> bool:
    """Whether this is what the index has, line ends aside."""
    return entry.oid in (_oid(data, entry), _oid(data.replace(b"\r\n", b"\n"), entry))


def _oid(data: bytes, entry: IndexEntry) -> str:
    kind = hashlib.sha1 if len(entry.oid) == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(data) + data).hexdigest()


def _clean(path: bytes) -> str:
    return printable(to_text(path))
