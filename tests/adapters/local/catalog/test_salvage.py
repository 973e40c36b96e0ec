"""Rows saved out of damaged catalogs: everything of a sound one, nothing untrue of any (RL-4)."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.local.catalog.page_images import page_images
from holdfast.adapters.local.catalog.rebuild import rebuild
from holdfast.adapters.local.catalog.rows import SEALED_COLUMNS
from holdfast.adapters.local.catalog.salvage import Salvaged, salvage_from
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.domain.intent import SnapshotIntent
from holdfast.ports.catalog import all_checkpoints
from holdfast.testing.samples import (
    ONE,
    CatalogOpening,
    checkpoint_id,
    new_checkpoint,
    new_operation,
)

pytestmark = pytest.mark.requirement("RL-4", "ST-4")

MANY = 60


def fill(path: Path) -> None:
    """Enough rows for several pages, one that needs overflow pages, settings, and a deletion."""
    with closing(SqliteCatalog(path)) as catalog:
        catalog.migrate()
        CatalogOpening().fill(catalog, *(new_checkpoint(n) for n in range(1, MANY)))
        long = SnapshotIntent("why " * 5_000, confidence=1)
        with catalog.transaction() as transaction:
            transaction.add_checkpoint(replace(new_checkpoint(MANY), intent=long))
            transaction.add_operation(new_operation(MANY))
            transaction.set_setting("budget", '"1 GB"')
            transaction.set_current_session(ONE)


def read(path: Path) -> tuple[bytes, bytes]:
    log = path.with_name(path.name + "-wal")
    return path.read_bytes(), log.read_bytes() if log.exists() else b""


def rows(path: Path) -> dict[str, dict[object, tuple[object, ...]]]:
    db = connect(path, synchronous="FULL")
    with closing(db):
        return {
            table: {row[0]: row for row in db.execute(f"SELECT {columns} FROM {table}")}
            for table, columns in SEALED_COLUMNS.items()
        }


@pytest.mark.parametrize("folded", [False, True], ids=["in the log", "folded"])
def test_every_row_of_a_sound_catalog_is_found_without_sqlite(tmp_path: Path, folded: bool) -> None:
    path = tmp_path / "catalog.db"
    fill(path)
    if folded:
        db = connect(path, synchronous="FULL")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()
    saved = salvage_from(page_images(*read(path)))
    assert saved.rows == rows(path)
    assert (saved.settings, saved.settings_proven) == ({"budget": '"1 GB"'}, True)
    assert saved.facts == {"current_session": ONE}
    assert (saved.unreadable, saved.doubtful) == ([], set())


def test_whatever_is_damaged_only_true_rows_are_found_and_most_of_them(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "catalog.db"
    fill(path)
    database, log = read(path)
    true = rows(path)
    for _ in range(150):
        parts = [bytearray(database), bytearray(log)]
        part = rng.choice([part for part in parts if part])
        position = rng.randrange(len(part))
        part[position] ^= rng.randrange(1, 256)
        saved = salvage_from(page_images(bytes(parts[0]), bytes(parts[1])))
        for table, found in saved.rows.items():
            for key, row in found.items():
                assert key in true[table], (table, key)
                assert table == "sessions" or row == true[table][key]
        assert len(saved.rows["checkpoints"]) >= MANY - 1


@pytest.mark.parametrize("garbage", [b"", b"\0" * 9000, b"\xff" * 9000, b"HFPACK1\n" * 900])
def test_what_never_was_a_catalog_yields_nothing(garbage: bytes) -> None:
    saved = salvage_from(page_images(garbage, garbage))
    assert not any(saved.rows.values())
    assert not saved.settings_proven


def test_a_rebuilt_catalog_has_every_row_and_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    fill(path)
    outcome = rebuild(salvage_from(page_images(*read(path))), tmp_path / "new.db", now_ns=5)
    lost = (outcome.lost_checkpoints, outcome.lost_operations, outcome.lost_settings)
    assert lost == ((), 0, False)
    with closing(SqliteCatalog(tmp_path / "new.db")) as new, closing(SqliteCatalog(path)) as old:
        assert list(new.check()) == []
        assert list(all_checkpoints(new)) == list(all_checkpoints(old))
        assert new.operations(ONE) == old.operations(ONE)
        assert new.session(ONE) == old.session(ONE)
        assert new.settings() == old.settings()
        assert new.current_session() == old.current_session()


def test_lost_rows_are_entered_as_lost_and_the_head_moves_to_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    with closing(SqliteCatalog(path)) as catalog:
        catalog.migrate()
        CatalogOpening().fill(catalog, *(new_checkpoint(n) for n in (1, 2, 3)))
        with catalog.transaction() as transaction:
            transaction.set_head(ONE, checkpoint_id(3))
    saved = salvage_from(page_images(*read(path)))
    del saved.rows["checkpoints"][3]
    del saved.rows["operations"][1]
    saved.settings_proven = False
    outcome = rebuild(saved, tmp_path / "new.db", now_ns=5, expected_operations=4)
    assert outcome.lost_checkpoints == (checkpoint_id(3),)
    assert (outcome.lost_operations, outcome.lost_settings) == (2, True)
    with closing(SqliteCatalog(tmp_path / "new.db")) as catalog:
        assert list(catalog.check()) == []
        session = catalog.session(ONE)
        assert session is not None
        assert session.head == checkpoint_id(2)


def test_a_catalog_can_be_rebuilt_from_nothing_at_all(tmp_path: Path) -> None:
    rebuild(Salvaged(), tmp_path / "new.db", now_ns=5, expected_operations=2)
    with closing(SqliteCatalog(tmp_path / "new.db")) as catalog:
        assert list(catalog.check()) == []
        assert list(all_checkpoints(catalog)) == []
