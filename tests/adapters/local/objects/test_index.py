"""The index: a cache of what packs say, so losing it, or having an old one, loses nothing."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects import packs as pack_files
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import all_digests
from holdfast.testing.samples import compressible, incompressible, store_objects
from tests.adapters.local.objects.local_stores import fill, forget_index, opened, packs

CONTENTS = [incompressible("a", 500), compressible("b", 5000), b"", b"d" * 100]


@pytest.mark.requirement("ST-1")
def test_the_index_is_rebuilt_from_packs_alone(tmp_path: Path) -> None:
    held = fill(tmp_path, CONTENTS)
    base, edited = CONTENTS[1], CONTENTS[1] + b"edited"
    with opened(tmp_path) as store:
        writer = store.writer()
        writer.add(digest_of(edited), edited, similar_to=digest_of(base))
        writer.commit()
    held[digest_of(edited)] = edited
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        assert sorted(all_digests(store)) == sorted(held)
        for digest, data in held.items():
            assert store.read(digest) == data
        assert not store.is_behind()
        assert not any(store.writer().add(digest, data) for digest, data in held.items())
        assert list(store.check(data=True)) == []


@pytest.mark.requirement("ST-1")
def test_an_index_that_knows_less_than_the_packs_is_caught_up(tmp_path: Path) -> None:
    place, older = tmp_path / "objects", tmp_path / "older"
    held = fill(place, CONTENTS)
    shutil.copytree(place, older)
    held |= fill(place, [b"saved later", incompressible("later", 300)])
    forget_index(place)
    for path in older.glob("index.db*"):
        shutil.copy(path, place)
    store = LocalObjectStore(LocalFilesystem(), place)
    assert store.is_behind()
    store.catch_up()
    assert not store.is_behind()
    for digest, data in held.items():
        assert store.read(digest) == data
    store_objects(store, [b"and one more"])
    assert store.count() == len(held) + 1
    assert len(packs(place)) == 1
    store.close()


def test_opening_a_store_that_was_closed_well_reads_no_pack(tmp_path: Path) -> None:
    fill(tmp_path, CONTENTS)
    packs(tmp_path)[0].chmod(0)
    with opened(tmp_path) as store:
        assert not store.is_behind()
        assert store.count() == len(CONTENTS)


@pytest.mark.requirement("ST-1")
def test_a_full_pack_is_sealed_and_the_next_one_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_files, "SEAL_AT_BYTES", 60_000)
    monkeypatch.setattr("holdfast.adapters.local.objects.writer.SEAL_AT_BYTES", 60_000)
    contents = [incompressible(f"{number}", 21_000) for number in range(11)]
    held = fill(tmp_path, contents[:5])
    with opened(tmp_path) as store:
        store_objects(store, contents[5:])
    held |= {digest_of(data): data for data in contents}
    assert [path.name for path in packs(tmp_path)] == [f"0000000{n}.pack" for n in range(1, 5)]
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        for digest, data in held.items():
            assert store.read(digest) == data


@pytest.mark.requirement("ST-1")
def test_any_flipped_byte_of_the_index_gives_right_bytes_or_a_named_error(
    tmp_path: Path, rng: random.Random
) -> None:
    held = fill(tmp_path, CONTENTS)
    index = tmp_path / "index.db"
    connection = connect(index, synchronous="NORMAL")
    connection.wal_checkpoint(mode=3)
    connection.close()
    whole = index.read_bytes()
    # Every byte that says something, and a sample of the empty space between.
    positions = [p for p, byte in enumerate(whole) if byte]
    positions += rng.sample(range(len(whole)), 100)
    for position in positions:
        forget_index(tmp_path)
        damaged = bytearray(whole)
        damaged[position] ^= rng.randrange(1, 256)
        index.write_bytes(damaged)
        try:
            with opened(tmp_path) as store:
                for digest, data in held.items():
                    assert store.read(digest) == data
                assert list(all_digests(store)) == sorted(held)
                list(store.check(data=True))
        except StoreDamaged:
            continue
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        assert [store.read(digest) for digest in held] == list(held.values())
