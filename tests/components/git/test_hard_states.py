"""States of a repository that are easily left half restored: git itself has to go on from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.ids import CheckpointId
from holdfast.engine.components.manifests import state_of
from tests.behind_the_api import engine_of
from tests.components.git.repositories import (
    commit,
    git,
    new_repository,
    submodule,
    with_history,
    write,
)

EXACT = {"git": "exact"}


@pytest.mark.requirement("GT-2", "GT-6", "BX-6")
@pytest.mark.parametrize("backend", ["merge", "apply"])
def test_a_rebase_that_was_finished_is_taken_up_again_and_can_be_finished_otherwise(
    tmp_path: Path, backend: str
) -> None:
    place = with_history(tmp_path / "project", "core.editor=true")
    git(place, "checkout", "-q", "side")
    before = git(place, "rev-parse", "side")
    git(place, "rebase", f"--{backend}", "main", check=False)
    assert (place / f".git/rebase-{backend}").is_dir()
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("in the middle of a rebase")
        write(place / "code.txt", "resolved by the agent\n")
        git(place, "add", "code.txt")
        git(place, "rebase", "--continue")
        finished = git(place, "rev-parse", "side")
        assert finished != before
        session.restore_checkpoint(saved, components=EXACT)
        assert git(place, "rev-parse", "side") == before, "the rebase moves it when it ends"
        write(place / "code.txt", "resolved by the user\n")
        git(place, "add", "code.txt")
        git(place, "rebase", "--continue")
        assert git(place, "symbolic-ref", "HEAD").strip() == "refs/heads/side"
        assert git(place, "show", "HEAD:code.txt") == "resolved by the user\n"


@pytest.mark.requirement("GT-2", "BX-6")
def test_undo_returns_a_branch_that_was_being_rebased_to_its_old_commit(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project", "core.editor=true")
    git(place, "checkout", "-q", "side")
    git(place, "rebase", "main", check=False)
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("in the middle of a rebase")
        write(place / "code.txt", "resolved by the agent\n")
        git(place, "add", "code.txt")
        git(place, "rebase", "--continue")
        finished = git(place, "rev-parse", "side", "HEAD")
        session.restore_checkpoint(saved, components=EXACT)
        session.undo()
        assert git(place, "rev-parse", "side", "HEAD") == finished
        assert not (place / ".git/rebase-merge").exists()


@pytest.mark.requirement("GT-1", "GT-2", "GT-6")
def test_an_index_in_two_files_comes_back_with_both(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    git(place, "update-index", "--split-index")
    write(place / "staged.txt", "only ever staged\n")
    git(place, "add", "staged.txt")
    before = git(place, "ls-files", "--stage")
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("with a split index")
        assert outcome.degraded == ()
        git(place, "update-index", "--no-split-index")
        git(place, "reset", "-q", "--hard")
        for shared in (place / ".git").glob("sharedindex.*"):
            shared.unlink()
        session.restore_checkpoint(outcome.checkpoint.id, components=EXACT)
        assert git(place, "ls-files", "--stage") == before
        assert git(place, "status", "--porcelain") == "A  staged.txt\n"
        session.undo()
        assert git(place, "diff", "--cached", "--name-only") == ""


@pytest.mark.requirement("GT-2", "RB-1")
def test_a_preview_names_the_commits_of_a_branch_that_would_go(tmp_path: Path) -> None:
    place = new_repository(tmp_path / "project")
    write(place / "code.txt", "one\n")
    with SessionCheckpointer(place, "s") as session:
        unborn = session.checkpoint("before the first commit")
        commit(place, "code.txt", "one\n")
        session.checkpoint("a reference of Holdfast that keeps the first commit")
        commit(place, "code.txt", "two\n")
        plan = session.plan_restore(unborn, components=EXACT)
        (said,) = [x for step in plan.components for x in step.actions if "leave main" in x]
        assert "code.txt: one" in said
        assert "code.txt: two" in said


@pytest.mark.requirement("GT-1", "GT-6")
def test_submodules_are_listed_even_if_the_index_is_in_two_files(tmp_path: Path) -> None:
    place = tmp_path / "project"
    submodule(place)
    with SessionCheckpointer(place, "s") as session:
        whole = git_facts(session, session.checkpoint("whole"))
        assert len(whole["submodules"]) == 1
        git(place, "update-index", "--split-index")
        split = git_facts(session, session.checkpoint("split"))
    assert "shared_index" in split
    assert split["submodules"] == whole["submodules"]


def git_facts(session: SessionCheckpointer, checkpoint: str) -> Mapping[str, Any]:
    vault = engine_of(session).vault
    made = vault.catalog.checkpoint(None, CheckpointId(checkpoint))
    assert made is not None
    state = state_of(vault.objects, made, "git")
    assert state is not None
    return state.facts
