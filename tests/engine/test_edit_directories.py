"""The directories around the files of an edit: those that it made go when it fails."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("SE-6")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("one\n")
    return workspace


class Broken(Exception):
    pass


def _write_deep(workspace: Path, *paths: str) -> None:
    for path in paths:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("made by the edit")


def _failing(session: SessionCheckpointer, paths: list[str], work: Callable[[], object]) -> None:
    """An edit that does some work, and fails."""
    with session.editing(paths):
        work()
        raise Broken


@pytest.mark.parametrize("explicit", [False, True])
def test_directories_that_a_failed_edit_made_go_with_its_files(
    workspace: Path, explicit: bool
) -> None:
    (workspace / "bare").mkdir()
    before = describe(workspace)
    paths = ["pkg/deep/er/one.py", "pkg/deep/two.py", "src/sub/c.py", "bare/d.py"]
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before")
        if explicit:
            session.start_edit(paths)
            _write_deep(workspace, *paths)
            session.abort_edit()
        else:
            with pytest.raises(Broken):
                _failing(session, paths, lambda: _write_deep(workspace, *paths))
        assert describe(workspace) == before
        session.undo()
        assert all((workspace / path).read_text() == "made by the edit" for path in paths)


def test_directories_that_were_there_or_that_another_process_filled_stay(workspace: Path) -> None:
    (workspace / ".gitignore").write_text("out/\n")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before")
        # There before the edit, and in no checkpoint: one is new, one is ignored.
        (workspace / "fresh" / "inner").mkdir(parents=True, mode=0o750)
        (workspace / "out").mkdir()
        paths = ["fresh/inner/a", "fresh/inner/made/b", "fresh/c", "out/d", "filled/x/e", "mine/f"]

        def work() -> None:
            _write_deep(workspace, *paths[:3], *paths[4:])
            (workspace / "filled" / "somebody.txt").write_text("not of the edit")
            (workspace / "mine" / "out").mkdir()
            (workspace / "mine" / "out" / "ignored.o").write_text("in no checkpoint")

        with pytest.raises(Broken):
            _failing(session, paths, work)
        assert sorted(p.name for p in (workspace / "fresh").iterdir()) == ["inner"]
        assert list((workspace / "fresh" / "inner").iterdir()) == []
        assert stat.S_IMODE((workspace / "fresh" / "inner").stat().st_mode) == 0o750
        assert (workspace / "out").is_dir()
        assert [p.name for p in (workspace / "filled").iterdir()] == ["somebody.txt"]
        assert (workspace / "mine" / "out" / "ignored.o").exists()


def test_an_edit_that_removed_its_own_files_leaves_no_directory_either(workspace: Path) -> None:
    before = describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before")

        def work() -> None:
            _write_deep(workspace, "tmp/one/a")
            (workspace / "tmp" / "one" / "a").unlink()

        with pytest.raises(Broken):
            _failing(session, ["tmp/one/a"], work)
        assert describe(workspace) == before
        found = run_checks(engine_of(session).vault, data=True, progress=NoProgress())
        assert list(found) == []


def test_a_link_put_where_a_directory_of_the_edit_was_is_not_followed(
    workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "empty").mkdir(parents=True)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before")
        with pytest.raises(Broken):
            _failing(session, ["made/empty/a"], lambda: (workspace / "made").symlink_to(outside))
    assert (outside / "empty").is_dir()
