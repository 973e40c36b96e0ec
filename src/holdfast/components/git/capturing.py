"""Taking the state of a repository into a checkpoint.

    look (files only; one that finds nothing new has ended before this)
    → staged paths (1 process) → look again: unless nothing moved meanwhile, begin again
    → index bytes, and at the same time commits and staged content kept alive (mostly no process)

Guarantee: the facts, the index and the files of an operation are of one moment, and on disk.
Nothing of the user's is changed: no branch, no index, no stash, no config, no reflog.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.components.git import keeping
from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.durability import Meanwhile, sync_recent_objects
from holdfast.components.git.finding import Repository
from holdfast.components.git.index_file import GITLINK, IndexChecksum, UnknownIndex, read_index
from holdfast.components.git.looking import (
    KEPT_PREFIX,
    Look,
    look,
    read_stash,
    read_worktrees,
    stamp,
    submodule_commit,
)
from holdfast.components.git.operation_files import (
    Files,
    TooMuch,
    encode_files,
    named_objects,
    operation_name,
)
from holdfast.components.git.plain_files import TooLarge, blocks_of, opened
from holdfast.components.git.references import BrokenReference, read_reference
from holdfast.components.git.split_index import shared_name
from holdfast.components.git.staging import Staged, read_staged
from holdfast.components.git.states import INDEX, OPERATION, SHARED_INDEX, intended_refs
from holdfast.domain.digests import digest_of
from holdfast.domain.paths import from_text, to_text
from holdfast.ports.component import Captured, CaptureRequest, ComponentProblem, ContentSink

_TRIES = 3
_MOST_NAMES = 500
_MOST_NAMES_BYTES = 50_000
_MOST_SUBMODULES = 2000
_OLD_LOCK_NS = 60 * 1_000_000_000


@dataclass(slots=True)
class _Taken:
    """What one try gathers."""

    facts: dict[str, Any]
    operation: Files
    staged: Staged
    shared_index: str | None = None
    problems: list[str] = field(default_factory=list)


class Capturing:
    """One capture of one repository."""

    def __init__(
        self,
        repository: Repository,
        request: CaptureRequest,
        environment: Mapping[str, str],
        timeout_s: float,
        git: Git | None = None,
    ) -> None:
        """`git` is for a repository that no working tree leads to."""
        self._repository = repository
        self._request = request
        self._git = git or Git(repository, environment, timeout_s)
        self._refs = intended_refs(repository, request.intended)
        self._previous = request.previous if request.intended is None else None

    def run(self, sink: ContentSink) -> Captured:
        for _ in range(_TRIES):
            try:
                before = self._look()
                syncing = self._begin_sync()
                with opened(self._repository.own(b"index")) as index_fd:
                    taken = self._take(before, index_fd)
                    if self._look().signature == before.signature:
                        return self._store(before, taken, index_fd, sink, syncing)
            except FileNotFoundError:
                continue  # git moved something while it was read
            except (BrokenReference, TooMuch, TooLarge) as error:
                raise ComponentProblem(
                    f"the repository is damaged: {error}; see: git fsck"
                ) from None
        raise ComponentProblem("git kept changing the repository; save again when it has finished")

    def _begin_sync(self) -> Meanwhile[None] | None:
        """What the state needs was there when it was looked at; it gets to the disk meanwhile."""
        if self._request.checkpoint is None:
            return None
        known = self._request.previous
        synced_ns = known.notes.get("synced_ns") if known is not None else None
        since_ns = synced_ns if isinstance(synced_ns, int) else 0
        return Meanwhile(
            partial(sync_recent_objects, self._repository, self._request.now_ns, since_ns)
        )

    def _look(self) -> Look:
        return look(self._repository, now_ns=self._request.now_ns, refs=self._refs)

    def _take(self, found: Look, index_fd: int | None) -> _Taken:
        head = found.head
        refs = dict(found.refs)
        if head.holder is not None:
            refs[head.holder] = head.commit
        taken = _Taken({}, found.operation(), Staged())
        try:
            if found.has_index:
                taken.staged = read_staged(self._git, head.commit)
            if found.has_index and found.may_be_split:
                taken.shared_index = shared_name(self._git)
        except GitFailed as error:
            taken.problems.append(str(error))
        if found.has_lock and self._is_old(self._repository.own(b"index.lock")):
            lock = os.fsdecode(self._repository.own(b"index.lock"))
            taken.problems.append(
                f"a git that crashed has left its lock behind; if none runs, remove {lock}"
            )
        staged = taken.staged
        taken.facts = {
            "head": {"ref": _text(head.ref), "commit": head.commit},
            "refs": {to_text(ref): oid for ref, oid in sorted(refs.items())},
            "index": found.has_index,
            "operation": operation_name(found.operation_paths),
            "staged": _some_names(staged),
            "staged_count": len(staged.rows),
            "stash": read_stash(self._repository),
            "worktrees": read_worktrees(self._repository),
            "submodules": self._submodules(found, index_fd, taken),
            "shallow": found.shallow,
        }
        if taken.shared_index is not None:
            taken.facts["shared_index"] = taken.shared_index
        return taken

    def _is_old(self, path: bytes) -> bool:
        try:
            return os.stat(path).st_mtime_ns < self._request.now_ns - _OLD_LOCK_NS
        except OSError:
            return False

    def _submodules(self, found: Look, index_fd: int | None, taken: _Taken) -> list[list[Any]]:
        """Path, the commit that the index names, and the one that is checked out."""
        declared = os.path.exists(os.path.join(self._repository.top, b".gitmodules"))
        if index_fd is None or not (declared or os.path.isdir(self._repository.shared(b"modules"))):
            return []
        oid_bytes = len(found.head.commit or "0" * 40) // 2
        try:
            entries = list(read_index(b"".join(blocks_of(index_fd)), oid_bytes))
        except UnknownIndex as error:
            taken.problems.append(f"submodules are unknown, because of the index: {error}")
            return []
        return [
            [to_text(e.path), e.oid, submodule_commit(self._repository, e.path)]
            for e in [e for e in entries if e.mode == GITLINK][:_MOST_SUBMODULES]
        ]

    def _store(
        self,
        found: Look,
        taken: _Taken,
        index_fd: int | None,
        sink: ContentSink,
        syncing: Meanwhile[None] | None,
    ) -> Captured:
        # As it comes back from a manifest, so that equal states compare as equal.
        taken.facts["stash"] = [list(row) for row in taken.facts["stash"]]
        certain = self._certain(found.head.commit, taken)
        # This mostly waits for the disk.
        keeping_alive = Meanwhile(partial(self._keep, found, taken, certain))
        try:
            self._add_contents(found, taken, index_fd, sink)
        except BaseException:
            self._let_go(keeping_alive)
            raise
        notes: dict[str, Any] = {}
        try:
            notes = keeping_alive.result()
        except GitFailed as error:
            if str(error) not in taken.problems:
                taken.problems.append(str(error))
        if syncing is not None:
            syncing.result()
            notes["synced_ns"] = self._request.now_ns
        if found.settled and not taken.problems and self._request.intended is None:
            submodules = [from_text(row[0]) for row in taken.facts["submodules"]]
            kept = from_text(notes["ref"]) if "ref" in notes else None
            notes["signature"] = stamp(found, submodules, kept)
        return Captured(taken.facts, tuple(taken.problems), notes)

    def _add_contents(
        self, found: Look, taken: _Taken, index_fd: int | None, sink: ContentSink
    ) -> None:
        if taken.shared_index is not None:
            shared = self._repository.own(os.fsencode(taken.shared_index))
            with opened(shared) as shared_fd:
                if shared_fd is None:
                    raise FileNotFoundError(shared)
                sink.add(SHARED_INDEX, blocks_of(shared_fd))
        if index_fd is not None:
            like = next((oid for oid in (found.head.commit, *taken.staged.blobs) if oid), None)
            checksum = IndexChecksum(like)
            sink.add(INDEX, checksum.through(blocks_of(index_fd)))
            if checksum.is_wrong and not taken.problems:
                taken.problems.append(self._git.damaged_index())
        if taken.operation:
            sink.add(OPERATION, [encode_files(taken.operation)])

    def _keep(self, found: Look, taken: _Taken, certain: set[str]) -> dict[str, Any]:
        if self._request.checkpoint is None:
            return {}
        commits, blobs = self._needed(found, taken)
        head = found.head.commit
        if head is None and not commits and not blobs:
            return {}
        needs = digest_of(repr((head, sorted(set(commits)), sorted(blobs))).encode()).hex()
        known = self._previous.notes if self._previous is not None else {}
        if known.get("needs") == needs and self._is_kept(known.get("ref"), known.get("commit")):
            return {key: known[key] for key in ("ref", "commit", "needs")}
        owner, ref = self._request.owner, self._own_ref()
        keeping.remove_own_locks(self._repository, owner)
        try:
            oid = keeping.keep(self._git, ref, head, commits, blobs, certain)
        except GitFailed:
            keeping.remove_own_locks(self._repository, owner)
            raise
        return {"ref": to_text(ref), "commit": oid, "needs": needs}

    def _own_ref(self) -> bytes:
        return KEPT_PREFIX + f"{self._request.owner}/{self._request.checkpoint}".encode()

    def _let_go(self, keeping_alive: Meanwhile[dict[str, Any]]) -> None:
        """What was kept for a state that is not captured after all, perhaps to be tried again."""
        with contextlib.suppress(Exception):
            if keeping_alive.result().get("ref") == to_text(self._own_ref()):
                keeping.drop(self._git, [self._own_ref()])

    def _certain(self, head: str | None, taken: _Taken) -> set[str]:
        """Commits that are there: the one that the index was just compared with, and those that the
        checkpoint before has kept alive and still does. None when git has met trouble."""
        if taken.problems:
            return set()
        certain = {head} if head is not None and taken.facts["index"] else set()
        known = self._previous
        if known is not None and self._is_kept(known.notes.get("ref"), known.notes.get("commit")):
            certain.update(oid for oid in known.facts["refs"].values() if oid is not None)
            certain.update(row[0] for row in known.facts["stash"])
        return certain

    def _is_kept(self, ref: object, commit: object) -> bool:
        if not isinstance(ref, str) or not from_text(ref).startswith(KEPT_PREFIX):
            return False
        return read_reference(self._repository, from_text(ref)) == commit

    def _needed(self, found: Look, taken: _Taken) -> tuple[list[str], set[str]]:
        commits = [oid for oid in taken.facts["refs"].values() if oid is not None]
        commits += [oid for oid, _ in taken.facts["stash"]]
        lasting = {p: f for p, f in taken.operation.items() if p != b"ORIG_HEAD"}
        if not lasting:
            return commits, taken.staged.blobs
        named, blobs = keeping.existing_objects(self._git, named_objects(lasting))
        return commits + named, taken.staged.blobs | blobs


def _some_names(staged: Staged) -> list[list[str]]:
    """As many as are worth telling; the index has them all."""
    rows, room = [], _MOST_NAMES_BYTES
    for status, path in staged.rows[:_MOST_NAMES]:
        room -= len(path)
        if room < 0:
            break
        rows.append([status, to_text(path)])
    return rows


def _text(ref: bytes | None) -> str | None:
    return None if ref is None else to_text(ref)
