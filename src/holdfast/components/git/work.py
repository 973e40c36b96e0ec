"""The repository of a workspace for the engine: where commits and the mirror are made.

What one of them needs is imported by it: most processes make neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.domain.commits import AcceptOutcome, AcceptPlan
    from holdfast.ports.repository import (
        CommitWish,
        HandOver,
        MirroredHistory,
        MirrorOutcome,
        MirrorPlace,
    )

_TIMEOUT_S = 120.0


class GitWork:
    """`environment` is the user's: git, their settings, their editor and their agents for keys."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def is_unborn(self, workspace: Path) -> bool:
        from holdfast.components.git.accepting import named_trouble, require_repository
        from holdfast.components.git.references import read_head

        with named_trouble():
            return read_head(require_repository(workspace)).commit is None

    def plan_commit(self, work: HandOver) -> AcceptPlan:
        from holdfast.components.git.accepting import Accepting

        return Accepting(self._environment, work).plan()

    def commit(self, work: HandOver, wish: CommitWish) -> AcceptOutcome:
        from holdfast.components.git.accepting import Accepting

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
        from holdfast.components.git.finding import find_repository
        from holdfast.components.git.mirror.mirroring import Mirror
        from holdfast.components.git.references import OtherReferences, require_file_references
        from holdfast.ports.repository import MirrorOutcome

        repository = find_repository(workspace)
        if repository is None:
            return MirrorOutcome(0, False, ("the workspace is in no git repository",))
        mirror = Mirror(Git(repository, self._environment, _TIMEOUT_S), place, history)
        try:
            require_file_references(repository)
            if afresh:
                mirror.remove()
            return mirror.catch_up()
        except (GitFailed, OtherReferences, HoldfastError, OSError, ValueError) as error:
            return MirrorOutcome(0, False, (str(error),))

    def bundle(self, place: MirrorPlace, history: MirroredHistory, fd: int) -> MirrorOutcome:
        from holdfast.components.git.accepting import named_trouble
        from holdfast.components.git.mirror.bundling import write_bundle

        with named_trouble():
            return write_bundle(self._environment, place, history, fd)
