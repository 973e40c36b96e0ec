"""A store as one thing: opened, locked, made ready, measured, and closed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import Busy, StoreDamaged
from holdfast.domain.sessions import Session
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.samples import (
    ONE,
    incompressible,
    new_checkpoint,
    new_operation,
    store_objects,
)


@pytest.fixture
def layout(tmp_path: Path) -> StoreLayout:
    layout = StoreLayout(tmp_path / "home" / "stores" / "0123456789abcdef0123")
    layout.create(LocalFilesystem(), tmp_path / "workspace")
    return layout


@contextmanager
def opened(layout: StoreLayout, workspace: Path = Path("/nowhere")) -> Iterator[LocalStore]:
    store = LocalStore(LocalFilesystem(), layout, workspace, SystemClock(), purpose="test")
    try:
        yield store
    finally:
        store.close()


def test_a_store_is_ready_after_the_first_opening_and_needs_no_lock_then(
    layout: StoreLayout,
) -> None:
    with opened(layout) as store:
        assert not store.catalog.is_migrated()
        store.make_ready()
        assert store.catalog.is_migrated()
    with opened(layout) as holder, opened(layout) as reader:
        reader.lock_timeout_s = 0
        with holder.hold():
            reader.make_ready()
            assert list(reader.catalog.sessions()) == []
            with pytest.raises(Busy), reader.hold():
                raise AssertionError


def test_what_a_killed_writer_left_is_indexed_on_entry(layout: StoreLayout) -> None:
    with opened(layout) as store, store.hold():
        store_objects(store.objects, [b"first", b"second"])
    for path in layout.objects.glob("index.db*"):
        path.unlink()
    with opened(layout) as store:
        store.make_ready()
        assert store.objects.read(digest_of(b"second")) == b"second"


def test_the_journal_is_written_read_and_removed(layout: StoreLayout) -> None:
    with opened(layout) as store:
        assert store.journal.read() is None
        store.journal.write(b"one")
        store.journal.write(b"two")
    with opened(layout) as store:
        assert store.journal.read() == b"two"
        store.journal.remove()
        store.journal.remove()
        assert store.journal.read() is None


def test_the_size_is_that_of_every_file(layout: StoreLayout) -> None:
    with opened(layout) as store:
        with store.hold():
            store_objects(store.objects, [incompressible("content", 100_000)])
        files = [path for path in layout.directory.rglob("*") if path.is_file()]
        assert store.space.size_bytes() == sum(path.stat().st_size for path in files) > 100_000
        assert store.space.free_bytes() > 0


def test_a_store_inside_the_workspace_knows_where_it_is(
    layout: StoreLayout, tmp_path: Path
) -> None:
    with opened(layout, tmp_path) as store:
        assert store.path_inside_workspace() == b"home"
    with opened(layout, tmp_path / "elsewhere") as store:
        assert store.path_inside_workspace() is None


@pytest.mark.parametrize("part", ["catalog.db", "objects/index.db"])
def test_a_part_that_cannot_be_opened_is_trouble_of_the_store(
    layout: StoreLayout, part: str
) -> None:
    (layout.directory / part).mkdir()
    with pytest.raises(StoreDamaged), opened(layout):
        raise AssertionError


def test_what_is_in_the_place_of_the_stat_cache_is_set_aside(layout: StoreLayout) -> None:
    (layout.directory / "stat-cache.db").mkdir()
    with opened(layout):
        assert (layout.directory / "stat-cache.db").is_file()
    assert list((layout.directory / "set-aside").rglob("stat-cache.db"))


@pytest.mark.requirement("CP-8")
def test_threads_share_one_store_from_its_first_use(layout: StoreLayout) -> None:
    with opened(layout) as store:
        store.make_ready()
        with store.hold(), store.catalog.transaction() as transaction:
            transaction.add_session(Session(ONE, 1))
    with opened(layout) as store:

        def write(number: int) -> None:
            with store.hold():
                store_objects(store.objects, [b"%d" % number])
                with store.catalog.transaction() as transaction:
                    transaction.add_checkpoint(new_checkpoint(number))
                    transaction.add_operation(new_operation(number))

        def read(number: int) -> None:
            for checkpoint in store.catalog.history(ONE):
                assert store.objects.contains(digest_of(b"%d" % checkpoint.files))
            store.objects.missing([digest_of(b"%d" % number)])
            store.objects.is_behind()

        with ThreadPoolExecutor(8) as pool:
            work = [pool.submit(task, n) for n in range(40) for task in (write, read, read)]
            for done in work:
                done.result()
        assert store.catalog.counts(ONE).checkpoints == 40
        assert store.objects.count() == 40
        assert list(store.catalog.check()) == []
        assert list(store.objects.check(data=True)) == []


WRITE = """
import sys
from pathlib import Path
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.system import SystemClock
from holdfast.testing.samples import new_checkpoint, new_operation
from holdfast.testing.samples import store_objects
layout, first = StoreLayout(Path(sys.argv[1])), int(sys.argv[2])
store = LocalStore(LocalFilesystem(), layout, Path("/nowhere"), SystemClock(), purpose="child")
for number in range(first, first + 15):
    with store.hold():
        store_objects(store.objects, [b"%d" % number, b"shared"])
        with store.catalog.transaction() as transaction:
            transaction.add_checkpoint(new_checkpoint(number))
            transaction.add_operation(new_operation(number))
store.close()
"""


@pytest.mark.requirement("CP-8")
def test_processes_write_to_one_store_at_once_and_lose_nothing(layout: StoreLayout) -> None:
    with opened(layout) as store, store.hold(), store.catalog.transaction() as transaction:
        transaction.add_session(Session(ONE, 1))
    command = [sys.executable, "-c", WRITE, str(layout.directory)]
    children = [subprocess.Popen([*command, str(first)]) for first in (100, 200, 300)]
    assert [child.wait() for child in children] == [0, 0, 0]
    with opened(layout) as store:
        store.make_ready()
        saved = [checkpoint.files for checkpoint in store.catalog.history(ONE)]
        expected = [number for first in (100, 200, 300) for number in range(first, first + 15)]
        assert sorted(saved) == expected
        for number in saved:
            assert store.objects.read(digest_of(b"%d" % number)) == b"%d" % number
        assert store.objects.count() == len(saved) + 1
        assert list(store.objects.check(data=True)) == []
        assert list(store.catalog.check()) == []


@pytest.mark.linux
@pytest.mark.requirement("RL-1")
def test_the_way_to_a_new_store_is_durable_before_its_first_row(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who made the directories may have been killed before it synced them."""
    order: list[str] = []
    fs = LocalFilesystem()

    def fsync(fd: int) -> None:
        order.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    monkeypatch.setattr(LocalFilesystem, "fsync", staticmethod(fsync))
    store = LocalStore(fs, layout, Path("/nowhere"), SystemClock(), purpose="test")
    try:
        migrate = store.catalog.migrate

        def noted() -> None:
            order.append("first row")
            migrate()

        monkeypatch.setattr(store.catalog, "migrate", noted)
        store.make_ready()
        made, order[:] = list(order), []
        store.make_ready()
    finally:
        store.close()
    assert {layout.directory.name, "stores", "home"} <= set(made[: made.index("first row")])
    assert order == [], "once is enough"
