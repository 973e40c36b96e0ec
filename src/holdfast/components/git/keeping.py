"""Keeping alive what a checkpoint refers to: one reference under `refs/holdfast/` for each state.

    nothing but HEAD      → the reference is HEAD's commit
    anything else as well → a commit of our own, whose parents are all commits (HEAD, branches, the
                            stash, those an operation names) and whose tree holds staged content

Such references are shown by no `git branch`, `git log` or `git stash`, and go over the wire only
when somebody names them. Their name is `refs/holdfast/OWNER/CHECKPOINT`: the store, and the
checkpoint that saw the state first; later ones of the same state share it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.finding import Repository
from holdfast.components.git.looking import KEPT_PREFIX
from holdfast.components.git.plain_files import read_small
from holdfast.components.git.references import packed_under

_NO_LOG = ("core.logAllRefUpdates=false",)
_WHO = b"Holdfast <holdfast@localhost> 0 +0000"


def keep(git: Git, ref: bytes, head: str | None, commits: Sequence[str], blobs: set[str]) -> str:
    """Let `ref` keep all of these from being collected; returns the commit it names."""
    others = [oid for oid in dict.fromkeys(commits) if oid != head]
    if head is not None and not others and not blobs:
        line = b"create %b\0%b\0" % (ref, head.encode())
        git.run("update-ref", "--stdin", "-z", given=line, config=_NO_LOG)
        return head
    known = _reports(git.repository)
    try:
        git.run("fast-import", "--quiet", given=_script(ref, head, others, blobs), config=_NO_LOG)
    except GitFailed:
        # It leaves a report in the repository when it fails; we report ourselves.
        for name in _reports(git.repository) - known:
            with contextlib.suppress(OSError):
                os.unlink(git.repository.own(name))
        raise
    text = read_small(git.repository.shared(ref), 100)
    if text is None:
        raise GitFailed(f"{os.fsdecode(ref)} was not made")
    return text.strip().decode()


def _script(ref: bytes, head: str | None, others: list[str], blobs: set[str]) -> bytes:
    lines = [b"feature done", b"commit " + ref, b"committer " + _WHO]
    message = b"Kept alive by a checkpoint of Holdfast\n"
    lines.append(b"data %d\n%b" % (len(message), message))
    parents = ([head] if head is not None else []) + others
    for number, oid in enumerate(parents):
        lines.append((b"from " if number == 0 else b"merge ") + oid.encode())
    lines.append(b"deleteall")
    lines += [b"M 100644 %b %b" % (oid.encode(), oid.encode()) for oid in sorted(blobs)]
    return b"\n".join([*lines, b"", b"done", b""])


def _reports(repository: Repository) -> set[bytes]:
    names = os.listdir(repository.git_dir)
    return {name for name in names if name.startswith(b"fast_import_crash_")}


def existing_objects(git: Git, oids: Iterable[str]) -> tuple[list[str], set[str]]:
    """Which of these names are commits, and which are blobs, of this repository."""
    wanted = sorted(set(oids))
    if not wanted:
        return [], set()
    listed = git.run(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", given="\n".join(wanted).encode()
    )
    rows = [line.split(b" ") for line in listed.splitlines()]
    commits = [row[1].decode() for row in rows if row[0] == b"commit"]
    return commits, {row[1].decode() for row in rows if row[0] == b"blob"}


def owned_references(repository: Repository, owner: str) -> list[bytes]:
    """Every reference that this store has made here."""
    prefix = KEPT_PREFIX + owner.encode() + b"/"
    try:
        loose = [prefix + name for name in os.listdir(repository.shared(prefix))]
    except OSError:
        loose = []
    found = {ref for ref in loose if not ref.endswith(b".lock")}
    return sorted(found | set(packed_under(repository, prefix)))


def drop(git: Git, refs: Sequence[bytes]) -> None:
    script = b"".join(b"delete %b\0\0" % ref for ref in refs)
    git.run("update-ref", "--stdin", "-z", given=script, config=_NO_LOG)
