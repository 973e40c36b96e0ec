"""Writing batches to packs: little is written for little change, and nothing before its time."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.packs import PackDirectory
from holdfast.domain.errors import ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import Record
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import all_digests
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import compressible, incompressible, store_objects
from holdfast.values.compression import Codec
from tests.adapters.local.objects.local_stores import fill, forget_index, opened, packs


def records_of(place: Path) -> dict[Digest, Record]:
    directory = PackDirectory(LocalFilesystem(), place / "packs")
    try:
        return {
            record.digest: record
            for number in directory.numbers()
            for _, record, _ in directory.scan(number, 0)
            if record is not None
        }
    finally:
        directory.close()


def test_one_sync_makes_a_whole_batch_durable(tmp_path: Path) -> None:
    fill(tmp_path, [b"the pack is there already"])
    fs = RecordingFilesystem(LocalFilesystem())
    with opened(tmp_path, fs) as store:
        fs.forget()
        store_objects(store, [incompressible(f"{number}", 2000) for number in range(50)])
    assert fs.count("fsync") == 1
    assert fs.count("write") == 1


def test_a_new_pack_has_a_durable_name_before_its_content_is_promised(tmp_path: Path) -> None:
    fs = RecordingFilesystem(LocalFilesystem())
    with opened(tmp_path, fs) as store:
        store_objects(store, [b"first"])
    assert fs.count("fsync") == 2, "one for the directory, one for the pack"


def test_a_batch_of_known_objects_touches_no_pack(tmp_path: Path) -> None:
    fill(tmp_path, [b"a", b"b"])
    fs = RecordingFilesystem(LocalFilesystem())
    with opened(tmp_path, fs) as store:
        fs.forget()
        store_objects(store, [b"a", b"b"])
        assert fs.calls == []


@pytest.mark.requirement("ST-1")
def test_incompressible_content_is_stored_as_it_is(tmp_path: Path) -> None:
    noise, text = incompressible("noise", 10_000), compressible("text", 10_000)
    fill(tmp_path, [noise, text])
    stored = records_of(tmp_path)
    assert stored[digest_of(noise)].codec is Codec.RAW
    assert stored[digest_of(noise)].stored == noise
    assert stored[digest_of(text)].codec is Codec.ZSTD


@pytest.mark.requirement("ST-1")
def test_chains_of_versions_are_small_bounded_and_readable_from_a_cold_start(
    tmp_path: Path,
) -> None:
    text = incompressible("version", 20_000)
    versions = [text]
    with opened(tmp_path) as store:
        store_objects(store, [text])
        for number in range(48):
            previous = versions[-1]
            versions.append(previous[:50] + b"edit %d" % number + previous[50:])
            writer = store.writer()
            writer.add(digest_of(versions[-1]), versions[-1], similar_to=digest_of(previous))
            assert writer.commit().objects == 1
    stored = records_of(tmp_path)
    assert len(stored) == len(versions)
    assert max(record.depth for record in stored.values()) == 6
    assert sum(record.length for record in stored.values()) < 6 * len(text)
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        for data in reversed(versions):
            assert store.read(digest_of(data)) == data


@pytest.mark.requirement("ST-1")
def test_abandoned_batches_leave_no_growth_even_in_an_empty_store(tmp_path: Path) -> None:
    data = incompressible("dropped", 3 << 20)
    with opened(tmp_path) as store:
        sizes = set()
        for _ in range(5):
            writer = store.writer()
            writer.add(digest_of(data), data)
            writer.abandon()
            sizes.add((store.size_bytes(), len(packs(tmp_path))))
        assert len(sizes) == 1
        store_objects(store, [data])
        assert store.read(digest_of(data)) == data
        assert len(packs(tmp_path)) == 1


@pytest.mark.parametrize("per_transaction", [1, 3, 1000])
def test_a_batch_larger_than_memory_allows_is_still_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_transaction: int
) -> None:
    monkeypatch.setattr(
        "holdfast.adapters.local.objects.writer._PREPARE_AT_OBJECTS", per_transaction
    )
    first = [incompressible(f"{number}", 100) for number in range(10)]
    second = [incompressible(f"second {number}", 100) for number in range(10)]
    with opened(tmp_path) as store, opened(tmp_path) as reader:
        writer = store.writer()
        for data in first:
            writer.add(digest_of(data), data)
        assert not any(writer.add(digest_of(data), data) for data in first)
        assert reader.count() == 0
        writer.abandon()
        assert store.count() == 0
        with pytest.raises(ObjectMissing):
            store.read(digest_of(first[0]))
        writer = store.writer()
        for data in second:
            writer.add(digest_of(data), data)
        assert writer.commit().objects == len(second)
        assert sorted(all_digests(reader)) == sorted(map(digest_of, second))
        for data in second:
            assert reader.read(digest_of(data)) == data


@pytest.mark.requirement("ST-6")
def test_packs_and_index_are_private_to_their_owner(tmp_path: Path) -> None:
    fill(tmp_path, [b"secret"])
    for path in (*packs(tmp_path), *tmp_path.glob("index.db*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
