"""What is staged: where the index differs from the commit that HEAD stands on."""

from __future__ import annotations

from holdfast.components.git.commands import Git
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
