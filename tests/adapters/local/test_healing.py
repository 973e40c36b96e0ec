"""Damage that heals when a store is opened, and damage that no command writes over (RL-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Refused, StoreDamaged
from tests.behind_the_api import local_store
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("RL-4")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    return workspace


def save(workspace: Path, *names: str) -> Path:
    with SessionCheckpointer(workspace, "s") as session:
        for name in names:
            fill(workspace / "file", name.encode() * 500)
            session.checkpoint("why", name=name)
        return session.save()


@pytest.mark.parametrize(
    "garbage", [b"", b"\x55" * 4096, b"SQLite format 3\0" + b"\xff" * 8176], ids=repr
)
def test_a_damaged_index_is_rebuilt_when_the_store_is_opened(
    workspace: Path, garbage: bytes
) -> None:
    store = save(workspace, "a", "b")
    for path in (store / "objects").glob("index.db-*"):
        path.unlink()
    (store / "objects" / "index.db").write_bytes(garbage)
    with SessionCheckpointer(workspace, "s") as session:
        session.restore("a")
        assert (workspace / "file").read_bytes() == b"a" * 500
        session.checkpoint("goes on")
    with open_workspace(workspace, create=False) as opened:
        assert list(local_store(opened).objects.check(data=True)) == []
    if garbage:
        (aside,) = (store / "set-aside").iterdir()
        assert (aside / "index.db").read_bytes() == garbage


def test_a_process_that_has_the_old_index_open_goes_on_with_the_new_one(workspace: Path) -> None:
    save(workspace, "a")
    with SessionCheckpointer(workspace, "s") as old:
        assert get_snapshot(old, "a").id == old.head_id
        with open_workspace(workspace, create=False) as opened, opened.store.hold():
            local_store(opened).objects.rebuild_index()
        fill(workspace / "file", b"later")
        old.checkpoint("after the index was made again", name="later")
        old.restore("a")
        old.restore("later")
    assert (workspace / "file").read_bytes() == b"later"


def test_a_pack_with_a_torn_end_does_not_make_every_opening_take_the_lock(workspace: Path) -> None:
    store = save(workspace, "a")
    (pack,) = (store / "objects" / "packs").iterdir()
    with open(pack, "ab") as file:
        file.write(b"HF torn")
    with open_workspace(workspace, create=False):
        pass
    opened = open_workspace(workspace, create=False)
    with (
        opened as first,
        first.store.hold(),
        open_workspace(workspace, create=False) as second,
    ):
        assert not local_store(second).objects.is_behind()
        assert local_store(second).catalog.counts().checkpoints == 1
    save(workspace, "b")
    assert len(list((store / "objects" / "packs").iterdir())) == 2


@pytest.mark.requirement("RL-1")
def test_no_command_writes_over_a_log_that_lost_acknowledged_commits(workspace: Path) -> None:
    store = save(workspace, "a", "b", "c")
    log = store / "catalog.db-wal"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    before = log.read_bytes(), describe(workspace)
    raised = pytest.raises(StoreDamaged, match="acknowledged")
    with SessionCheckpointer(workspace, "s") as session, raised as refused:
        session.checkpoint("would bury it")
    assert "holdfast repair" in (refused.value.hint or "")
    assert (log.read_bytes(), describe(workspace)) == before


def test_an_empty_catalog_never_takes_the_place_of_a_lost_one(workspace: Path) -> None:
    store = save(workspace, "a")
    for path in store.glob("catalog.db*"):
        path.unlink()
    with pytest.raises(StoreDamaged, match=r"catalog\.db is missing"):
        SessionCheckpointer(workspace, "s")
    assert not (store / "catalog.db").exists()


def test_a_process_that_had_the_store_open_while_it_was_repaired_is_notified(
    workspace: Path,
) -> None:
    store = save(workspace, "a")
    with SessionCheckpointer(workspace, "s") as old:
        copy = (store / "catalog.db").read_bytes()
        (store / "catalog.db").rename(store / "away")
        (store / "catalog.db").write_bytes(copy)
        with pytest.raises(Refused, match="repaired"):
            old.checkpoint("into a file that nobody reads")


def test_a_stat_cache_that_is_another_file_is_set_aside(workspace: Path) -> None:
    store = save(workspace, "a")
    other = b"SQLite format 3\0" + b"somebody's only copy" * 400
    for path in store.glob("stat-cache.db*"):
        path.unlink()
    (store / "stat-cache.db").write_bytes(other)
    save(workspace, "b")
    kept = [path.read_bytes() for path in (store / "set-aside").rglob("stat-cache.db")]
    assert kept == [other]
