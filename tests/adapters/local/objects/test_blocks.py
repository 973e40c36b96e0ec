"""Small objects share a record: they are read one by one, and each is proven by its own digest."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.objects.packs import (
    FULL_AT_BYTES,
    LARGEST_MEMBER_BYTES,
    block_record,
    members_of,
    objects_in,
    open_block,
)
from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import BadRecord, Record, encode_record
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import all_digests
from holdfast.testing.samples import incompressible, store_objects
from holdfast.values.compression import Codec, compress, decompress
from tests.adapters.local.objects.local_stores import fill, forget_index, opened, packs

SMALL = [b"def number_%d():\n    return %d\n" % (n, n) for n in range(40)]


def _fill_at_once(place: Path, contents: list[bytes]) -> dict[Digest, bytes]:
    with opened(place) as store:
        store_objects(store, contents)
    return dict(_members(contents))


def _members(contents: list[bytes]) -> list[tuple[Digest, bytes]]:
    return [(digest_of(data), data) for data in contents]


@pytest.mark.requirement("ST-1")
@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=20, unique=True))
def test_a_block_gives_back_each_member(contents: list[bytes]) -> None:
    record = block_record(_members(contents))
    assert open_block(record) == dict(_members(contents))
    assert objects_in(record) == [digest for digest, _ in _members(contents)]


@pytest.mark.requirement("ST-1")
def test_small_objects_take_less_room_together_than_each_on_its_own(tmp_path: Path) -> None:
    _fill_at_once(tmp_path / "together", SMALL)
    fill(tmp_path / "apart", SMALL)
    together, apart = (packs(tmp_path / name)[0].stat().st_size for name in ("together", "apart"))
    assert together < apart * 0.7


@pytest.mark.requirement("ST-1")
def test_members_are_found_again_from_the_packs_alone(tmp_path: Path) -> None:
    held = _fill_at_once(tmp_path, SMALL)
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        assert store.count() == len(SMALL)
        for digest, data in held.items():
            assert store.read(digest) == data


@pytest.mark.requirement("PF-7")
def test_blocks_that_are_read_by_turns_are_read_from_the_pack_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [[b"%d: %s" % (n, text) for text in SMALL] for n in range(3)]
    with opened(tmp_path) as store:
        for contents in blocks:
            store_objects(store, contents)
    with opened(tmp_path) as store:
        read, looks = store.packs.read, list[tuple[int, ...]]()

        def noted(*place: int) -> bytes:
            looks.append(place)
            return read(*place)

        monkeypatch.setattr(store.packs, "read", noted)
        for by_turns in zip(*blocks, strict=True):
            assert [store.read(digest_of(data)) for data in by_turns] == list(by_turns)
        assert len(looks) == len(blocks)
        store.forget_cached()
        store.read(digest_of(blocks[0][0]))
        assert len(looks) == len(blocks) + 1


@pytest.mark.requirement("ST-1")
def test_an_object_that_waits_for_its_block_is_not_taken_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        writer = store.writer()
        assert writer.add(digest_of(SMALL[0]), SMALL[0])
        assert not writer.add(digest_of(SMALL[0]), SMALL[0])
        totals = writer.commit()
        assert totals.objects == 1
        assert totals.deduplicated_bytes == len(SMALL[0])


def test_a_lone_object_is_stored_without_a_table(tmp_path: Path) -> None:
    _fill_at_once(tmp_path, [SMALL[0]])
    with opened(tmp_path) as store:
        ((_, record, _),) = store.packs.scan(1, 0)
        assert record is not None
        assert record.codec is not Codec.BLOCK


def test_objects_too_large_for_a_block_are_stored_alone_and_full_blocks_are_closed(
    tmp_path: Path,
) -> None:
    size = LARGEST_MEMBER_BYTES
    small = [incompressible(f"{n}", size) for n in range(2 * FULL_AT_BYTES // size)]
    _fill_at_once(tmp_path, [incompressible("large", size + 1), *small])
    with opened(tmp_path) as store:
        codecs = [record.codec for _, record, _ in store.packs.scan(1, 0) if record is not None]
    assert codecs == [Codec.RAW, Codec.BLOCK, Codec.BLOCK]


@pytest.mark.requirement("RL-4")
def test_a_block_whose_contents_were_exchanged_gives_no_wrong_bytes(tmp_path: Path) -> None:
    """A record made to pass every checksum: only the members' own digests tell."""
    right, wrong = _members(SMALL[:2]), _members([b"another text"] * 2)
    forged = block_record([(right[0][0], wrong[0][1]), (right[1][0], wrong[1][1])])
    _fill_at_once(tmp_path, [b"anything"])
    with packs(tmp_path)[0].open("ab") as pack:
        pack.write(encode_record(forged))
    with opened(tmp_path) as store:
        for digest, _ in right:
            with pytest.raises(ObjectDamaged, match="do not match its name"):
                store.read(digest)


@pytest.mark.requirement("RL-4")
@pytest.mark.parametrize(
    "stored",
    [b"", b"\1", struct.pack("<BI", 1, 5), struct.pack("<BI", 1, 2**32 - 1) + b"x" * 80],
)
def test_a_table_that_is_cut_short_is_refused(stored: bytes) -> None:
    record = Record(digest_of(stored[5:]), Codec.BLOCK, 0, 0, None, stored)
    with pytest.raises(BadRecord):
        members_of(record)


@pytest.mark.requirement("RL-4")
def test_a_table_with_another_name_or_another_total_is_refused() -> None:
    record = block_record(_members(SMALL[:3]))
    renamed = Record(digest_of(b""), record.codec, 0, record.size, None, record.stored)
    resized = Record(record.digest, record.codec, 0, record.size + 1, None, record.stored)
    for forged in (renamed, resized):
        with pytest.raises(BadRecord, match="does not match"):
            open_block(forged)


@pytest.mark.requirement("RL-4")
def test_a_block_cannot_be_read_as_if_it_were_one_object() -> None:
    with pytest.raises(ValueError, match="not an object"):
        decompress(Codec.BLOCK, compress(SMALL[0] * 10)[1], len(SMALL[0]) * 10, None)


@pytest.mark.requirement("ST-2")
def test_collection_keeps_the_needed_members_of_a_block_and_drops_the_others(
    tmp_path: Path,
) -> None:
    contents = [incompressible(f"{n}", 500) for n in range(20)]
    held = _fill_at_once(tmp_path, contents)
    needed = {digest_of(data) for data in contents[::5]}
    with opened(tmp_path) as store:
        assert store.retain_only(needed) > 15 * 500
        assert set(all_digests(store)) == needed
        for digest in needed:
            assert store.read(digest) == held[digest]
    everything = b"".join(path.read_bytes() for path in packs(tmp_path))
    assert not any(data in everything for data in contents if digest_of(data) not in needed)
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        assert set(all_digests(store)) == needed


@pytest.mark.requirement("ST-2")
def test_collection_leaves_a_block_alone_whose_members_are_all_needed(tmp_path: Path) -> None:
    held = _fill_at_once(tmp_path, SMALL)
    before = packs(tmp_path)[0].read_bytes()
    with opened(tmp_path) as store:
        assert store.retain_only(held.keys()) == 0
    assert packs(tmp_path)[0].read_bytes() == before


@pytest.mark.requirement("ST-1")
def test_a_member_can_be_what_a_later_version_is_stored_against(tmp_path: Path) -> None:
    first = incompressible("a file", 6000)
    second = first[:3000] + b"an insertion" + first[3000:]
    _fill_at_once(tmp_path, [*SMALL, first])
    with opened(tmp_path) as store:
        writer = store.writer()
        writer.add(digest_of(second), second, similar_to=digest_of(first))
        assert writer.commit().stored_bytes < 300
        assert store.read(digest_of(second)) == second
        store.retain_only({digest_of(second)})
        assert store.read(digest_of(second)) == second
