"""Taking linked worktrees into a checkpoint.

    those that are registered → place and HEAD of each → with files: its index, and every file that
    the index does not have, by content → commits and staged content kept alive

Files that are the same as in the index are not taken: the commits and the index have them. What git
ignores is not taken either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.components.git import keep_alive as keeping
from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.plain_files import read_whole
from holdfast.components.git.references import read_reference
from holdfast.components.git.repository import Repository
from holdfast.components.git.uncommitted import read_staged
from holdfast.components.worktrees.files import WorktreeFiles
from holdfast.components.worktrees.linked import Linked, changed_paths, linked_worktrees
from holdfast.components.worktrees.states import INDEX, content_name, decode
from holdfast.domain.paths import to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import Captured, CaptureRequest, ComponentProblem, ContentSink

_MOST_FILES = 20_000


class Capturing:
    """One capture. `with_files` tells that the files of worktrees are asked for."""

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
        for number, worktree in enumerate(linked):
            if worktree.commit is not None:
                self._commits.append(worktree.commit)
            rows.append(
                {
                    "path": to_text(worktree.path),
                    "ref": None if worktree.ref is None else to_text(worktree.ref),
                    "commit": worktree.commit,
                    "files": self._take_files(number, worktree, sink),
                    "born": worktree.born,
                }
            )
        facts: dict[str, Any] = {"worktrees": rows} | self._about_to_be_made(linked)
        return Captured(facts, tuple(self._problems), self._keep())

    def _take_files(self, number: int, worktree: Linked, sink: ContentSink) -> bool:
        if not self._with_files or not worktree.is_there:
            return False
        repository = worktree.repository(self._repository.common_dir)
        git = Git(repository, self._environment, self._request.timeout_s)
        shown = to_text(worktree.path)
        try:
            paths = changed_paths(git)
            self._blobs |= read_staged(git, worktree.commit).blobs
        except GitFailed as error:
            self._problems.append(f"{shown}: {error}")
            return False
        if len(paths) > _MOST_FILES:
            self._problems.append(
                f"{shown} has {len(paths):,} changed files: its files are left out"
            )
            return False
        files = WorktreeFiles(worktree.path)
        sink.add(f"{number}/{INDEX}/", [read_whole(repository.own(b"index"))])
        for path in paths:
            try:
                kind = files.kind(path)
                name = None if kind is None else content_name(number, kind, path)
                if kind is None or name is None:
                    self._problems.append(f"{shown}: {to_text(path)} cannot be taken in")
                    continue
                sink.add(name, files.read(path, kind) if kind != "g" else [])
            except OSError as error:
                self._problems.append(f"{shown}: {to_text(path)}: {error.strerror}")
        return True

    def _about_to_be_made(self, linked: list[Linked]) -> dict[str, Any]:
        """For undo: where a restore will make a worktree or a branch that is not there now."""
        intended = self._request.intended
        if intended is None:
            return {}
        try:
            target = decode(intended.state)
        except ComponentProblem:
            return {}  # the restore itself will say so
        there = {worktree.path for worktree in linked}
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
        if known.get("needs") == needs and self._is_kept(known["ref"], known["commit"]):
            return {key: known[key] for key in ("ref", "commit", "needs")}
        ref = f"refs/holdfast/{owner_of(self._request.owner)}/{self._request.checkpoint}"
        git = Git(self._repository, self._environment, self._request.timeout_s)
        try:
            head = commits[0] if commits else None
            oid = keeping.keep(git, ref.encode(), head, commits, self._blobs)
        except GitFailed as error:
            self._problems.append(str(error))
            return {}
        return {"ref": ref, "commit": oid, "needs": needs}

    def _is_kept(self, ref: str, commit: str) -> bool:
        return read_reference(self._repository, ref.encode()) == commit


def owner_of(owner: str) -> str:
    """What worktrees keep alive lies beside what the git component keeps, not among it."""
    return f"{owner}-worktrees"
