"""The disk budget, the privacy of the store, and directories that are no project (ST-3, ST-6)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import (
    HoldfastError,
    InvalidSetting,
    NoSpace,
    WorkspaceMissing,
    WorkspaceRefused,
)
from holdfast.domain.ids import SessionId
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.deletion import delete
from holdfast.ports.filesystem import DISK_RESERVE_BYTES
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of
from tests.support.composition import composed, configure
from tests.support.hostile_trees import fill, noise
from tests.support.tree_hash import describe


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    return workspace


def _used(session: SessionCheckpointer) -> int:
    return sum(p.stat().st_size for p in session.save().rglob("*") if p.is_file())


@pytest.mark.requirement("ST-3")
def test_a_save_that_would_fill_the_disk_leaves_out_what_does_not_fit(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("small")
        space = engine_of(session).vault.space
        monkeypatch.setattr(type(space), "free_bytes", lambda _: DISK_RESERVE_BYTES + 1_000_000)
        fill(workspace / "large", noise(3_000_000))
        fill(workspace / "file", b"2")
        outcome = session.save_checkpoint("fits in part")
        assert [skip.path for skip in outcome.failures] == [b"large"]
        assert "1 file (3.0 MB) does not fit on the disk" in outcome.warnings[-1]
        monkeypatch.setattr(type(space), "free_bytes", lambda _: DISK_RESERVE_BYTES)
        with pytest.raises(
            NoSpace, match=r"only 67 MB are free, and Holdfast leaves the last 67 MB"
        ) as refused:
            session.checkpoint("nothing fits")
        assert refused.value.hint


@pytest.mark.requirement("ST-3")
def test_a_save_at_the_budget_gets_the_room_of_unneeded_objects(workspace: Path) -> None:
    """Too little for an ordinary collection to rewrite a pack for, and yet enough for the save."""
    for number in range(5):
        fill(workspace / f"large/{number}", noise(100_000, number))
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("kept")
        fill(workspace / "large/more", noise(100_000, 5))
        session.checkpoint("deleted", name="gone")
        (workspace / "large/more").unlink()
        session.checkpoint("kept as well")
        engine = engine_of(session)
        delete(engine, engine.resolve(SessionId("s"), "gone"))
        engine.vault.space.fold_logs()
        used = _used(session)
    configure(workspace, budget=used - 50_000)
    fill(workspace / "file", b"2")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("fits")
        assert _used(session) < used
        assert not list(run_checks(engine_of(session).vault, data=True, progress=NoProgress()))


@pytest.mark.requirement("ST-3")
def test_a_save_at_the_budget_gets_the_room_that_logs_take(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(4):
            fill(workspace / "file", b"%d" % number)
            session.checkpoint("why")
        store = session.save()
        logs = sum(path.stat().st_size for path in store.rglob("*-wal"))
        used = _used(session)
    configure(workspace, budget=used - logs // 4)
    fill(workspace / "file", b"last")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("fits")
        assert session.checkpoint_count == 5


@pytest.mark.requirement("ST-3", "RB-2")
def test_a_restore_that_needs_no_room_works_in_a_full_store(workspace: Path) -> None:
    fill(workspace / "large", noise(300_000))
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"2")
        session.checkpoint("second")
        used = _used(session)
    configure(workspace, budget=used // 2)
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(first)
        assert (workspace / "file").read_bytes() == b"1"
        session.undo()
        assert (workspace / "file").read_bytes() == b"2"


@pytest.mark.requirement("ST-3", "RB-2")
def test_on_a_full_disk_a_restore_works_that_needs_no_room_and_another_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
        fill(workspace / "file", b"2")
        session.checkpoint("second")
        space = engine_of(session).vault.space
        monkeypatch.setattr(type(space), "free_bytes", lambda _: DISK_RESERVE_BYTES + 500_000)
        session.restore(first)
        assert (workspace / "file").read_bytes() == b"1"
        fill(workspace / "file", noise(2_000_000))
        with pytest.raises(NoSpace, match=r"the disk of the store is .* full"):
            session.restore(first)
        assert (workspace / "file").read_bytes() == noise(2_000_000)


@pytest.mark.requirement("ST-3")
def test_nearing_the_budget_is_said_with_every_save(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("first")
        used = _used(session)
    configure(workspace, budget=used + 480_000)
    with SessionCheckpointer(workspace, "s") as session:
        assert session.save_checkpoint("far from it").warnings == () or used > 1_600_000
        fill(workspace / "large", noise(350_000))
        warnings = session.save_checkpoint("near it").warnings
    assert len(warnings) == 1
    assert "budget" in warnings[0]
    assert "%" in warnings[0]


@pytest.mark.requirement("ST-6")
def test_the_store_is_private_from_the_first_moment(workspace: Path, holdfast_home: Path) -> None:
    old = os.umask(0)
    try:
        with SessionCheckpointer(workspace, "s") as session:
            first = session.checkpoint("why")
            fill(workspace / "file", noise(3_000_000))
            session.restore(first)
            store = session.save()
    finally:
        os.umask(old)
    found = [store, *store.rglob("*")]
    assert len(found) > 6
    for path in found:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    assert holdfast_home in store.parents


@pytest.mark.requirement("ST-6")
def test_a_store_that_was_opened_up_is_closed_again(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        store = session.save()
    store.chmod(0o755)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("again")
    assert stat.S_IMODE(store.stat().st_mode) == 0o700


@pytest.mark.requirement("ST-3")
@pytest.mark.parametrize("what", ["root", "home", "above home", "system", "missing", "file"])
def test_what_is_no_project_is_refused_with_the_way_out(tmp_path: Path, what: str) -> None:
    home = Path.home()
    directory = {
        "root": Path("/"),
        "home": home,
        "above home": home.parent,
        "system": Path("/etc"),
        "missing": tmp_path / "missing",
        "file": fill(tmp_path / "a-file"),
    }[what]
    before = sorted(os.listdir(home))
    expected = WorkspaceMissing if what == "missing" else WorkspaceRefused
    with pytest.raises(expected) as refused:
        SessionCheckpointer(directory, "s")
    assert refused.value.hint
    assert sorted(os.listdir(home)) == before
    assert not (directory / ".holdfast").exists()


@pytest.mark.requirement("ST-3")
def test_the_store_itself_and_what_holds_it_are_refused(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holder/home"))
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        store = session.save()
    for directory in (tmp_path / "holder/home", store, store / "objects", tmp_path / "holder"):
        with pytest.raises(WorkspaceRefused) as refused:
            SessionCheckpointer(directory, "s")
        assert refused.value.hint


@pytest.mark.requirement("ST-3", "RB-4")
def test_a_store_inside_the_workspace_is_never_captured_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    monkeypatch.setenv("HOLDFAST_HOME", str(workspace / "tools/holdfast"))
    with open_workspace(workspace, create=True, force=True):
        pass
    with composed(workspace) as opened:
        first = opened.save()
        fill(workspace / "file", b"2")
        opened.save()
        opened.restore(first.id)
        assert (workspace / "file").read_bytes() == b"1"
        paths = {p for p in describe(workspace) if p.startswith(b"tools/holdfast/")}
        opened.undo()
    assert paths
    assert (workspace / "file").read_bytes() == b"2"


@pytest.mark.requirement("ST-3")
def test_a_symlink_to_a_workspace_means_the_workspace(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(workspace)
    with SessionCheckpointer(tmp_path / "alias", "s") as session:
        made = session.checkpoint("why")
    with SessionCheckpointer.load(workspace, "s") as session:
        assert session.head_id == made


@pytest.mark.requirement("CP-12", "HK-7")
@pytest.mark.parametrize(
    "text", ["nonsense = 1", "budget = -5", "include = '*.db'", "not toml", "\udcff"]
)
def test_a_wrong_setting_of_the_user_is_named_and_the_others_hold(
    workspace: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config/holdfast/config.toml"
    lines = f'lock_timeout = 7\n{text}\nignore = ["*.pem"]\n'
    fill(file, lines.encode("utf-8", "surrogateescape"))
    fill(workspace / "key.pem", b"secret")
    fill(workspace / "file", b"1")
    with pytest.warns(UserWarning, match="not applied") as named:
        session = SessionCheckpointer(workspace, "s")
    with session:
        saved = session.checkpoint("saved all the same")
        for name in ("file", "key.pem"):
            (workspace / name).unlink()
        session.restore(saved)
    assert (workspace / "file").read_bytes() == b"1"
    assert not (workspace / "key.pem").exists()
    assert str(file) in str(named[0].message)


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize(
    "text", ["ignore = 5", 'ignore = [".env"', 'ignore = [\n  ".env",\n  *.pem,\n]', "ignor = ["]
)
def test_nothing_is_saved_while_it_is_unclear_what_to_leave_out(
    workspace: Path, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fill(tmp_path / "config/holdfast/config.toml", text.encode())
    with pytest.raises(InvalidSetting) as refused:
        SessionCheckpointer(workspace, "s")
    assert isinstance(refused.value, HoldfastError)
