"""Reads a repository's status from its files: HEAD, the operation in progress, and a signature that
changes with any of it.

    names in the git directory → stat of relevant files, content of tiny ones → digest

Guarantee: equal signatures mean that HEAD, the index, every branch and tag, the stash, worktrees
and every file of an operation are the same. If something was written so recently that a further
change could have the same time, the signature is not trusted (`settled`). No process is started.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from holdfast.components.git.operation_files import Files, TooMuch, present_paths, read_files
from holdfast.components.git.references import (
    BrokenReference,
    Head,
    OtherReferences,
    is_branch_name,
    loose_stamps,
    read_head,
    read_reference,
    require_file_references,
)
from holdfast.components.git.repository import (
    Repository,
    TooLarge,
    common_directory,
    linked_directory,
    read_end,
    read_small,
)
from holdfast.domain.component_states import ComponentState
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.values.classes import dataclass

KEPT_PREFIX = b"refs/holdfast/"
_CLOCK_TICK_NS = 50_000_000
_LINK_BYTES = 8192
_MOST_WORKTREES = 500
_CHECKSUM_BYTES = 20
"""At the end of an index: they change even if size and times do not."""


@dataclass(slots=True)
class RepositoryStatus:
    """The status; `refs` are references besides HEAD's branch: the requested ones, and the branch
    that is being rebased."""

    repository: Repository
    head: Head
    refs: dict[bytes, str | None]
    operation_paths: list[bytes]
    has_index: bool
    has_lock: bool
    shallow: bool
    may_be_split: bool = False
    signature: str = ""
    settled: bool = False

    def operation(self) -> Files:
        return read_files(self.repository, self.operation_paths)


def read_status(
    repository: Repository, *, now_ns: int, refs: tuple[bytes, ...] = ()
) -> RepositoryStatus:
    """`BrokenReference` if HEAD cannot be read, `TooMuch` if an operation left too many files."""
    names = _names(repository)
    require_file_references(repository)
    head = read_head(repository)
    paths = list(present_paths(repository, names))
    wanted = {ref: read_reference(repository, ref) for ref in refs}
    wanted |= _rebased(repository, paths)
    found = RepositoryStatus(
        repository,
        head,
        wanted,
        paths,
        has_index=b"index" in names,
        has_lock=b"index.lock" in names,
        shallow=os.path.exists(repository.shared(b"shallow")),
        may_be_split=any(name.startswith(b"sharedindex.") for name in names),
    )
    stats = [
        repository.own(b"HEAD"),
        repository.own(b"index"),
        repository.shared(b"packed-refs"),
        repository.shared(b"shallow"),
        repository.shared(b"refs/stash"),
        repository.shared(b"logs/refs/stash"),
        repository.shared(b"worktrees"),
        *(repository.own(path) for path in paths),
    ]
    if head.holder is not None:
        stats.append(repository.shared(head.holder))
    newest_ns = 0
    rows: list[Any] = [head, sorted(wanted.items()), sorted(names & _SIGNS)]
    rows.append(read_end(repository.own(b"index"), _CHECKSUM_BYTES))
    for path in stats:
        row, changed_ns = _row(path)
        newest_ns = max(newest_ns, changed_ns)
        rows.append(row)
    for ref, statuses in loose_stamps(repository):
        rows.append((ref, *map(_numbers, statuses)))
        for status in statuses:
            newest_ns = max(newest_ns, status.st_mtime_ns, status.st_ctime_ns)
    found.signature = digest_of(repr((repository, rows)).encode()).hex()
    found.settled = newest_ns < now_ns - _CLOCK_TICK_NS
    return found


def _rebased(repository: Repository, paths: Iterable[bytes]) -> dict[bytes, str]:
    """The branch that is being rebased. It belongs to the rebase, which ends by moving it from its
    old commit only."""
    for path in sorted(_REBASED & set(paths)):
        try:
            ref = (read_small(repository.own(path), _LINK_BYTES) or b"").rstrip(b"\n")
        except TooLarge as error:
            raise BrokenReference(f"{error} is too large") from None
        commit = read_reference(repository, ref) if is_branch_name(ref) else None
        if commit is not None:
            return {ref: commit}
    return {}


def is_unchanged(repository: Repository, previous: ComponentState, *, now_ns: int) -> bool:
    """Whether everything certainly matches a checkpoint. Its data may come from anywhere; invalid
    data is no match. Problems are left to a real capture to report."""
    if "signature" not in previous.notes:
        return False
    try:
        submodules = [from_text(row[0]) for row in previous.facts["submodules"]]
        ref = previous.notes.get("ref")
        kept = None if ref is None else from_text(ref)
        if kept is not None and not kept.startswith(KEPT_PREFIX):
            return False
        found = read_status(repository, now_ns=now_ns)
        if found.has_lock:
            return False  # a lock that a crashed git left must be reported every time
        return bool(stamp(found, submodules, kept) == previous.notes["signature"])
    except (LookupError, TypeError, ValueError, AttributeError, OSError):
        return False
    except (BrokenReference, OtherReferences, TooMuch):
        return False


def stamp(found: RepositoryStatus, submodules: Iterable[bytes], kept: bytes | None) -> str:
    """The signature, with the commits of submodules and the references that Holdfast keeps
    alive."""
    repository = found.repository
    rows = [(path, submodule_commit(repository, path)) for path in submodules]
    there = kept is None or read_reference(repository, kept) is not None
    return digest_of(repr((found.signature, rows, kept, there)).encode()).hex()


_REBASED = frozenset((b"rebase-merge/head-name", b"rebase-apply/head-name"))
_SIGNS = frozenset((b"index", b"worktrees", b"modules", b"shallow"))


def _names(repository: Repository) -> frozenset[bytes]:
    try:
        return frozenset(os.listdir(repository.git_dir))
    except OSError as error:
        raise BrokenReference(
            f"cannot read {os.fsdecode(repository.git_dir)}: {error.strerror}"
        ) from None


def _row(path: bytes) -> tuple[Any, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return path, 0
    return (path, *_numbers(status)), max(status.st_mtime_ns, status.st_ctime_ns)


def _numbers(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def read_worktrees(repository: Repository) -> list[dict[str, Any]]:
    """Every linked worktree: its path and its HEAD."""
    found = []
    try:
        names = sorted(os.listdir(repository.shared(b"worktrees")))
    except OSError:
        return []
    for name in names[:_MOST_WORKTREES]:
        own = repository.shared(b"worktrees", name)
        try:
            link = read_small(os.path.join(own, b"gitdir"), _LINK_BYTES)
            at = read_head(Repository(b"", own, repository.common_dir))
        except (BrokenReference, TooLarge):
            continue
        place = os.path.dirname((link or b"").rstrip(b"\n"))
        found.append(
            {
                "name": to_text(name),
                "path": to_text(place),
                "ref": None if at.ref is None else to_text(at.ref),
                "commit": at.commit,
                "here": own == repository.git_dir,
            }
        )
    return found


def checked_out(repository: Repository) -> set[bytes]:
    """Every branch that a worktree has checked out."""
    found = {from_text(row["ref"]) for row in read_worktrees(repository) if row["ref"] is not None}
    for git_dir in {repository.git_dir, repository.common_dir}:
        with contextlib.suppress(BrokenReference):
            head = read_head(Repository(os.path.dirname(git_dir), git_dir, repository.common_dir))
            found |= set() if head.ref is None else {head.ref}
    return found


def submodule_commit(repository: Repository, path: bytes) -> str | None:
    """The commit of a submodule; None if it is missing."""
    top = os.path.join(repository.top, path)
    git_dir = linked_directory(top) or os.path.join(top, b".git")
    try:
        return read_head(Repository(top, git_dir, common_directory(git_dir))).commit
    except (BrokenReference, OtherReferences, TooLarge):
        return None
