"""Work that becomes a commit of git: the plan, what is left out of it and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.errors import Refused

UNDO = "git reset --soft HEAD~1"
UNDO_FIRST = "git update-ref -d HEAD"


class LeftOut(StrEnum):
    """Why a changed path is not in the commit."""

    IGNORED = "ignored by git"
    NESTED = "in another repository or submodule"
    NAME = "a name that git does not take"


@dataclass(frozen=True, slots=True)
class CommitPath:
    """One path of the commit, relative to the top of the repository; A, M, D or T."""

    path: bytes
    status: str


@dataclass(frozen=True, slots=True)
class PathLeftOut:
    path: bytes
    reason: LeftOut


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps a commit from being made, and what to do about it."""

    reason: str
    way_out: str


@dataclass(frozen=True, slots=True)
class AcceptPlan:
    """`head` is the commit that the branch stands on, None when it has none."""

    branch: bytes | None
    head: str | None
    paths: tuple[CommitPath, ...] = ()
    left_out: tuple[PathLeftOut, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()

    def require_clear(self) -> None:
        """`Refused` when something is in the way."""
        if self.obstacles:
            first = self.obstacles[0]
            raise Refused(first.reason, hint=first.way_out)


@dataclass(frozen=True, slots=True)
class AcceptOutcome:
    """A commit that was made, its message as it was recorded, and the plan it followed. `commit` is
    None for a plan that was only looked at."""

    commit: str | None
    message: str
    plan: AcceptPlan
    warnings: tuple[str, ...] = ()

    @property
    def undo(self) -> str:
        """The git command that takes the commit back and leaves every file as it is."""
        return UNDO_FIRST if self.plan.head is None else UNDO
