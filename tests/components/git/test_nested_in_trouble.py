"""Nested repositories that are damaged, hostile, or not to be touched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict
from tests.components.git.nested_repositories import (
    facts_of,
    nested,
    pictures,
    references,
    with_nested,
)
from tests.components.git.repositories import (
    commit,
    copied,
    git,
    git_directory,
    picture,
    resets,
    with_history,
    write,
)
from tests.components.git.test_costs_and_crashes import CRASHING
from tests.support.composition import configure
from tests.support.strides import strides

EXACT = {"git": "exact"}


@pytest.mark.requirement("GT-6", "RL-7")
def test_a_git_file_that_leads_out_of_the_workspace_is_never_followed(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    outside = with_history(tmp_path / "outside")
    write(place / "inner/code.txt", "inner\n")
    write(place / "inner/.git", f"gitdir: {outside / '.git'}\n")
    (place / "through").symlink_to(outside)
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before")
        assert saved.degraded == ()
        assert facts_of(session, saved.checkpoint.id)["nested_left_out"] == [
            ["inner", f"its repository is elsewhere, at {outside / '.git'}"]
        ]
        assert references(outside) == []
        commit(outside, "code.txt", "of somebody else\n")
        now = picture(outside)
        session.restore_checkpoint(saved.checkpoint.id, components=EXACT)
        assert picture(outside) == now


@pytest.mark.requirement("GT-6", "RL-7")
def test_a_place_that_became_a_link_is_left_alone(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with_history(place / "inner")
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        outside = copied(place / "inner", tmp_path / "outside")
        commit(outside, "code.txt", "of somebody else\n")
        now = picture(outside)
        shutil.rmtree(place / "inner/.git")
        shutil.rmtree(place / "inner")
        (place / "inner").symlink_to(outside)
        plan = session.plan_restore(saved, components=EXACT)
        assert any("it is reached through a link" in text for text in plan.warnings)
        session.restore_checkpoint(saved, components=EXACT)
        assert picture(outside) == now


@pytest.mark.requirement("GT-6", "DB-3")
def test_a_damaged_nested_repository_is_named_and_costs_no_other(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    git_directory(place / "lib").joinpath("HEAD").write_text("nonsense\n")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("why")
        (problem,) = saved.degraded
        assert problem.startswith("git: lib: the repository is damaged")
        rows = facts_of(session, saved.checkpoint.id)["nested"]
        assert isinstance(rows, list)
        assert [("facts" in row, row["path"]) for row in rows] == [
            (False, "lib"),
            (True, "vendor/tool"),
        ]


@pytest.mark.requirement("GT-1", "CP-12")
def test_one_in_an_ignored_directory_is_left_alone(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    write(place / ".gitignore", "scratch/\n")
    with_history(place / "scratch/inner")
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("why")
        assert "nested" not in facts_of(session, saved)
    assert references(place / "scratch/inner") == []


@pytest.mark.requirement("GT-1", "GT-5")
def test_a_linked_worktree_inside_is_left_to_the_repository_it_belongs_to(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    git(place, "worktree", "add", "-q", str(place / "side-work"), "side")
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("why")
        assert saved.degraded == ()
        assert "nested" not in facts_of(session, saved.checkpoint.id)


@pytest.mark.requirement("GT-2", "RB-3")
def test_one_that_cannot_be_restored_leaves_all_of_them_as_they_were(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        commit(place, "code.txt", "an agent was here\n")
        resets(place / "lib")
        write(git_directory(place / "vendor/tool") / "index.lock", "")
        after = pictures(place)
        with pytest.raises(RestoreConflict, match=r"vendor/tool: .*index\.lock exists"):
            session.restore_checkpoint(saved, components=EXACT)
        assert pictures(place) == after


@pytest.mark.requirement("RB-3", "GT-2")
@strides(31)
def test_a_crash_anywhere_leaves_all_of_them_as_they_were_or_as_they_shall_be(
    tmp_path: Path, holdfast_home: Path, stride: int
) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
    then = [(seen.head, seen.index, seen.operation) for seen in pictures(place)]
    commit(place, "code.txt", "an agent was here\n")
    for repository in nested(place):
        resets(repository)
        git(repository, "checkout", "-qb", "elsewhere")
    now = [(seen.head, seen.index, seen.operation) for seen in pictures(place)]
    assert all(one != other for one, other in zip(then, now, strict=True))
    kept = [copied(at, tmp_path / f"kept-{at.name}") for at in (place, holdfast_home)]
    outcomes, step = set(), 0
    while True:
        for source, target in zip(kept, (place, holdfast_home), strict=True):
            shutil.rmtree(target)
            copied(source, target)
        child = subprocess.run(
            [sys.executable, "-c", CRASHING, str(place), saved, str(step)], check=False
        )
        with SessionCheckpointer(place, "s"):
            seen = [(one.head, one.index, one.operation) for one in pictures(place)]
        assert seen in (then, now), step
        outcomes.add(seen == then)
        if child.returncode == 0:
            break
        assert child.returncode == 9
        step += stride
    assert outcomes == {True, False}
