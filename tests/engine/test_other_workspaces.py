"""Worktrees and repositories below a workspace: what its saves and restores leave alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import SkipReason
from holdfast.engine.restore.plan import read_report
from holdfast.engine.stored_objects import list_entries
from tests.behind_the_api import engine_of
from tests.support.composition import composed, configure
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe
from tests.support.watched_workspaces import watched

pytestmark = pytest.mark.requirement("CP-16")
WORKTREE = ".claude/worktrees/b"


def git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit."""
    root = tmp_path / "shop"
    fill(root / "src/app.py", b"price = 1\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begin")
    return root


def add_worktree(project: Path) -> Path:
    git(project, "worktree", "add", "-q", WORKTREE)
    fill(project / WORKTREE / "draft.py", b"nobody committed this\n")
    return project / WORKTREE


def clone_below(root: Path, name: str = "vendor/lib") -> Path:
    fill(root / name / "lib.py", b"one\n")
    git(root / name, "init", "-q")
    return root / name


def skips(session: SessionCheckpointer) -> dict[bytes, SkipReason]:
    return {s.path: s.reason for s in engine_of(session).scan().skipped}


@pytest.mark.requirement("GT-5")
def test_a_worktree_inside_is_in_no_checkpoint_and_listed_with_the_reason(project: Path) -> None:
    add_worktree(project)
    with composed(project) as opened:
        saved = opened.save()
        vault = opened.engine.vault
        paths = {path for path, _ in list_entries(vault.load_tree, saved.tree)}
        reasons = {s.path: s.reason for s in read_report(opened.engine.vault, saved)}
    assert b"src/app.py" in paths
    assert not any(path.startswith(WORKTREE.encode()) for path in paths)
    assert reasons[WORKTREE.encode()] is SkipReason.WORKTREE


@pytest.mark.requirement("GT-5")
@pytest.mark.parametrize("made", ["before the checkpoint", "after the checkpoint"])
def test_a_restore_does_not_reach_into_a_worktree_inside(project: Path, made: str) -> None:
    with SessionCheckpointer(project, "s") as session:
        first = add_worktree(project) if made == "before the checkpoint" else None
        good = session.checkpoint("good")
        worktree = first or add_worktree(project)
        fill(worktree / "work.py", b"of another agent\n")
        (worktree / "src/app.py").unlink()
        (project / "src/app.py").unlink()
        before = describe(worktree, mtimes=True)
        session.restore(good)
        assert describe(worktree, mtimes=True) == before
        assert (project / "src/app.py").read_bytes() == b"price = 1\n"
        session.undo()
        assert describe(worktree, mtimes=True) == before


@pytest.mark.requirement("GT-5")
def test_a_checkpoint_that_has_files_of_a_worktree_is_restored_without_them(
    project: Path,
) -> None:
    """It was made when the directory was no worktree, or by a version that captured those."""
    fill(project / WORKTREE / "draft.py", b"from then\n")
    with SessionCheckpointer(project, "s") as session:
        then = session.checkpoint("then")
        shutil.rmtree(project / ".claude")
        worktree = add_worktree(project)
        (project / "src/app.py").write_text("wrecked\n")
        before = describe(worktree, mtimes=True)
        plan = session.plan_restore(then)
        assert [kept.path for kept in plan.kept] == [WORKTREE.encode()]
        assert "linked worktree" in plan.kept[0].reason
        outcome = session.restore_checkpoint(then)
        assert outcome.verified
        assert describe(worktree, mtimes=True) == before
        assert (project / "src/app.py").read_bytes() == b"price = 1\n"


@pytest.mark.requirement("GT-5")
def test_a_worktree_that_comes_and_goes_is_noticed_by_scans_that_remember(project: Path) -> None:
    with SessionCheckpointer(project, "s") as session:
        session.checkpoint("none yet")
        worktree = add_worktree(project)
        session.checkpoint("one")
        assert skips(session)[WORKTREE.encode()] is SkipReason.WORKTREE
        shutil.rmtree(project / ".git/worktrees")  # git has forgotten it
        assert WORKTREE.encode() not in skips(session)
        good = session.checkpoint("a plain directory now")
        (worktree / "draft.py").unlink()
        session.restore(good)
        assert (worktree / "draft.py").exists()


@pytest.mark.linux
def test_a_watched_workspace_notices_it_as_well(project: Path) -> None:
    with watched(project) as workspace:
        workspace.settle()
        add_worktree(project)
        workspace.settle()
        assert workspace.seen() == workspace.from_nothing()
        assert (WORKTREE.encode(), SkipReason.WORKTREE.value) in workspace.seen()[1]
        shutil.rmtree(project / ".git/worktrees")
        assert workspace.seen() == workspace.from_nothing()
        assert (WORKTREE.encode(), SkipReason.WORKTREE.value) not in workspace.seen()[1]


def test_no_include_pattern_brings_a_worktree_in(project: Path) -> None:
    fill(project / ".gitignore", b".claude/\n")
    add_worktree(project)
    configure(project, include=[".claude/", "draft.py"])
    with composed(project) as opened:
        saved, vault = opened.save(), opened.engine.vault
        paths = [path for path, _ in list_entries(vault.load_tree, saved.tree)]
    assert not [path for path in paths if path.startswith(WORKTREE.encode())]


@pytest.mark.requirement("CP-11")
def test_a_clone_inside_a_project_is_captured_and_named_when_a_restore_changes_it(
    project: Path,
) -> None:
    clone = clone_below(project)
    with SessionCheckpointer(project, "s") as session:
        good = session.checkpoint("good")
        (project / "src/app.py").unlink()
        assert not [w for w in session.plan_restore(good).warnings if "repository" in w]
        (clone / "lib.py").unlink()
        named = "this changes 1 file in the repository vendor/lib"
        assert named in session.plan_restore(good).warnings
        shutil.rmtree(clone)
        assert named in session.plan_restore(good).warnings, "also when it is gone"
        assert named in session.restore_checkpoint(good).warnings
        assert (clone / "lib.py").read_bytes() == b"one\n"


@pytest.mark.parametrize("setting", ["auto", "off"])
def test_a_directory_that_is_no_project_leaves_repositories_below_to_themselves(
    tmp_path: Path, setting: str
) -> None:
    root = tmp_path / "code"
    fill(root / "notes.txt", b"mine\n")
    clone = clone_below(root, "shop")
    configure(root, nested_repositories=setting)
    with SessionCheckpointer(root, "s") as session:
        good = session.checkpoint("good")
        assert skips(session)[b"shop"] is SkipReason.REPOSITORY
        (clone / "lib.py").write_text("two\n")
        (root / "notes.txt").unlink()
        session.restore(good)
        assert (clone / "lib.py").read_text() == "two\n"
        assert (root / "notes.txt").read_bytes() == b"mine\n"


@pytest.mark.requirement("CP-11")
def test_as_soon_as_it_is_a_project_it_has_them(tmp_path: Path) -> None:
    root = tmp_path / "code"
    clone_below(root, "shop")
    configure(root, nested_repositories="auto")
    with SessionCheckpointer(root, "s") as session:
        session.checkpoint("left out")
        assert b"shop" in skips(session)
        fill(root / "pyproject.toml", b"")
        good = session.checkpoint("captured")
        assert b"shop" not in skips(session)
        (root / "pyproject.toml").unlink()
        (root / "shop/lib.py").unlink()
        session.restore(good)
        assert (root / "shop/lib.py").read_bytes() == b"one\n", "what a checkpoint has comes back"
