"""A restore that had to open up unreadable files is killed: nothing stays open that was closed."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import TypeAlias

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.bootstrap.maintenance import repair_workspace
from holdfast.domain.errors import StoreDamaged
from holdfast.testing.faulty_filesystem import FaultyFilesystem, Kill, Killed
from tests.support.composition import composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris
from tests.torture.scenes import remove_tree

pytestmark = [pytest.mark.requirement("RL-2"), pytest.mark.in_memory]


CHANGING = {"set_mode", "fchmod", "rename", "rename_new", "exchange", "unlink", "mkdir", "rmdir"}
NAMES = ("secret", "vault", "vault/inner", "vault/other", "vault/made")
Picture: TypeAlias = dict[str, tuple[int, int] | None]


def _picture(workspace: Path) -> Picture:
    """Modes and sizes: what the owner of closed files can see of them."""
    found: Picture = {}
    for name in NAMES:
        try:
            status = (workspace / name).lstat()
            found[name] = status.st_mode, 0 if name == "vault" else status.st_size
        except FileNotFoundError:
            found[name] = None
    return found


class Closed:
    """A workspace whose restore has to open up a file and a directory, made by the current user."""

    def __init__(self, place: Path) -> None:
        self.workspace = place / "project"
        fill(self.workspace / "secret", b"one", 0o600)
        fill(self.workspace / "vault/inner", b"one", 0o640)
        fill(self.workspace / "vault/other", b"one", 0o400)
        with composed(self.workspace) as opened:
            self.saved = opened.save().id
        self.target = _picture(self.workspace)
        fill(self.workspace / "secret", b"longer", 0)
        fill(self.workspace / "vault/inner", b"longer", 0o200)
        fill(self.workspace / "vault/made", b"longer", 0)
        (self.workspace / "vault").chmod(0o300)
        self.before = _picture(self.workspace)

    def restore_killed_at(self, at: int) -> FaultyFilesystem:
        """0 is never; the calls that were made are in what is returned."""
        fs = FaultyFilesystem(LocalFilesystem(), {at: Kill()})
        with contextlib.suppress(Killed), composed(self.workspace, fs=fs) as opened:
            opened.restore(self.saved)
        fs.release()
        return fs


def test_nothing_stays_open_wherever_the_restore_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordinary_permissions: None
) -> None:
    def fresh() -> Closed:
        remove_tree(tmp_path / "case")
        monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "case/home"))
        return Closed(tmp_path / "case")

    calls = fresh().restore_killed_at(0).calls
    points = {call.number + side for call in calls if call.name in CHANGING for side in (0, 1)}
    mixtures: list[str] = []
    reached = set()
    for at in sorted(points):
        closed = fresh()
        closed.restore_killed_at(at)
        with composed(closed.workspace) as opened:
            opened.engine.recover()
            assert opened.store.journal.read_note() is None
        found = _picture(closed.workspace)
        reached.add(found == closed.target)
        if found not in (closed.before, closed.target):
            mixtures.append(f"call {at}: {found}")
        assert debris(closed.workspace) == []
    assert not mixtures, "\n".join(mixtures)
    assert reached == {False, True}


def test_directories_that_are_closed_around_one_another_stay_closed_wherever_undo_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordinary_permissions: None
) -> None:
    workspace = tmp_path / "case/project"
    outer = workspace / "vault"

    def undo_killed_at(at: int) -> FaultyFilesystem:
        remove_tree(tmp_path / "case")
        monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "case/home"))
        fill(outer / "inner/file", b"x")
        (outer / "inner").chmod(0)
        with composed(workspace) as opened:
            first = opened.save().id
            outer.chmod(0)
            opened.restore(first)
        fs = FaultyFilesystem(LocalFilesystem(), {at: Kill()})
        with contextlib.suppress(Killed), composed(workspace, fs=fs) as opened:
            opened.undo()
        fs.release()
        return fs

    reached = set()
    for call in undo_killed_at(0).calls:
        if call.name not in CHANGING:
            continue
        for at in (call.number, call.number + 1):
            undo_killed_at(at)
            with composed(workspace) as opened:
                opened.engine.recover()
                assert opened.store.journal.read_note() is None
            reached.add(outer.stat().st_mode & 0o777)
            outer.chmod(0o700)
            assert (outer / "inner").stat().st_mode & 0o777 == 0, f"killed at call {at}"
            (outer / "inner").chmod(0o700)
            assert (outer / "inner/file").read_bytes() == b"x"
    assert reached == {0o755, 0}


def test_a_noted_path_that_is_no_longer_ours_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "project"
    secret = fill(workspace / "secret", b"one", 0o400)

    def refuse(self: LocalFilesystem, name: bytes, mode: int, *, dir_fd: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)

    with composed(workspace) as opened:
        opened.save()
        opened.store.journal.write_note(b'{"secret": 0}')
        with monkeypatch.context() as patched:
            patched.setattr(LocalFilesystem, "set_mode", refuse)
            opened.engine.recover()
        assert opened.store.journal.read_note() is None
    assert secret.stat().st_mode & 0o777 == 0o400


def test_a_mode_that_a_person_has_set_meanwhile_is_left_alone(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    secret = fill(workspace / "secret", b"one", 0o600)
    with composed(workspace) as opened:
        opened.save()
        opened.store.journal.write_note(b'{"secret": 0}')
        opened.engine.recover()
        assert opened.store.journal.read_note() is None
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("note", [b"", b"[]", b'{"../outside": 0}', b'{"secret": "x"}', b"\xff"])
def test_a_forged_note_is_refused(tmp_path: Path, note: bytes) -> None:
    workspace = tmp_path / "project"
    outside = fill(tmp_path / "outside", b"x", 0o400)
    fill(workspace / "secret", b"one", 0o600)
    with composed(workspace) as opened:
        opened.save()
        opened.store.journal.write_note(note)
        saved = opened.save()
        with pytest.raises(StoreDamaged):
            opened.engine.recover()
    assert outside.stat().st_mode & 0o777 == 0o400
    assert repair_workspace(workspace, act=True).done
    with composed(workspace) as opened:
        opened.restore(saved.id)
