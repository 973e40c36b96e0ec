"""A workspace's repository, for the engine: merges into main branches, commits and the mirror.

To detect a merge into a main branch:

    HEAD and its branch, read as files → moved? → the branch's log tells how → else ask git

While the branch has not moved, no process is started and only a few small files are read. Squashed,
picked or rebased commits look like any others and are not recognised as merges.

Each method imports what it needs: most processes make neither commits nor a mirror.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.components.git.references import HEADS, BrokenReference, read_head, read_reference
from holdfast.components.git.repository import find_repository, read_end
from holdfast.domain.errors import HoldfastError
from holdfast.domain.git.branches import MainBranches, Unclear, merged_since, read_moves
from holdfast.domain.paths import to_text
from holdfast.domain.wording import printable

if TYPE_CHECKING:
    from holdfast.components.git.commands import Git
    from holdfast.components.git.mirror_branch import Mirror
    from holdfast.domain.git.commits import AcceptOutcome, AcceptPlan
    from holdfast.ports.repository import (
        CommitWish,
        HandOver,
        MirroredHistory,
        MirrorOutcome,
        MirrorPlace,
    )

_LOG_BYTES = 64 << 10
_ASKED_S = 20.0


def _merge_without_log(git: Git, ref: bytes, known: str, tip: str) -> str | None:
    """A commit with two parents is new, or another branch is at its new commit."""
    from holdfast.components.git.commands import GitFailed

    try:
        if git.run("rev-list", "--min-parents=2", "--max-count=1", f"{known}..{tip}", "--"):
            return "Merged a branch"
        if git.run("rev-list", "--max-count=1", f"{tip}..{known}", "--"):
            return None  # not a fast-forward
        names = git.run(
            "for-each-ref", "--points-at", tip, "--format=%(refname)", "refs/heads", "refs/remotes"
        )
    except GitFailed:
        return None
    own = ref.removeprefix(HEADS)
    others = [
        name.split(b"/", 2)[2]
        for name in names.splitlines()
        if name != ref and not name.endswith((b"/" + own, b"/HEAD"))
    ]
    return f"Merged {os.fsdecode(others[0])[:80]}" if others else None


_TIMEOUT_S = 120.0


def _mirror_warning(ref: bytes) -> str:
    shown = printable(to_text(ref))
    return f"{shown} contains mirror commits and may still have the purged content; delete that ref"


def _rebuilt(mirror: Mirror, git: Git, place: MirrorPlace, owner: str) -> MirrorOutcome:
    from holdfast.components.git.content_holders import refs_elsewhere, root_of

    root = root_of(git, place.branch)
    mirror.remove()
    made = mirror.catch_up()
    left = tuple(_mirror_warning(ref) for ref in refs_elsewhere(git, owner, place, root))
    return replace(made, warnings=(*made.warnings, *left))


class GitWork:
    """`environment` is the user's: PATH, settings, editor and key agents."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def main_branches(self, workspace: Path, names: Sequence[str]) -> MainBranches | None:
        repository = find_repository(workspace)
        if repository is None:
            return None
        wanted = {HEADS + name.encode("utf-8", "surrogateescape"): name for name in names}
        try:
            head = read_head(repository)
            tips = {
                name: commit
                for ref, name in wanted.items()
                if (commit := head.commit if ref == head.ref else read_reference(repository, ref))
            }
        except (BrokenReference, OSError):
            return None
        current = wanted.get(head.ref or b"")
        under_way = current is not None and os.path.exists(repository.own(b"MERGE_HEAD"))
        return MainBranches(tips, current if current in tips else None, under_way)

    def merged_into(self, workspace: Path, branch: str, *, since: str, tip: str) -> str | None:
        repository = find_repository(workspace)
        if repository is None:
            return None
        ref = HEADS + branch.encode("utf-8", "surrogateescape")
        moves = read_moves(read_end(repository.shared(b"logs", ref), _LOG_BYTES))
        merged = merged_since(moves, since, tip)
        if isinstance(merged, Unclear):
            from holdfast.components.git.commands import Git

            git = Git(repository, self._environment, _ASKED_S)
            merged = _merge_without_log(git, ref, since, tip)
        return None if merged is None else f"{merged} into {branch}"

    def is_unborn(self, workspace: Path) -> bool:
        from holdfast.components.git.accept import require_repository, translate_git_errors

        with translate_git_errors():
            return read_head(require_repository(workspace)).commit is None

    def plan_commit(self, work: HandOver) -> AcceptPlan:
        from holdfast.components.git.accept import Acceptance

        return Acceptance(self._environment, work).plan()

    def commit(self, work: HandOver, wish: CommitWish) -> AcceptOutcome:
        from holdfast.components.git.accept import Acceptance

        return Acceptance(self._environment, work).commit(wish)

    def mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        return self._mirrored(workspace, place, history, rebuild=False)

    def remake_mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        return self._mirrored(workspace, place, history, rebuild=True)

    def _mirrored(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory, *, rebuild: bool
    ) -> MirrorOutcome:
        from holdfast.components.git.commands import Git, GitFailed
        from holdfast.components.git.mirror_branch import Mirror
        from holdfast.components.git.references import OtherReferences, require_file_references
        from holdfast.ports.repository import MirrorOutcome

        repository = find_repository(workspace)
        if repository is None:
            return MirrorOutcome(0, False, ("the workspace is not in a git repository",))
        git = Git(repository, self._environment, _TIMEOUT_S)
        mirror = Mirror(git, place, history)
        try:
            require_file_references(repository)
            if not rebuild:
                return mirror.catch_up()
            return _rebuilt(mirror, git, place, history.owner)
        except (GitFailed, OtherReferences, HoldfastError, OSError, ValueError) as error:
            return MirrorOutcome(0, False, (str(error),))

    def former_mirrors(self, workspace: Path, owner: str) -> Sequence[str]:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.content_holders import refs_elsewhere
        from holdfast.ports.component import ComponentProblem

        repository = find_repository(workspace)
        if repository is None:
            return ()
        git = Git(repository, self._environment, _TIMEOUT_S)
        try:
            return [_mirror_warning(ref) for ref in refs_elsewhere(git, owner, None, None)]
        except ComponentProblem as error:
            return [f"cannot check git for an old mirror: {error}"]

    def bundle(self, place: MirrorPlace, history: MirroredHistory, fd: int) -> MirrorOutcome:
        from holdfast.components.git.accept import translate_git_errors
        from holdfast.components.git.mirror_branch import write_bundle

        with translate_git_errors():
            return write_bundle(self._environment, place, history, fd)
