"""The repository of a workspace for the engine: where commits and the mirror are made.

What one of them needs is imported by it: most processes make neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.commits import AcceptOutcome, AcceptPlan
    from holdfast.ports.repository import CommitWish, HandOver


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
