"""Packs of an encrypted store: sealed records, found without an index, with nothing to read."""

from __future__ import annotations

import contextlib
import errno
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.encryption.cipher import SealedRecords, StoreKeys
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.domain.errors import NoSpace, StoreDamaged
from holdfast.domain.object_records import BadRecord, Record
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import Filesystem
from holdfast.testing.faulty_filesystem import Fail, Fault, FaultyFilesystem, Kill, Killed
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import compressible, incompressible, store_objects
from holdfast.values.compression import Codec
from tests.adapters.local.objects.local_stores import forget_index, packs

pytestmark = pytest.mark.requirement("ST-6")

KEYS = StoreKeys(bytes(range(32)))
CONTENTS = [b"", b"x", b"a secret that is short", compressible("text", 20_000), b"\0" * 5000]


@contextmanager
def opened(
    place: Path, fs: Filesystem | None = None, keys: StoreKeys = KEYS
) -> Iterator[LocalObjectStore]:
    (place / "packs").mkdir(parents=True, exist_ok=True)
    store = LocalObjectStore(fs or LocalFilesystem(), place, keys)
    try:
        store.catch_up()
        yield store
    finally:
        store.close()


def records() -> st.SearchStrategy[Record]:
    digest = st.binary(min_size=32, max_size=32)
    plain = st.builds(
        Record,
        digest,
        st.sampled_from([Codec.RAW, Codec.ZSTD]),
        st.just(0),
        st.integers(0, 1 << 30),
        st.none(),
        st.binary(max_size=300),
    )
    against = st.builds(
        Record,
        digest,
        st.just(Codec.ZSTD_AGAINST_BASE),
        st.integers(1, 16),
        st.integers(0, 1 << 30),
        digest,
        st.binary(max_size=300),
    )
    return plain | against


@given(records())
def test_a_record_comes_back_with_its_length_and_shows_nothing(record: Record) -> None:
    form = SealedRecords(KEYS.cipher("packs"))
    encoded = form.encode(record)
    decoded = form.decode(encoded + b"what follows")
    assert decoded == record
    assert decoded.length == len(encoded)
    assert form.header_bytes + form.stored_size_of(encoded) == len(encoded)
    assert bytes(record.digest) not in encoded
    if len(record.stored) > 8:
        assert record.stored not in encoded


def test_a_change_to_any_byte_of_a_record_is_noticed() -> None:
    form = SealedRecords(KEYS.cipher("packs"))
    name = digest_of(b"x")
    encoded = form.encode(Record(name, Codec.RAW, 0, 1, None, b"x"))
    for position in range(len(encoded)):
        changed = bytearray(encoded)
        changed[position] ^= 0x40
        with pytest.raises(BadRecord):
            form.decode(bytes(changed))
        with pytest.raises(BadRecord):
            form.decode(encoded[:position])


@pytest.mark.parametrize(
    ("codec", "stored"), [(99, b"x"), (Codec.ZSTD_AGAINST_BASE, b"too short for a base")]
)
def test_a_record_that_a_key_holder_made_up_is_refused(codec: int, stored: bytes) -> None:
    form = SealedRecords(KEYS.cipher("packs"))
    made_up = Record(digest_of(b"x"), codec, 0, 1, None, stored)  # type: ignore[arg-type]
    with pytest.raises(BadRecord):
        form.decode(form.encode(made_up))


def test_packs_and_index_show_neither_content_nor_names(tmp_path: Path) -> None:
    content = [b"the launch code is 0000", compressible("confidential", 3000)]
    with opened(tmp_path) as store:
        digests = store_objects(store, content)
        writer = store.writer()
        edited = content[1] + b"edited"
        writer.add(digest_of(edited), edited, similar_to=digests[1])
        writer.commit()
    raw = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for hidden in (b"launch code", b"confidential", *digests, digest_of(edited)):
        assert hidden not in raw
    for digest in digests:
        assert digest.hex().encode() not in raw


def test_the_index_is_rebuilt_from_the_packs_with_the_key(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store_objects(store, CONTENTS)
    forget_index(tmp_path)
    with opened(tmp_path) as store:
        assert [store.read(digest_of(data)) for data in CONTENTS] == CONTENTS
        assert list(store.check(data=True)) == []


def test_with_another_key_nothing_is_readable(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store_objects(store, CONTENTS)
    before = [path.read_bytes() for path in packs(tmp_path)]
    with opened(tmp_path, keys=StoreKeys.new()) as store:
        assert store.count() == 0
    assert [path.read_bytes() for path in packs(tmp_path)] == before
    with opened(tmp_path) as store:
        assert [store.read(digest_of(data)) for data in CONTENTS] == CONTENTS


def test_damage_at_any_byte_of_a_pack_is_found_and_confined(tmp_path: Path) -> None:
    contents = [b"first", compressible("second", 100), b"third"]
    with opened(tmp_path) as store:
        for data in contents:
            store_objects(store, [data])  # a record each
    (pack,) = packs(tmp_path)
    sound = pack.read_bytes()
    for position in range(len(sound)):
        changed = bytearray(sound)
        changed[position] ^= 0x01
        pack.write_bytes(changed)
        with opened(tmp_path) as store:
            assert list(store.check(data=True)) != [], position
            readable = 0
            for data in contents:
                with contextlib.suppress(StoreDamaged):
                    assert store.read(digest_of(data)) == data
                    readable += 1
            assert readable >= 2, position


def test_records_that_changed_places_give_no_wrong_content(tmp_path: Path) -> None:
    contents = [b"one..", b"two.."]  # of equal length, so that offsets fit
    with opened(tmp_path) as store:
        for data in contents:
            store_objects(store, [data])  # a record each
        places = [place for _, place in store.index.locations()]
    (pack,) = packs(tmp_path)
    sound = pack.read_bytes()
    first, second = (sound[p.offset : p.offset + p.length] for p in places)
    pack.write_bytes(
        sound.replace(first, b"?" * len(first))
        .replace(second, first)
        .replace(b"?" * len(first), second)
    )
    with opened(tmp_path) as store:
        for data in contents:
            with pytest.raises(StoreDamaged, match="another object"):
                store.read(digest_of(data))


FAULTS: dict[str, Fault] = {
    "disk full": Fail(errno.ENOSPC, lasting=True),
    "EIO": Fail(errno.EIO),
    "killed": Kill(),
    "killed after": Kill(after=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_call_of_a_batch_loses_nothing_earlier(tmp_path: Path, fault: Fault) -> None:
    batch = [incompressible("large", 70_000), b"small"]

    def write(place: Path, fs: FaultyFilesystem | RecordingFilesystem) -> None:
        with opened(place, fs) as store:
            writer = store.writer()
            try:
                for data in batch:
                    writer.add(digest_of(data), data)
                writer.commit()
            except BaseException:
                writer.abandon()
                raise

    def fill(place: Path) -> Path:
        with opened(place) as store:
            store_objects(store, CONTENTS)
        return place

    counting = RecordingFilesystem(LocalFilesystem())
    write(fill(tmp_path / "0"), counting)
    for number in range(1, len(counting.calls) + 1):
        place = fill(tmp_path / str(number))
        fs = FaultyFilesystem(LocalFilesystem(), {number: fault})
        with contextlib.suppress(Killed, NoSpace, StoreDamaged):
            write(place, fs)
        fs.release()
        for _ in range(2):
            with opened(place) as store:
                store_objects(store, batch)
                for data in (*CONTENTS, *batch):
                    assert store.read(digest_of(data)) == data
                assert list(store.check(data=True)) == []
            forget_index(place)


def test_collection_moves_sealed_records_as_they_are(tmp_path: Path, rng: random.Random) -> None:
    contents = [rng.randbytes(rng.randrange(1, 3000)) for _ in range(40)]
    with opened(tmp_path) as store:
        for data in contents:
            store_objects(store, [data])
        kept = {digest_of(data) for data in contents[::3]}
        assert store.retain_only(kept) > 0
        for data in contents[::3]:
            assert store.read(digest_of(data)) == data
        assert list(store.check(data=True)) == []
