"""Others who use the same workspace or machine: their stores, their names, their files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import RestoreFailed, WorkspaceRefused
from tests import privileges
from tests.support.composition import composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris, describe
from tests.support.watched_filesystem import Call, WatchedFilesystem, once

pytestmark = pytest.mark.requirement("RL-7")
SOMEBODY = 12345


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "directory of another store"])
def test_what_is_named_like_staging_but_is_not_ours_is_left_alone(
    workspace: Path, tmp_path: Path, kind: str
) -> None:
    fill(workspace / "file", b"mine")
    fill(tmp_path / "outside/victim", b"precious")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        with open_workspace(workspace, create=False) as opened:
            own = f".holdfast-staging-{opened.engine.vault.workspace_id}-"
        planted = workspace / ".holdfast" / (own + "x")
        if kind == "file":
            fill(planted, b"theirs")
        elif kind == "link":
            planted.symlink_to(tmp_path / "outside")
        elif kind == "pipe":
            os.mkfifo(planted)
        else:
            planted = workspace / ".holdfast" / ".holdfast-staging-0123-x"
            fill(planted / "0", b"theirs")
        fill(workspace / "file", b"changed")
        session.checkpoint("after")
        session.restore(first)
        assert (workspace / "file").read_bytes() == b"mine"
    assert planted.is_symlink() or planted.exists()
    assert (tmp_path / "outside/victim").read_bytes() == b"precious"


def test_a_save_into_another_store_leaves_a_running_restore_its_staging(
    workspace: Path, tmp_path: Path
) -> None:
    """Two users, or one with two homes: what a restore has taken out must not be cleaned away."""
    fill(workspace / "file", b"first")
    home = {"HOLDFAST_HOME": str(tmp_path / "another-home")}

    def save_elsewhere() -> None:
        open_workspace(workspace, create=True, new_store=True).close()
        with SessionCheckpointer(workspace, "mine") as session:
            session.checkpoint("meanwhile")

    def is_first_exchange(call: Call) -> bool:
        return call.member == "exchange"

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOLDFAST_HOME", home["HOLDFAST_HOME"])
        fs = WatchedFilesystem()
        with composed(workspace, fs=fs.as_port()) as opened:
            good = opened.save()
            fill(workspace / "file", b"second")
            environment.undo()
            fs.after = once(is_first_exchange, save_elsewhere)
            outcome = opened.restore(good.id)
            assert outcome.verified
            opened.undo()
    assert (workspace / "file").read_bytes() == b"second"
    assert debris(workspace) == []


def test_a_workspace_that_became_a_link_is_refused(workspace: Path, tmp_path: Path) -> None:
    fill(workspace / "file", b"mine")
    fill(tmp_path / "outside/victim", b"precious")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        before = describe(tmp_path / "outside", mtimes=True)
        workspace.rename(tmp_path / "aside")
        workspace.symlink_to(tmp_path / "outside")
        with pytest.raises(WorkspaceRefused, match="cannot open") as refused:
            session.restore(first)
        assert refused.value.hint
        with pytest.raises(WorkspaceRefused, match="cannot open"):
            session.checkpoint("through the link")
    assert describe(tmp_path / "outside", mtimes=True) == before


def _give_away(path: Path) -> int:
    """To another user where that is possible; the owner it then has."""
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    return path.lstat().st_uid


@pytest.mark.requirement("CP-11")
def test_what_root_restores_stays_with_its_owner(workspace: Path) -> None:
    """Files and directories: of what they replace, or of the directory that receives them."""
    fill(workspace / "replaced", b"first")
    fill(workspace / "deleted", b"first")
    fill(workspace / "dir/deeper/file", b"first")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        shutil.rmtree(workspace / "dir")
        (workspace / "deleted").unlink()
        fill(workspace / "replaced", b"second")
        owner = _give_away(workspace)
        assert _give_away(workspace / "replaced") == owner
        session.restore(first)
    for name in ("replaced", "deleted", "dir", "dir/deeper", "dir/deeper/file"):
        assert (workspace / name).stat().st_uid == owner, name


@pytest.mark.requirement("RL-6")
def test_root_that_may_not_give_files_away_restores_into_the_directory_of_another(
    workspace: Path,
) -> None:
    """As in a container without that capability; but nothing that runs with its owner's rights."""
    fill(workspace / "open/deleted", b"first")
    fill(workspace / "open/dir/file", b"first")
    fill(workspace / "open/program", b"first").chmod(0o4755)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        shutil.rmtree(workspace / "open/dir")
        (workspace / "open/deleted").unlink()
        (workspace / "open/program").unlink()
        (workspace / "open").chmod(0o777)
        is_someone_elses = _give_away(workspace / "open") != os.geteuid()
        with privileges.none():
            session.restore_checkpoint(first, paths=["open/deleted", "open/dir"])
            outcome = session.restore_checkpoint(first, paths=["open/program"], best_effort=True)
    assert (workspace / "open/deleted").read_bytes() == b"first"
    assert (workspace / "open/dir/file").read_bytes() == b"first"
    told = [problem.path for problem in outcome.skipped]
    assert told == ([b"open/program"] if is_someone_elses else [])
    assert (workspace / "open/program").exists() is not is_someone_elses
    assert debris(workspace) == []


@pytest.mark.requirement("CP-11")
@pytest.mark.parametrize("changed", ["content", "mode"])
def test_what_runs_with_its_owners_rights_is_given_only_to_its_owner(
    workspace: Path, changed: str
) -> None:
    """A user's program with a set-user-id bit, exchanged by that user for a file of root's."""
    program = fill(workspace / "bin/program", b"anything")
    program.chmod(0o4755)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        if changed == "content":
            fill(program, b"root's")
        program.chmod(0o755)
        owner = _give_away(workspace / "bin")
        is_someone_elses = owner != program.stat().st_uid
        if changed == "mode" and is_someone_elses:
            with pytest.raises(RestoreFailed, match="owner differs from its directory's"):
                session.restore(first)
            assert program.stat().st_mode & 0o7777 == 0o755
        else:
            session.restore(first)
            assert program.stat().st_mode & 0o7777 == 0o4755
            assert program.stat().st_uid == owner
