"""What a killed process or a power cut leaves of packs and index, taken up by the next process.

What the dead process wrote may never have been synced: it is, before anything is built on it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.packs import PACK_MAGIC
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import incompressible, store_objects
from tests.adapters.local.objects.local_stores import fill, forget_index, opened, packs

pytestmark = pytest.mark.requirement("RL-1")

FIRST, SECOND, THIRD = (incompressible(name, 3000) for name in ("first", "second", "third"))


@pytest.mark.parametrize("table", ["places", "packs"])
def test_an_index_that_got_only_one_of_its_tables_is_completed(tmp_path: Path, table: str) -> None:
    fill(tmp_path, [FIRST])
    index = connect(tmp_path / "index.db", synchronous="FULL")
    index.execute(f"DROP TABLE {table}")
    index.close()
    with opened(tmp_path) as store:
        assert store.read(digest_of(FIRST)) == FIRST
        store_objects(store, [SECOND])
        assert store.read(digest_of(SECOND)) == SECOND


def test_what_a_killed_writer_left_is_synced_before_the_index_names_it(tmp_path: Path) -> None:
    fill(tmp_path, [FIRST])
    forget_index(tmp_path)
    fs = RecordingFilesystem(LocalFilesystem())
    with opened(tmp_path, fs) as store:
        assert store.contains(digest_of(FIRST))
        assert fs.count("fsync") == 2, "the pack and the directory that names it"


def test_an_abandoned_pack_is_synced_before_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs/00000001.pack").write_bytes(PACK_MAGIC)
    fs = RecordingFilesystem(LocalFilesystem())
    with opened(tmp_path, fs) as store:
        store_objects(store, [FIRST])
        assert fs.count("fsync") == 3, "what was found, its directory, and what was added"
    assert [path.name for path in packs(tmp_path)] == ["00000001.pack"]


@pytest.mark.parametrize("beginning", [b"", b"HFP", bytes(len(PACK_MAGIC))])
def test_a_pack_that_does_not_begin_as_one_is_not_added_to(
    tmp_path: Path, beginning: bytes
) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs/00000001.pack").write_bytes(beginning)
    with opened(tmp_path) as store:
        store_objects(store, [FIRST])
        assert list(store.check(data=True)) == []
        assert store.retain_only({digest_of(FIRST)}) >= 0
    assert [path.name for path in packs(tmp_path)] == ["00000002.pack"]


def test_a_new_pack_whose_first_bytes_were_lost_is_begun_again(tmp_path: Path) -> None:
    held = fill(tmp_path, [FIRST, SECOND])
    forget_index(tmp_path)
    (pack,) = packs(tmp_path)
    pack.write_bytes(bytes(len(PACK_MAGIC)) + pack.read_bytes()[len(PACK_MAGIC) :])
    with opened(tmp_path) as store:
        assert {digest: store.read(digest) for digest in held} == held
        assert list(store.check(data=True)) == []


def test_a_hole_in_what_was_never_promised_is_no_damage(tmp_path: Path) -> None:
    fill(tmp_path, [FIRST])
    (pack,) = packs(tmp_path)
    promised = pack.stat().st_size
    known = {path.name: path.read_bytes() for path in tmp_path.glob("index.db*")}
    fill(tmp_path, [SECOND, THIRD])
    data = bytearray(pack.read_bytes())
    data[promised : promised + 512] = bytes(512)
    pack.write_bytes(data)
    for name, content in known.items():
        (tmp_path / name).write_bytes(content)
    with opened(tmp_path) as store:
        assert list(store.check(data=True)) == []
        assert store.contains(digest_of(THIRD))
        assert not store.contains(digest_of(SECOND))
        store_objects(store, [SECOND])
        assert store.read(digest_of(SECOND)) == SECOND
