"""Linked worktrees of a repository, and their capture.

A worktree consists of its administrative directory below `worktrees/` in the repository, and the
directory whose `.git` names it. If its directory is gone, it stays registered until it is pruned.

    registered worktrees → path and HEAD of each → with files: its index, and every file that
    differs from the index, by content → commits and staged content kept alive

Before a restore, the index of each worktree that it recreates or removes is always captured. Files
that match the index are not captured, because the commits and the index have them. Ignored files
are not captured either.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.index_file import digest_of_rows, shared_file, staged_digest
from holdfast.components.git.keep_alive import keep
from holdfast.components.git.references import read_reference
from holdfast.components.git.repository import Repository, linked_directory, read_whole
from holdfast.components.git.staged import read_staged
from holdfast.components.git.status import read_worktrees
from holdfast.components.worktrees.states import (
    INDEX,
    SHARED_INDEX,
    WorktreeFiles,
    WorktreesState,
    content_name,
    decode,
)
from holdfast.domain.component_states import EXACT
from holdfast.domain.paths import from_text, is_safe_name, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import Captured, CaptureRequest, ComponentProblem, ContentSink

_GITLINK = b"160000"
_LINE_BYTES = 4096
_OID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Linked:
    """A registered worktree; `is_there`: its directory exists and names it. `born` identifies it,
    even if it was moved; None if nothing does."""

    path: bytes
    ref: bytes | None
    commit: str | None
    git_dir: bytes
    is_there: bool
    born: str | None = None

    def repository(self, common_dir: bytes) -> Repository:
        """Git can read its index even without its directory."""
        top = self.path if self.is_there else self.git_dir
        return Repository(top, self.git_dir, common_dir)


def linked_worktrees(repository: Repository) -> list[Linked]:
    """All except the workspace's own."""
    found = []
    for row in read_worktrees(repository):
        path = from_text(row["path"])
        if row["here"] or not os.path.isabs(path):
            continue
        git_dir = repository.shared(b"worktrees", from_text(row["name"]))
        found.append(
            Linked(
                os.path.normpath(path),
                None if row["ref"] is None else from_text(row["ref"]),
                row["commit"],
                git_dir,
                is_linked(path, git_dir),
                _born(git_dir),
            )
        )
    return found


def is_linked(path: bytes, git_dir: bytes) -> bool:
    """Whether this directory exists and names its administrative directory."""
    named = linked_directory(path)
    return named is not None and os.path.realpath(named) == os.path.realpath(git_dir)


def _born(git_dir: bytes) -> str | None:
    """Its name in the repository, and the first line of its log: who made it when, and where."""
    try:
        fd = os.open(os.path.join(git_dir, b"logs/HEAD"), os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        line, end, _ = os.read(fd, _LINE_BYTES).partition(b"\n")
    except OSError:
        return None
    finally:
        os.close(fd)
    # A truncated log begins with another commit, and proves nothing.
    if not end or not line.startswith(b"0" * _OID_LENGTH):
        return None
    return digest_of(os.path.basename(git_dir) + b"\n" + line).hex()


def changed_paths(git: Git) -> list[bytes]:
    """Paths whose files differ from the index, judging by their times, and untracked paths that are
    not ignored. No content is read."""
    raw = git.run("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
    fields = raw.split(b"\0")
    changed = {
        path
        for head, path in zip(fields[0::2], fields[1::2], strict=False)
        if _GITLINK not in head.lstrip(b":").split(b" ")[:2]
    }
    others = git.run("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    # A directory is another repository, which is not part of this worktree.
    changed.update(path for path in others if path and not path.endswith(b"/"))
    return sorted(path for path in changed if all(map(is_safe_name, path.split(b"/"))))


def unknown_to_git(git: Git) -> list[bytes]:
    """Everything that the index does not have, ignored or not. A directory with a trailing slash is
    another repository, such as a submodule."""
    others = [path for path in git.run("ls-files", "-z", "--others").split(b"\0") if path]
    listed = git.run("ls-files", "-z", "--stage").split(b"\0")
    submodules = [line.partition(b"\t")[2] + b"/" for line in listed if line.startswith(_GITLINK)]
    return others + submodules


_MOST_FILES = 20_000


class WorktreesCapture:
    """One capture. `with_files`: capture the files of worktrees, too."""

    def __init__(
        self,
        repository: Repository,
        request: CaptureRequest,
        environment: Mapping[str, str],
        *,
        with_files: bool,
    ) -> None:
        self._repository = repository
        self._request = request
        self._environment = environment
        self._with_files = with_files
        self._commits: list[str] = []
        self._blobs: set[str] = set()
        self._problems: list[str] = []

    def run(self, sink: ContentSink) -> Captured:
        rows = []
        linked = linked_worktrees(self._repository)
        target = self._intended_state()
        for number, worktree in enumerate(linked):
            if worktree.commit is not None:
                self._commits.append(worktree.commit)
            is_replaced = target is not None and self._is_index_replaced(target, worktree)
            staged = None
            if self._with_files or is_replaced:
                needed = is_replaced or worktree.is_there
                staged = self._take_index(number, worktree, sink, needed=needed)
            has_files = self._with_files and staged is not None
            rows.append(
                {
                    "path": to_text(worktree.path),
                    "ref": None if worktree.ref is None else to_text(worktree.ref),
                    "commit": worktree.commit,
                    "files": has_files and self._take_files(number, worktree, sink),
                    "staged": staged,
                    "born": worktree.born,
                }
                | ({} if worktree.is_there else {"is_there": False})
            )
        facts: dict[str, Any] = {"worktrees": rows} | self._planned_creations(linked, target)
        return Captured(facts, tuple(self._problems), self._keep())

    def _is_index_replaced(self, target: WorktreesState, worktree: Linked) -> bool:
        """Whether the restore may replace or remove the index of this worktree."""
        assert self._request.intended is not None
        saved = target.at(worktree.path)
        is_restored = self._request.intended.mode == EXACT or not worktree.is_there
        return worktree.path in target.absent or (
            is_restored and saved is not None and saved.index is not None
        )

    def _take_index(
        self, number: int, worktree: Linked, sink: ContentSink, *, needed: bool
    ) -> str | None:
        """The `index_digest` of its index; None if unknown, which is a problem if `needed`."""
        git = self._git_of(worktree)
        try:
            self._blobs |= read_staged(git, worktree.commit).blobs
            index = read_whole(os.path.join(worktree.git_dir, b"index"))
            shared = shared_file(index)
            shared_data = b"" if shared is None else _read_shared(worktree, shared)
            digest = index_digest(git, index, worktree.commit)
        except GitFailed as error:
            if needed:
                self._problems.append(f"{to_text(worktree.path)}: {error}")
            return None
        sink.add(f"{number}/{INDEX}/", [index])
        if shared is not None:
            sink.add(f"{number}/{SHARED_INDEX}/{shared}", [shared_data])
        return digest

    def _git_of(self, worktree: Linked) -> Git:
        repository = worktree.repository(self._repository.common_dir)
        return Git(repository, self._environment, self._request.timeout_s)

    def _take_files(self, number: int, worktree: Linked, sink: ContentSink) -> bool:
        if not worktree.is_there:
            return False
        shown = to_text(worktree.path)
        try:
            paths = changed_paths(self._git_of(worktree))
        except GitFailed as error:
            self._problems.append(f"{shown}: {error}")
            return False
        if len(paths) > _MOST_FILES:
            self._problems.append(f"{shown} has {len(paths):,} changed files, too many to save")
            return False
        files = WorktreeFiles(worktree.path)
        for path in paths:
            try:
                kind = files.kind(path)
                name = None if kind is None else content_name(number, kind, path)
                if kind is None or name is None:
                    self._problems.append(f"{shown}: {to_text(path)} cannot be saved")
                    continue
                sink.add(name, files.read(path, kind) if kind != "g" else [])
            except OSError as error:
                self._problems.append(f"{shown}: {to_text(path)}: {error.strerror}")
        return True

    def _intended_state(self) -> WorktreesState | None:
        """The target of the restore that follows, if any."""
        intended = self._request.intended
        try:
            return None if intended is None else decode(intended.state)
        except ComponentProblem:
            return None  # the restore itself will report it

    def _planned_creations(
        self, linked: list[Linked], target: WorktreesState | None
    ) -> dict[str, Any]:
        """For undo: missing worktrees, directories and branches that a restore will create."""
        if target is None:
            return {}
        there = {worktree.path for worktree in linked if worktree.is_there}
        born = {worktree.born for worktree in linked if worktree.is_there} - {None}
        missing = [
            one for one in target.worktrees if one.path not in there and one.born not in born
        ]
        branches = {
            to_text(one.ref): one.commit
            for one in missing
            if one.ref is not None and read_reference(self._repository, one.ref) is None
        }
        return {"absent": [to_text(one.path) for one in missing], "new_refs": branches}

    def _keep(self) -> dict[str, Any]:
        commits = sorted(set(self._commits))
        if self._request.checkpoint is None or not (commits or self._blobs):
            return {}
        needs = digest_of(repr((commits, sorted(self._blobs))).encode()).hex()
        known = self._request.previous.notes if self._request.previous is not None else {}
        if (
            known.get("needs") == needs
            and read_reference(self._repository, known["ref"].encode()) == known["commit"]
        ):
            return {key: known[key] for key in ("ref", "commit", "needs")}
        ref = f"refs/holdfast/{owner_of(self._request.owner)}/{self._request.checkpoint}"
        git = Git(self._repository, self._environment, self._request.timeout_s)
        try:
            head = commits[0] if commits else None
            oid = keep(git, ref.encode(), head, commits, self._blobs)
        except GitFailed as error:
            self._problems.append(str(error))
            return {}
        return {"ref": ref, "commit": oid, "needs": needs}


def index_digest(git: Git, index: bytes, commit: str | None) -> str:
    """The `staged_digest`; git lists the entries of a split index."""
    if shared_file(index) is None:
        return staged_digest(index, commit)
    rows = []
    for line in git.run("ls-files", "--stage", "-z").split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, oid, stage = head.split(b" ")
        rows.append((path, int(mode, 8), oid.decode(), int(stage)))
    return digest_of_rows(rows)


def _read_shared(worktree: Linked, name: str) -> bytes:
    data = read_whole(os.path.join(worktree.git_dir, os.fsencode(name)))
    if not data:
        raise GitFailed(f"the shared index file {name} is missing", "run: git reset")
    return data


def owner_of(owner: str) -> str:
    """Keeps worktree references separate from those of the git component."""
    return f"{owner}-worktrees"
