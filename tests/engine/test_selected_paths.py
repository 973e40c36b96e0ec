"""Restoring some paths: what HEAD means afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.both_stores


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    fill(root / "a", b"a")
    fill(root / "b", b"b")
    fill(root / "dir/c", b"c")
    return root


@pytest.mark.requirement("RB-7")
def test_other_changes_still_show_after_one_path_was_restored(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("base")
        fill(workspace / "a", b"wrecked")
        fill(workspace / "b", b"wrecked")
        session.restore_checkpoint("HEAD", ["a"])
        assert session.plan_restore("HEAD").affected_files == (b"b",)
        session.restore_checkpoint("HEAD", ["b"])
        assert session.plan_restore("HEAD").steps == ()
    assert (workspace / "b").read_bytes() == b"b"


@pytest.mark.requirement("RB-7")
@pytest.mark.parametrize("chosen", ["dir", "dir/c"])
def test_a_path_of_an_older_checkpoint_is_unsaved_work_until_the_next_checkpoint_has_it(
    workspace: Path, chosen: str
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        old = session.checkpoint("old")
        fill(workspace / "dir/c", b"newer")
        fill(workspace / "a", b"newer")
        newer = session.checkpoint("newer")
        session.restore_checkpoint(old, [chosen])
        assert get_snapshot(session, "HEAD").id == newer
        session.checkpoint("with the older path")
        assert get_snapshot(session, "HEAD").artifact("dir/c").read_bytes() == b"c"
        assert get_snapshot(session, "HEAD").artifact("a").read_bytes() == b"newer"
        assert session.plan_restore("HEAD").steps == ()


@pytest.mark.requirement("RB-7")
def test_a_chosen_path_that_the_target_lacks_is_gone_from_the_next_checkpoint(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        old = session.checkpoint("old")
        fill(workspace / "made/by/agent", b"x")
        session.checkpoint("newer")
        session.restore_checkpoint(old, ["made"])
        session.checkpoint("without it")
        assert "made/by/agent" not in dict(get_snapshot(session, "HEAD").manifest)
        assert session.plan_restore("HEAD").steps == ()
    assert not (workspace / "made").exists()


@pytest.mark.requirement("RB-7", "CP-11")
def test_one_name_of_a_file_with_two_comes_back_beside_the_other_that_has_got_another_mode(
    workspace: Path,
) -> None:
    first, second = fill(workspace / "first", b"shared", 0o644), workspace / "second"
    os.link(first, second)
    with SessionCheckpointer(workspace, "s") as session:
        linked = session.checkpoint("two names of one file")
        second.unlink()
        first.chmod(0o600)
        session.restore_checkpoint(linked, ["second"])
        assert (first.stat().st_mode & 0o777, second.stat().st_mode & 0o777) == (0o600, 0o644)
        assert second.read_bytes() == b"shared"
        session.undo()
        assert not second.exists()
        assert first.stat().st_mode & 0o777 == 0o600
        first.chmod(0o644)
        session.restore_checkpoint(linked, ["second"])
    assert first.samefile(second)
