"""Whatever is left of a restore, a person can go on: saves are made, and there is a way out."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.bootstrap.maintenance import examine_surroundings, repair_workspace
from holdfast.domain.errors import HoldfastError, RestoreFailed
from holdfast.engine.retention.deletion import delete, delete_session
from holdfast.engine.retention.eviction import evict
from holdfast.engine.sessions.approval import approve
from holdfast.ports.catalog import all_checkpoints
from holdfast.testing.faulty_filesystem import Killed
from holdfast.testing.intercepted_filesystem import Call, InterceptedFilesystem
from tests.support.composition import composed
from tests.support.hostile_trees import fill
from tests.support.real_mounts import can_mount, mounted
from tests.support.tree_hash import debris, describe, differences

pytestmark = pytest.mark.requirement("RB-3", "RL-2")
T = TypeVar("T")
MOVES = ("exchange", "rename_new")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


class RefusingFilesystem(InterceptedFilesystem):
    """Refuses some calls while switched on."""

    def __init__(self, names: tuple[str, ...], code: int) -> None:
        super().__init__(LocalFilesystem())
        self._names = names
        self._code = code
        self.refused = 0
        self.allowed = 0
        self.most = 10**6

    def around(self, call: Call, run: Callable[[], T]) -> T:
        if call.name in self._names:
            if self.allowed <= 0 and self.refused < self.most:
                self.refused += 1
                raise OSError(self._code, os.strerror(self._code), call.subject)
            self.allowed -= 1
        return run()


class DyingFilesystem(InterceptedFilesystem):
    """Ends with its third move, as a killed process does."""

    def __init__(self) -> None:
        super().__init__(LocalFilesystem())
        self._left = 3

    def around(self, call: Call, run: Callable[[], T]) -> T:
        if self._left == 0 and call.name != "close":
            raise Killed
        result = run()
        if call.name in MOVES:
            self._left -= 1
        return result


def interrupt(workspace: Path, target: str) -> None:
    """A restore whose process is killed half-way."""
    with composed(workspace, fs=DyingFilesystem()) as opened, pytest.raises(Killed):
        opened.restore(target)


@pytest.mark.usefixtures("ordinary_permissions")
def test_a_restore_that_staged_an_unreadable_file_is_rolled_back(workspace: Path) -> None:
    fill(workspace / "locked", b"first")
    fill(workspace / "z", b"first")
    with composed(workspace) as opened:
        first = opened.save()
        fill(workspace / "locked", b"second")
        fill(workspace / "z", b"second")
        (workspace / "locked").chmod(0)
        opened.restore(first.id)  # its safety checkpoint has the unreadable mode
    before = describe(workspace)
    fs = RefusingFilesystem(("exchange",), errno.EIO)
    fs.allowed, fs.most = 1, 1
    with composed(workspace, fs=fs) as opened:
        with pytest.raises(RestoreFailed, match="rolled back"):
            opened.undo()
        assert fs.refused == 1
    assert differences(describe(workspace), before) == []
    assert debris(workspace) == []
    with composed(workspace) as opened:
        opened.save()
        opened.undo()
    assert (workspace / "locked").stat().st_mode & 0o777 == 0


@pytest.mark.usefixtures("ordinary_permissions")
def test_names_of_one_closed_file_all_get_their_mode_back(workspace: Path) -> None:
    fill(workspace / "a", b"first")
    fill(workspace / "closed/b", b"first")
    with composed(workspace) as opened:
        first = opened.save()
        fill(workspace / "a", b"second")
        (workspace / "closed/b").unlink()
        os.link(workspace / "a", workspace / "closed/b")
        (workspace / "a").chmod(0)
        (workspace / "closed").chmod(0)
        opened.restore(first.id)
        assert (workspace / "closed/b").read_bytes() == b"first"
        opened.undo()
    assert (workspace / "closed").stat().st_mode & 0o777 == 0
    (workspace / "closed").chmod(0o700)
    assert (workspace / "a").stat().st_mode & 0o777 == 0
    assert (workspace / "a").samefile(workspace / "closed/b")
    (workspace / "a").chmod(0o600)
    assert (workspace / "a").read_bytes() == b"second"


def test_a_directory_whose_mode_is_not_ours_to_change_does_not_stop_the_way_back(
    workspace: Path,
) -> None:
    for name in ("shared/a", "shared/b"):
        fill(workspace / name, b"first")
    (workspace / "shared").chmod(0o570)
    with composed(workspace) as opened:
        first = opened.save()
        for name in ("shared/a", "shared/b"):
            (workspace / name).write_bytes(b"second")
        before = describe(workspace)
    fs = RefusingFilesystem(("fchmod",), errno.EPERM)
    with composed(workspace, fs=fs) as opened, pytest.raises(RestoreFailed):
        opened.restore(first.id)
    assert differences(describe(workspace), before) == []
    with composed(workspace) as opened:
        opened.save()
    assert differences(describe(workspace), before) == []


@pytest.mark.requirement("RB-4")
def test_saves_go_on_while_a_restore_cannot_be_finished_and_repair_is_the_way_out(
    workspace: Path,
) -> None:
    names = [f"f{number}" for number in range(6)]
    for name in names:
        fill(workspace / name, b"first")
    with composed(workspace) as opened:
        first = opened.save()
        for name in names:
            fill(workspace / name, b"second")
        second = opened.save()
    interrupt(workspace, first.id)
    between = describe(workspace)
    fs = RefusingFilesystem(MOVES, errno.EPERM)
    with composed(workspace, fs=fs) as opened:
        outcome = opened.engine.save(first.session_id, first.intent)
        assert "could not be finished" in outcome.warnings[-1]
        assert "holdfast repair" in outcome.warnings[-1]
        fill(workspace / "new", b"work goes on")
        opened.save()
        fill(workspace / "new", b"and on")
        opened.save()
        with pytest.raises(HoldfastError):
            opened.restore(second.id)
        with pytest.raises(HoldfastError):
            delete(opened.engine, second)
        with pytest.raises(HoldfastError):  # half of one state cannot be approved
            approve(opened.engine, second.session_id, None)
        with pytest.raises(HoldfastError):
            delete_session(opened.engine, second.session_id)
        with pytest.raises(HoldfastError):
            evict(opened.engine, [second])
        assert second.id in {one.id for one in all_checkpoints(opened.engine.vault.catalog)}
    (workspace / "new").unlink()
    with composed(workspace) as opened:
        opened.save()  # the cause is gone, but files have changed since: nothing is touched
        assert differences(describe(workspace), between) == []
    findings = [symptom.finding for symptom in examine_surroundings(workspace)]
    assert any("a restore cannot be finished" in finding for finding in findings)
    assert [step.type.value for step in repair_workspace(workspace, act=True).plan.steps] == [
        "set-aside-journal"
    ]
    assert differences(describe(workspace), between) == []
    with composed(workspace) as opened:
        opened.restore(second.id)
        assert {(workspace / name).read_bytes() for name in names} == {b"second"}
        opened.restore(first.id)
        assert {(workspace / name).read_bytes() for name in names} == {b"first"}


def test_a_passing_trouble_is_no_reason_to_leave_a_restore_unfinished(workspace: Path) -> None:
    names = [f"f{number}" for number in range(6)]
    for name in names:
        fill(workspace / name, b"first")
    with composed(workspace) as opened:
        first = opened.save()
        for name in names:
            fill(workspace / name, b"second")
    interrupt(workspace, first.id)
    with composed(workspace, fs=RefusingFilesystem(MOVES, errno.EIO)) as opened:
        opened.save()
    with composed(workspace) as opened:
        opened.save()
        assert len({(workspace / name).read_bytes() for name in names}) == 1
    assert debris(workspace) == []


@pytest.mark.requirement("RL-3")
@pytest.mark.parametrize("handles", [24, 32, 40, 64])
def test_a_restore_with_few_handles_is_done_or_rolled_back(workspace: Path, handles: int) -> None:
    places = [f"d{number}/e/f/g" for number in range(60)]
    for place in places:
        fill(workspace / place, b"first")
    with composed(workspace) as opened:
        first = opened.save()
    for place in places:
        fill(workspace / place, b"second")
    before = describe(workspace)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles))

    command = [sys.executable, "-m", "holdfast", "-C", str(workspace), "--session", "s"]
    done = subprocess.run(
        [*command, "restore", first.id, "--yes"],
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    with composed(workspace) as opened:
        opened.save()
    if done.returncode == 0:
        assert {(workspace / place).read_bytes() for place in places} == {b"first"}
    else:
        assert differences(describe(workspace), before) == []


@pytest.mark.requirement("RL-4")
@pytest.mark.parametrize("place", [".holdfast", "."])
def test_a_repair_sets_aside_what_its_own_store_staged_wherever_that_is(
    workspace: Path, place: str
) -> None:
    names = [f"f{number}" for number in range(6)]
    for name in names:
        fill(workspace / name, b"first")
    with composed(workspace) as opened:
        first = opened.save()
    if place == ".":
        shutil.rmtree(workspace / ".holdfast")
        fill(workspace / ".holdfast", b"somebody's file")
    for name in names:
        fill(workspace / name, f"second {name}".encode())
    interrupt(workspace, first.id)
    of_another = workspace / place / ".holdfast-staging-another-1/0"
    fill(of_another, b"another store is in the middle of its own restore")
    with composed(workspace) as opened:
        store = opened.store.directory
    (journal,) = (path for path in store.rglob("journal") if path.is_file())
    journal.write_bytes(b"half a journal")
    staged = [path.read_bytes() for path in workspace.rglob(".holdfast-staging-*/*")]
    assert sum(content.startswith(b"second") for content in staged) == 3
    repair_workspace(workspace, act=True)
    with composed(workspace) as opened:
        opened.save()
    kept = [path.read_bytes() for path in store.glob("set-aside/*/.holdfast-staging-*/*")]
    assert sum(content.startswith(b"second") for content in kept) == 3
    assert of_another.read_bytes().startswith(b"another store")


@pytest.mark.requirement("ST-4", "RL-4")
def test_a_repair_sets_aside_what_was_staged_on_another_file_system(workspace: Path) -> None:
    (workspace / "disk").mkdir()
    # Users who may not mount anything see the same for a part of the workspace's own file system.
    with mounted(workspace / "disk") if can_mount() else nullcontext():
        names = [f"disk/f{number}" for number in range(6)]
        for name in names:
            fill(workspace / name, b"first")
        with composed(workspace) as opened:
            first, store = opened.save(), opened.store.directory
        for name in names:
            fill(workspace / name, f"second {name}".encode())
        interrupt(workspace, first.id)
        (store / "journal").write_bytes(b"half a journal")
        repair_workspace(workspace, act=True)
        assert not list((workspace / "disk").glob(".holdfast-staging-*"))
        aside = (*workspace.glob("disk/set-aside-*/*/*"), *store.glob("set-aside/*/*/*"))
        kept = [path.read_bytes() for path in aside if path.is_file()]
        assert sum(content.startswith(b"second") for content in kept) == 3
