"""The repository of a workspace for the engine: where commits and the mirror are made.

What one of them needs is imported by it: most processes make neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.components.git.mirror.mirror import Mirror
    from holdfast.components.git.repository import Repository
    from holdfast.domain.git.accept import AcceptOutcome, AcceptPlan
    from holdfast.domain.git.merges import MainBranches
    from holdfast.ports.repository import (
        CommitWish,
        HandOver,
        MirroredHistory,
        MirrorOutcome,
        MirrorPlace,
    )

_TIMEOUT_S = 120.0


def _still_in(ref: bytes) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in to_text(ref))
    return f"{shown} has commits of a mirror, and may still hold what was removed: delete that ref"


class GitWork:
    """`environment` is the user's: git, their settings, their editor and their agents for keys."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def main_branches(self, workspace: Path, names: Sequence[str]) -> MainBranches | None:
        from holdfast.components.git.merges import main_branches

        return main_branches(workspace, names)

    def merged_into(self, workspace: Path, branch: str, *, since: str, tip: str) -> str | None:
        from holdfast.components.git.merges import merged_into

        return merged_into(workspace, branch, since, tip, self._environment)

    def is_unborn(self, workspace: Path) -> bool:
        from holdfast.components.git.accept import named_trouble, require_repository
        from holdfast.components.git.references import read_head

        with named_trouble():
            return read_head(require_repository(workspace)).commit is None

    def plan_commit(self, work: HandOver) -> AcceptPlan:
        from holdfast.components.git.accept import Accepting

        return Accepting(self._environment, work).plan()

    def commit(self, work: HandOver, wish: CommitWish) -> AcceptOutcome:
        from holdfast.components.git.accept import Accepting

        return Accepting(self._environment, work).commit(wish)

    def mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        return self._mirrored(workspace, place, history, afresh=False)

    def remake_mirror(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory
    ) -> MirrorOutcome:
        return self._mirrored(workspace, place, history, afresh=True)

    def _mirrored(
        self, workspace: Path, place: MirrorPlace, history: MirroredHistory, *, afresh: bool
    ) -> MirrorOutcome:
        from holdfast.components.git.commands import Git, GitFailed
        from holdfast.components.git.mirror.mirror import Mirror
        from holdfast.components.git.references import OtherReferences, require_file_references
        from holdfast.components.git.repository import find_repository
        from holdfast.ports.repository import MirrorOutcome

        repository = find_repository(workspace)
        if repository is None:
            return MirrorOutcome(0, False, ("the workspace is in no git repository",))
        mirror = Mirror(Git(repository, self._environment, _TIMEOUT_S), place, history)
        try:
            require_file_references(repository)
            if not afresh:
                return mirror.catch_up()
            return self._afresh(mirror, repository, place, history.owner)
        except (GitFailed, OtherReferences, HoldfastError, OSError, ValueError) as error:
            return MirrorOutcome(0, False, (str(error),))

    def _afresh(
        self, mirror: Mirror, repository: Repository, place: MirrorPlace, owner: str
    ) -> MirrorOutcome:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.content_holders import refs_elsewhere, root_of

        git = Git(repository, self._environment, _TIMEOUT_S)
        root = root_of(git, place.branch)
        mirror.remove()
        made = mirror.catch_up()
        left = tuple(_still_in(ref) for ref in refs_elsewhere(git, owner, place, root))
        return replace(made, warnings=(*made.warnings, *left))

    def former_mirrors(self, workspace: Path, owner: str) -> Sequence[str]:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.content_holders import refs_elsewhere
        from holdfast.components.git.repository import find_repository
        from holdfast.ports.component import ComponentProblem

        repository = find_repository(workspace)
        if repository is None:
            return ()
        git = Git(repository, self._environment, _TIMEOUT_S)
        try:
            return [_still_in(ref) for ref in refs_elsewhere(git, owner, None, None)]
        except ComponentProblem as error:
            return [f"whether git has a former mirror cannot be found out: {error}"]

    def bundle(self, place: MirrorPlace, history: MirroredHistory, fd: int) -> MirrorOutcome:
        from holdfast.components.git.accept import named_trouble
        from holdfast.components.git.mirror.git_bundle import write_bundle

        with named_trouble():
            return write_bundle(self._environment, place, history, fd)
