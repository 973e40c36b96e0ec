"""Captures a repository's state for a checkpoint.

    read_status (files only; ends here if nothing changed)
    → staged paths (1 process) → read_status again: if anything moved meanwhile, start over
    → tag objects, if a tag is new (mostly no process)
    → index bytes, and meanwhile commits and staged content kept alive (mostly no process)

Guarantee: the facts, the index, every branch, tag and stash entry and the files of an operation
belong to one moment, and are on disk. Nothing of the user's is changed: no branch, index, stash,
config or reflog.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.components.files import blocks_of
from holdfast.components.git import keep_alive
from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.dirty_files import all_dirty, listed_count
from holdfast.components.git.durability import BackgroundCall, sync_recent_objects
from holdfast.components.git.index_file import IndexChecksum
from holdfast.components.git.loose_objects import NewObject, is_loose
from holdfast.components.git.operation_files import (
    Files,
    TooMuch,
    encode_files,
    named_objects,
    operation_name,
)
from holdfast.components.git.reference_choice import replaced_by
from holdfast.components.git.references import (
    LINK,
    AllReferences,
    BrokenReference,
    encode_list,
    read_all,
    read_reference,
)
from holdfast.components.git.repository import Repository, TooLarge, opened
from holdfast.components.git.staged import Staged, read_staged, read_submodules, shared_name
from holdfast.components.git.stash import StashEntry, parse_log, read_stash_log
from holdfast.components.git.states import (
    BRANCHES,
    DIRTY,
    INDEX,
    OPERATION,
    REPLACED,
    SHARED_INDEX,
    STASH,
    TAG_OBJECTS,
    TAGS,
    intended_refs,
)
from holdfast.components.git.status import (
    KEPT_PREFIX,
    RepositoryStatus,
    read_status,
    read_worktrees,
    stamp,
)
from holdfast.components.git.tags import Tagged, encode_tags, read_tagged
from holdfast.domain.git.index import UnknownIndex
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import Captured, CaptureRequest, ComponentProblem, ContentSink
from holdfast.values.classes import NamedTuple

_TRIES = 3
_MOST_STASHES, _LONGEST_MESSAGE = 256, 200
_OLD_LOCK_NS = 60 * 1_000_000_000


@dataclass(slots=True)
class _Snapshot:
    """The results of one attempt."""

    facts: dict[str, Any]
    operation: Files
    staged: Staged
    references: AllReferences
    stash_log: bytes
    stash: list[StashEntry]
    replaced: bytes = b""
    tagged: Tagged | None = None
    tags_are_known: bool = False
    shared_index: str | None = None
    dirty: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)


class _Group(NamedTuple):
    """Branches or tags to keep alive. `key` changes with any of them, `oid` is the commit that
    keeps them (None if there are none), and `objects` must be added for it."""

    key: str
    oid: str | None
    objects: list[NewObject]


def _unsettled() -> ComponentProblem:
    return ComponentProblem("git was changing the repository; save again when it has finished")


class RepositoryCapture:
    """One capture of one repository."""

    def __init__(
        self,
        repository: Repository,
        request: CaptureRequest,
        environment: Mapping[str, str],
        timeout_s: float,
        git: Git | None = None,
    ) -> None:
        """`git` is for a repository without a working tree."""
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
                continue  # git changed something meanwhile
            except (BrokenReference, TooMuch, TooLarge) as error:
                raise ComponentProblem(
                    f"the repository is damaged: {error}; see: git fsck"
                ) from None
        raise _unsettled()

    def _begin_sync(self) -> BackgroundCall[None] | None:
        """Sync objects in the background: those of the state existed when it was read."""
        if self._request.checkpoint is None:
            return None
        known = self._request.previous
        synced_ns = known.notes.get("synced_ns") if known is not None else None
        since_ns = synced_ns if isinstance(synced_ns, int) else 0
        return BackgroundCall(
            partial(sync_recent_objects, self._repository, self._request.now_ns, since_ns)
        )

    def _look(self) -> RepositoryStatus:
        return read_status(self._repository, now_ns=self._request.now_ns, refs=self._refs)

    def _take(self, found: RepositoryStatus, index_fd: int | None) -> _Snapshot:
        head = found.head
        refs = dict(found.refs)
        if head.holder is not None:
            refs[head.holder] = head.commit
        log = read_stash_log(self._repository)
        every, stash = read_all(self._repository), parse_log(log)
        taken = _Snapshot({}, found.operation(), Staged(), every, log, stash)
        if self._request.intended is not None:
            taken.replaced = replaced_by(self._repository, head, self._request.intended)
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
                f"a crashed git process left its lock; if no git is running, remove {lock}"
            )
        staged = taken.staged
        listed = staged.rows[: listed_count(path for _, path in staged.rows)]
        taken.facts = {
            "head": {"ref": None if head.ref is None else to_text(head.ref), "commit": head.commit},
            "refs": {to_text(ref): oid for ref, oid in sorted(refs.items())},
            "index": found.has_index,
            "operation": operation_name(found.operation_paths),
            "staged": [[status, to_text(path)] for status, path in listed],
            "staged_count": len(staged.rows),
            "stash": self._stash(stash),
            "branches": len(every.branches),
            "tags": len(every.tags),
            "worktrees": read_worktrees(self._repository),
            "submodules": self._submodules(found, index_fd, taken),
            "shallow": found.shallow,
        }
        if taken.shared_index is not None:
            taken.facts["shared_index"] = taken.shared_index
        elif self._request.checkpoint is not None and not taken.problems:
            taken.dirty = all_dirty(
                self._repository,
                os.fsencode(self._request.workspace),
                index_fd,
                head.commit,
                (path for _, path in staged.rows),
                taken.facts["submodules"],
                self._request.seen,
                self._request.now_ns,
            )
        return taken

    def _stash(self, entries: list[StashEntry]) -> list[list[str]]:
        """Commit and message of the newest stash entries, newest first."""
        if not entries:
            newest = read_reference(self._repository, b"refs/stash")
            return [] if newest is None else [[newest, ""]]
        newest_first = reversed(entries[-_MOST_STASHES:])
        return [[one.oid, to_text(one.message)[:_LONGEST_MESSAGE]] for one in newest_first]

    def _is_old(self, path: bytes) -> bool:
        try:
            return os.stat(path).st_mtime_ns < self._request.now_ns - _OLD_LOCK_NS
        except OSError:
            return False

    def _submodules(
        self, found: RepositoryStatus, index_fd: int | None, taken: _Snapshot
    ) -> list[list[Any]]:
        try:
            if index_fd is None:
                return []
            split = taken.shared_index is not None
            return read_submodules(self._git, found.head.commit, index_fd, is_split=split)
        except GitFailed as error:
            taken.problems.append(str(error))
            return []
        except UnknownIndex as error:
            taken.problems.append(
                f"cannot list submodules, because the index is unreadable: {error}"
            )
            return []

    def _store(
        self,
        found: RepositoryStatus,
        taken: _Snapshot,
        index_fd: int | None,
        sink: ContentSink,
        syncing: BackgroundCall[None] | None,
    ) -> Captured:
        certain = self._existing_commits(found.head.commit, taken)
        taken.tags_are_known = self._known_group("tags", _key(taken.references.tags)) is not None
        if self._request.checkpoint is not None and not taken.tags_are_known:
            try:
                taken.tagged = read_tagged(self._git, set(taken.references.tags.values()))
            except GitFailed as error:
                taken.problems.append(str(error))
        # In the background, because it mostly waits for the disk.
        keeping_alive = BackgroundCall(partial(self._keep, found, taken, certain))
        try:
            self._add_contents(found, taken, index_fd, sink)
        except BaseException:
            self._release(keeping_alive)
            raise
        notes: dict[str, Any] = {}
        try:
            notes = self._kept(keeping_alive, partial(self._keep, found, taken, certain))
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
        if taken.dirty is not None:
            notes[DIRTY] = taken.dirty
        return Captured(taken.facts, tuple(taken.problems), notes)

    def _add_contents(
        self, found: RepositoryStatus, taken: _Snapshot, index_fd: int | None, sink: ContentSink
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
        if taken.references.branches:
            sink.add(BRANCHES, [encode_list(taken.references.branches)])
        if taken.references.tags:
            sink.add(TAGS, [encode_list(taken.references.tags)])
        if taken.stash_log:
            sink.add(STASH, [taken.stash_log])
        if taken.replaced:
            sink.add(REPLACED, [taken.replaced])
        self._add_tag_objects(taken, sink)

    def _add_tag_objects(self, taken: _Snapshot, sink: ContentSink) -> None:
        if taken.tagged is not None:
            if taken.tagged.objects:
                sink.add(TAG_OBJECTS, [encode_tags(taken.tagged.objects)])
        elif taken.tags_are_known and self._previous is not None:
            known = self._previous.content(TAG_OBJECTS)
            if known is not None:
                sink.keep(TAG_OBJECTS, known)

    @staticmethod
    def _kept(
        keeping_alive: BackgroundCall[dict[str, Any]], again: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Git may remove empty object directories at any time, even one about to be used. Only this
        step is retried; contents added to the checkpoint so far are kept."""
        for result in (keeping_alive.result, *[again] * (_TRIES - 1)):
            with contextlib.suppress(FileNotFoundError):
                return result()
        raise _unsettled()

    def _keep(self, found: RepositoryStatus, taken: _Snapshot, certain: set[str]) -> dict[str, Any]:
        if self._request.checkpoint is None:
            return {}
        commits, blobs = self._needed(found, taken)
        groups = {"branches": self._branches(found, taken, certain), "tags": self._tags(taken)}
        commits += [group.oid for group in groups.values() if group.oid is not None]
        certain |= {group.oid for group in groups.values() if group.oid is not None}
        noted = {name: [group.key, group.oid] for name, group in groups.items()}
        head = found.head.commit
        if head is None and not commits and not blobs:
            return {}
        needs = digest_of(repr((head, sorted(set(commits)), sorted(blobs))).encode()).hex()
        known = self._previous.notes if self._previous is not None else {}
        if known.get("needs") == needs and self._is_kept(known.get("ref"), known.get("commit")):
            return {key: known[key] for key in ("ref", "commit", "needs")} | {"groups": noted}
        owner, ref = self._request.owner, self._own_ref()
        keep_alive.remove_own_locks(self._repository, owner)
        try:
            added = [one for group in groups.values() for one in group.objects]
            oid = keep_alive.keep(self._git, ref, head, commits, blobs, certain, added)
        except GitFailed:
            keep_alive.remove_own_locks(self._repository, owner)
            raise
        return {"ref": to_text(ref), "commit": oid, "needs": needs, "groups": noted}

    def _branches(self, found: RepositoryStatus, taken: _Snapshot, certain: set[str]) -> _Group:
        """Every branch except HEAD's, which moves with every commit."""
        branches = taken.references.branches
        others = {ref: oid for ref, oid in branches.items() if ref != found.head.holder}
        key = _key(others)
        known = self._known_group("branches", key)
        if known is not None:
            return known
        tips = {oid for oid in others.values() if not oid.startswith(LINK)}
        before = self._noted_group("branches")[1]
        there = tips & (certain | keep_alive.parents_in(self._repository, before))
        there |= {oid for oid in tips - there if is_loose(self._repository, oid, b"commit")}
        there |= set(keep_alive.existing_objects(self._git, tips - there)[0])
        return _new_group(key, dict.fromkeys(there, "commit"))

    def _tags(self, taken: _Snapshot) -> _Group:
        key = _key(taken.references.tags)
        known = self._known_group("tags", key)
        if known is not None:
            return known
        return _new_group(key, {} if taken.tagged is None else taken.tagged.targets)

    def _known_group(self, name: str, key: str) -> _Group | None:
        """The group that the previous checkpoint keeps alive, if it is the same."""
        if self._previous is None:
            return None
        notes, (noted, oid) = self._previous.notes, self._noted_group(name)
        if noted != key or not self._is_kept(notes.get("ref"), notes.get("commit")):
            return None
        return _Group(key, oid, [])

    def _noted_group(self, name: str) -> tuple[str | None, str | None]:
        groups = self._previous.notes.get("groups") if self._previous is not None else None
        noted = groups.get(name) if isinstance(groups, dict) else None
        return (noted[0], noted[1]) if isinstance(noted, list) else (None, None)

    def _own_ref(self) -> bytes:
        return KEPT_PREFIX + f"{self._request.owner}/{self._request.checkpoint}".encode()

    def _release(self, keeping_alive: BackgroundCall[dict[str, Any]]) -> None:
        """Remove references for a state that is not captured after all, perhaps before a retry."""
        with contextlib.suppress(Exception):
            if keeping_alive.result().get("ref") == to_text(self._own_ref()):
                keep_alive.drop(self._git, [self._own_ref()])

    def _existing_commits(self, head: str | None, taken: _Snapshot) -> set[str]:
        """Commits known to exist: the one that the index was just compared with, and those that the
        previous checkpoint still keeps alive. Empty if git had problems."""
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

    def _needed(self, found: RepositoryStatus, taken: _Snapshot) -> tuple[list[str], set[str]]:
        commits = [oid for oid in taken.facts["refs"].values() if oid is not None]
        commits += [oid for oid, _ in taken.facts["stash"]]
        commits += [entry.oid for entry in taken.stash]
        lasting = {p: f for p, f in taken.operation.items() if p != b"ORIG_HEAD"}
        if not lasting:
            return commits, taken.staged.blobs
        named, blobs = keep_alive.existing_objects(self._git, named_objects(lasting))
        return commits + named, taken.staged.blobs | blobs


def _key(references: Mapping[bytes, str]) -> str:
    return digest_of(encode_list(references)).hex()


def _new_group(key: str, ends: Mapping[str, str]) -> _Group:
    objects = keep_alive.group_of(ends)
    return _Group(key, objects[-1].oid if objects else None, objects)
