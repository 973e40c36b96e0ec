"""Every component keeps the one contract, and so does the example of the guide."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.components.git.component import GitComponent
from holdfast.components.git.work_repository import GitWork
from holdfast.components.installed import BuiltIn, InstalledComponents
from holdfast.components.worktrees.component import WorktreesComponent
from holdfast.ports.component import Component, ComponentProblem, Components
from holdfast.ports.repository import WorkRepository
from holdfast.testing.component_contract import ComponentContract, ComponentSetContract
from holdfast.testing.repository_contract import WorkRepositoryContract
from tests.components.git.repositories import (
    commit,
    git,
    picture,
    staged,
    with_history,
    write,
)
from tests.components.worktrees.scenes import with_worktrees, worktrees_picture
from tests.project.repository import ROOT

GUIDE = ROOT / "docs/guides/component-plug-ins.md"


@pytest.mark.requirement("DB-3", "GT-1")
class TestGit(ComponentContract):
    def make_component(self) -> Component:
        return GitComponent(os.environ)

    def make_state(self, place: Path) -> None:
        staged(place)

    def change_state(self, place: Path) -> None:
        commit(place, "code.txt", "something else\n")
        git(place, "checkout", "-q", "-f", "side")

    def look_at_state(self, place: Path) -> object:
        seen = picture(place)
        return seen.head, seen.index, seen.refs, seen.operation, seen.untouched


@pytest.mark.requirement("DB-3", "GT-2")
class TestGitOnOneBranch(TestGit):
    def make_state(self, place: Path) -> None:
        with_history(place)

    def change_state(self, place: Path) -> None:
        commit(place, "code.txt", "something else\n")


@pytest.mark.requirement("DB-3", "GT-5")
class TestWorktrees(ComponentContract):
    def make_component(self) -> Component:
        return WorktreesComponent(os.environ, files="always")

    def make_state(self, place: Path) -> None:
        with_worktrees(place)

    def change_state(self, place: Path) -> None:
        git(place, "worktree", "remove", "--force", str(place.parent / "side-work"))
        git(place, "branch", "-q", "-D", "side")
        write(place.parent / "loose-work/code.txt", "changed again\n")
        write(place.parent / "loose-work/more.txt", "more\n")

    def look_at_state(self, place: Path) -> object:
        return worktrees_picture(place)


@pytest.mark.requirement("DB-3", "GT-5")
class TestWorktreesWithoutTheirFiles(TestWorktrees):
    def make_component(self) -> Component:
        return WorktreesComponent(os.environ, files="never")

    def make_state(self, place: Path) -> None:
        with_history(place)
        git(place, "worktree", "add", "-q", str(place.parent / "side-work"), "side")

    def change_state(self, place: Path) -> None:
        git(place, "worktree", "remove", "--force", str(place.parent / "side-work"))


def example() -> dict[str, Any]:
    """Everything that the guide's code defines."""
    code = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.S | re.M)
    names: dict[str, Any] = {"__name__": "guide"}
    for block in code:
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


@pytest.mark.requirement("DB-3")
class TestTheExampleOfTheGuide(example()["TestPlanner"]):  # type: ignore[misc]
    pass


@pytest.mark.requirement("GT-3")
class TestGitWork(WorkRepositoryContract):
    def repository(self) -> WorkRepository:
        return GitWork(os.environ)

    def make_repository(self, place: Path) -> None:
        with_history(place)


@pytest.mark.requirement("DB-3")
class TestInstalledComponents(ComponentSetContract):
    loadable = ("worktrees", "git")

    def make_set(self, *names: str) -> Components:
        built_in = {
            "git": BuiltIn(lambda: GitComponent(os.environ), lambda _: True),
            "worktrees": BuiltIn(
                lambda: WorktreesComponent(os.environ, files="always"), lambda _: False
            ),
        }
        return InstalledComponents(names, built_in, self.load)

    @staticmethod
    def load(load: Callable[[], Component]) -> Component:
        try:
            return load()
        except LookupError as error:
            raise ComponentProblem(str(error)) from None
