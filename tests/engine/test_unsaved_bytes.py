"""A restore touches nothing that no checkpoint has, whatever the ignore rules say by then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict, StoreDamaged
from tests.support.composition import configure
from tests.support.hostile_trees import fill, git, noise
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import debris, describe, differences

pytestmark = pytest.mark.requirement("RB-4")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def test_ignored_files_are_not_touched(workspace: Path) -> None:
    fill(workspace / ".gitignore", b"*.log\nbuild/\n")
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "a.log", b"precious")
        fill(workspace / "build/out/x", b"precious")
        fill(workspace / "dir/b.log", b"precious")
        fill(workspace / "code", b"2")
        session.restore(first)
    assert (workspace / "code").read_bytes() == b"1"
    for name in ("a.log", "build/out/x", "dir/b.log"):
        assert (workspace / name).read_bytes() == b"precious"


@pytest.mark.requirement("CP-12")
def test_what_is_left_out_is_listed_with_its_reason(workspace: Path) -> None:
    fill(workspace / ".gitignore", b"*.log\nbuild/\n")
    fill(workspace / "a.log")
    fill(workspace / "build/x")
    fill(workspace / "node_modules/m/index.js")
    fill(workspace / "large", b"x" * 2000)
    (workspace / "sub").mkdir()
    git(workspace / "sub", "init", "-q")
    configure(workspace, max_file_size=1000)
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("why")
    said = {skip.path: skip.describe() for skip in outcome.skipped}
    assert set(said) == {
        b".holdfast",
        b"a.log",
        b"build",
        b"large",
        b"node_modules",
        b"sub/.git",
    }
    assert "*.log" in said[b"a.log"]
    assert "2000" in said[b"large"]


@pytest.mark.requirement("CP-12")
def test_ignored_directories_keep_their_reason_when_something_in_them_might_be_included(
    workspace: Path,
) -> None:
    fill(workspace / ".gitignore", b"notes/\n")
    fill(workspace / "notes/today")
    fill(workspace / "node_modules/m/index.js")
    fill(workspace / "target/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")
    fill(workspace / "target/debug/app")
    fill(workspace / "kept/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")
    fill(workspace / "kept/.env", b"SECRET=1")
    configure(workspace, include=["**/.env"])
    with SessionCheckpointer(workspace, "s") as session:
        first, second = session.save_checkpoint("with includes"), session.save_checkpoint("again")
        with session.replay("HEAD") as replay:
            captured = {path for path, _ in replay.entries()}
    said = {skip.path: skip.describe() for skip in first.skipped}
    again = {skip.path: skip.describe() for skip in second.skipped}
    assert said == again
    assert said[b"notes"] == "ignored (.gitignore:1: notes/)"
    assert said[b"node_modules"] == "ignored (default: node_modules/)"
    assert said[b"target"] == "ignored (default: holds CACHEDIR.TAG)"
    assert said[b"kept/CACHEDIR.TAG"] == "ignored (in an ignored directory)"
    assert captured == {b".gitignore", b"kept", b"kept/.env"}


def test_a_file_that_was_ignored_then_stays_when_the_agent_unignores_it(workspace: Path) -> None:
    fill(workspace / ".gitignore", b".env\ndata/\n")
    fill(workspace / ".env", b"secret")
    fill(workspace / "data/db", b"rows")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / ".gitignore", b"")
        fill(workspace / "data/late", b"later")
        session.checkpoint("the agent took the rules away")
        outcome = session.restore_checkpoint(first)
    assert (workspace / ".gitignore").read_bytes() == b".env\ndata/\n"
    assert (workspace / ".env").read_bytes() == b"secret"
    assert (workspace / "data/db").read_bytes() == b"rows"
    assert (workspace / "data/late").read_bytes() == b"later"
    assert {b".env", b"data"} == {kept.path for kept in outcome.kept}


@pytest.mark.requirement("RB-14")
def test_a_captured_file_that_became_ignored_is_saved_before_it_is_overwritten(
    workspace: Path,
) -> None:
    fill(workspace / "notes.txt", b"old")
    fill(workspace / "dir/deep/notes.txt", b"old")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / ".gitignore", b"notes.txt\ndir/\n")
        fill(workspace / "notes.txt", b"modified while ignored")
        fill(workspace / "dir/deep/notes.txt", b"modified while ignored")
        fill(workspace / "dir/deep/other", b"captured by the checkpoint's rules alone")
        wrecked = describe(workspace, mtimes=True)
        session.restore(first)
        assert (workspace / "notes.txt").read_bytes() == b"old"
        assert (workspace / "dir/deep/notes.txt").read_bytes() == b"old"
        assert not (workspace / "dir/deep/other").exists()
        session.undo()
    assert differences(describe(workspace, mtimes=True), wrecked) == []


def test_a_file_above_the_size_cap_is_saved_before_it_is_overwritten(workspace: Path) -> None:
    configure(workspace, max_file_size=1000)
    fill(workspace / "grows", b"small")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "grows", b"large" * 1000)
        session.restore(first)
        assert (workspace / "grows").read_bytes() == b"small"
        session.undo()
    assert (workspace / "grows").read_bytes() == b"large" * 1000


def test_a_new_file_above_the_size_cap_is_left_alone(workspace: Path) -> None:
    configure(workspace, max_file_size=1000)
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "model.bin", b"x" * 5000)
        session.restore(first)
    assert (workspace / "model.bin").read_bytes() == b"x" * 5000


def test_a_directory_with_uncaptured_content_is_not_removed_and_is_reported(
    workspace: Path,
) -> None:
    fill(workspace / ".gitignore", b"*.log\n")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "made/by/agent.py", b"x")
        fill(workspace / "made/by/run.log", b"precious")
        outcome = session.restore_checkpoint(first)
    assert not (workspace / "made/by/agent.py").exists()
    assert (workspace / "made/by/run.log").read_bytes() == b"precious"
    assert {kept.path for kept in outcome.kept} == {b"made", b"made/by"}


@pytest.mark.requirement("RB-3")
def test_a_file_cannot_replace_a_directory_with_uncaptured_content(workspace: Path) -> None:
    fill(workspace / ".gitignore", b"*.log\n")
    fill(workspace / "thing", b"a file")
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / "thing").unlink()
        fill(workspace / "thing/run.log", b"precious")
        fill(workspace / "thing/agent.py", b"new")
        fill(workspace / "code", b"2")
        wrecked = describe(workspace)
        head = line_end(session)
        with pytest.raises(RestoreConflict, match="thing"):
            session.restore(first)
        assert describe(workspace) == wrecked
        assert line_end(session) == head
        outcome = session.restore_checkpoint(first, best_effort=True)
        assert [problem.path for problem in outcome.skipped] == [b"thing"]
        assert (workspace / "code").read_bytes() == b"1"
        assert (workspace / "thing/run.log").read_bytes() == b"precious"
        session.undo()
    assert differences(describe(workspace), wrecked) == []
    assert debris(workspace) == []


def test_a_special_file_in_the_way_is_not_removed(workspace: Path) -> None:
    fill(workspace / "thing", b"a file")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / "thing").unlink()
        os.mkfifo(workspace / "thing")
        with pytest.raises(RestoreConflict, match="thing"):
            session.restore(first)
    assert (workspace / "thing").is_fifo()


def _git_data(workspace: Path) -> dict[bytes, object]:
    """All of it but what keeps the commits of checkpoints alive."""
    ours = b".git/refs/holdfast"
    return {
        path: node
        for path, node in describe(workspace).items()
        if path.startswith(b".git/") and not path.startswith(ours)
    }


def test_git_data_is_neither_captured_nor_touched(workspace: Path) -> None:
    git(workspace, "init", "-q")
    fill(workspace / "code", b"1")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "code", b"2")
        git(workspace, "commit", "-qam", "two")
        before = _git_data(workspace)
        session.restore(first)
    assert (workspace / "code").read_bytes() == b"1"
    assert _git_data(workspace) == before


def test_a_nested_repository_made_later_keeps_its_git_data_and_is_reported(
    workspace: Path,
) -> None:
    fill(workspace / "code", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "cloned/file", b"x")
        git(workspace / "cloned", "init", "-q")
        outcome = session.restore_checkpoint(first)
        assert (workspace / "cloned/.git/HEAD").exists()
        assert b"cloned" in {kept.path for kept in outcome.kept}
        session.undo()
    assert (workspace / "cloned/file").read_bytes() == b"x"


def test_files_left_out_by_a_filter_are_not_touched_by_restore_and_undo(workspace: Path) -> None:
    fill(workspace / "code.py", b"1")
    fill(workspace / "data.csv", b"1")
    seen: list[Path] = []

    def only_python(path: Path) -> bool:
        seen.append(path)
        return path.suffix == ".py"

    with SessionCheckpointer(workspace, "s", only_python) as session:
        first = session.checkpoint("before")
        assert [path for path, _ in get_snapshot(session, first).manifest] == ["code.py"]
        fill(workspace / "code.py", b"2")
        fill(workspace / "data.csv", b"2")
        fill(workspace / "late.csv", b"2")
        session.restore(first)
        assert (workspace / "code.py").read_bytes() == b"1"
        assert (workspace / "data.csv").read_bytes() == b"2"
        assert (workspace / "late.csv").read_bytes() == b"2"
        session.undo()
        assert (workspace / "code.py").read_bytes() == b"2"
        assert (workspace / "data.csv").read_bytes() == b"2"
        assert (workspace / "late.csv").read_bytes() == b"2"
    assert set(seen) <= {workspace / name for name in ("code.py", "data.csv", "late.csv")}


@pytest.mark.requirement("CP-12")
def test_settings_of_the_project_file_protect_ignored_files(workspace: Path) -> None:
    fill(workspace / ".gitignore", b".env\n*.db\n")
    fill(workspace / ".holdfast/config.toml", b'include = [".env", "*.db"]\n')
    fill(workspace / ".env", b"secret")
    fill(workspace / "local/app.db", b"rows")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / ".env").unlink()
        fill(workspace / "local/app.db", b"dropped")
        session.restore(first)
    assert (workspace / ".env").read_bytes() == b"secret"
    assert (workspace / "local/app.db").read_bytes() == b"rows"


@pytest.mark.requirement("RB-3", "RL-4")
def test_content_that_the_store_has_lost_is_left_out_and_named_by_a_restore_that_does_what_it_can(
    workspace: Path,
) -> None:
    fill(workspace / "lost", noise(40_000, 1))
    fill(workspace / "sound", b"sound at first")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        (pack,) = (session.save() / "objects/packs").iterdir()
        data = bytearray(pack.read_bytes())
        at = data.index(noise(40_000, 1)[5_000:5_100])
        data[at] ^= 1
        pack.write_bytes(data)
        fill(workspace / "lost", b"later")
        fill(workspace / "sound", b"later")
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(StoreDamaged):
            session.restore(first)
        assert (workspace / "sound").read_bytes() == b"later"
        outcome = session.restore_checkpoint(first, best_effort=True)
        assert [problem.path for problem in outcome.skipped] == [b"lost"]
        assert (workspace / "sound").read_bytes() == b"sound at first"
        assert (workspace / "lost").read_bytes() == b"later"
