"""Packs that are torn, cut, overwritten or lost: what was sound stays readable, and no wrong byte
is ever handed out (I2).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.objects.packs import PACK_MAGIC
from holdfast.domain.errors import ObjectDamaged, ObjectMissing, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.samples import compressible, incompressible, store_objects
from tests.adapters.local.objects.local_stores import fill, forget_index, opened, packs

CONTENTS = [
    incompressible("raw", 60),
    compressible("packed", 300),
    b"",
    b"HF" + incompressible("looks like a record", 40),
    compressible("last", 200),
]


SMALL = [b"HF raw", compressible("packed", 120), b""]


def require_all(place: Path, held: dict[Digest, bytes]) -> None:
    with opened(place) as store:
        for digest, data in held.items():
            assert store.read(digest) == data


def require_writable(place: Path, held: dict[Digest, bytes]) -> None:
    """A later save works, is readable after reopening, and took nothing away."""
    with opened(place) as store:
        store_objects(store, [b"a later save"])
    require_all(place, {**held, digest_of(b"a later save"): b"a later save"})


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize("with_index", [True, False], ids=["index kept", "index lost"])
def test_a_pack_torn_at_any_byte_of_its_last_batch_keeps_every_earlier_object(
    tmp_path: Path, with_index: bool
) -> None:
    place = tmp_path / "objects"
    held = fill(place, CONTENTS[:-1])
    (pack,) = packs(place)
    committed = pack.read_bytes()
    index = {path.name: path.read_bytes() for path in place.glob("index.db*")}
    fill(place, CONTENTS[-1:])
    whole = pack.read_bytes()
    assert whole.startswith(committed)
    for length in range(len(committed), len(whole)):
        for path in (*place.glob("index.db*"), *packs(place)):
            path.unlink()
        pack.write_bytes(whole[:length])
        pack.chmod(0o600)
        if with_index:
            for name, data in index.items():
                (place / name).write_bytes(data)
        require_all(place, held)
        require_writable(place, held)
        assert pack.read_bytes()[:length] == whole[:length], "nothing is cut off or written over"


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize(
    "garbage",
    [b"\0", b"\0" * 5000, b"HF", b"HF" * 100, incompressible("garbage", 3000)],
    ids=["one zero", "zeros", "magic", "many magics", "noise"],
)
def test_garbage_behind_the_last_record_harms_neither_earlier_nor_later_objects(
    tmp_path: Path, garbage: bytes
) -> None:
    held = fill(tmp_path, CONTENTS)
    (pack,) = packs(tmp_path)
    before = pack.read_bytes()
    pack.write_bytes(before + garbage)
    require_all(tmp_path, held)
    require_writable(tmp_path, held)
    forget_index(tmp_path)
    require_writable(tmp_path, held)
    assert pack.read_bytes() == before + garbage
    with opened(tmp_path) as store:
        assert list(store.check(data=True)) == [], "what a killed save leaves is no damage"


def test_whole_records_behind_a_torn_one_are_indexed(tmp_path: Path) -> None:
    held = fill(tmp_path, CONTENTS)
    (pack,) = packs(tmp_path)
    source = tmp_path / "other"
    late = fill(source, [b"late one", b"late two"])
    records = packs(source)[0].read_bytes()[len(PACK_MAGIC) :]
    pack.write_bytes(pack.read_bytes() + b"HF torn" + records)
    require_all(tmp_path, {**held, **late})


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize("with_index", [True, False], ids=["index kept", "index lost"])
def test_any_flipped_byte_of_a_pack_costs_one_object_and_never_gives_wrong_bytes(
    tmp_path: Path, with_index: bool
) -> None:
    held = fill(tmp_path, SMALL)
    (pack,) = packs(tmp_path)
    whole = pack.read_bytes()
    expected = ObjectDamaged if with_index else ObjectMissing
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        pack.write_bytes(damaged)
        if not with_index:
            forget_index(tmp_path)
        lost = 0
        with opened(tmp_path) as store:
            for digest, data in held.items():
                try:
                    assert store.read(digest) == data
                except expected:
                    lost += 1
            assert lost == (0 if position < len(PACK_MAGIC) else 1), f"byte {position}"
            if with_index:
                assert list(store.check(data=True)) != []
        pack.write_bytes(whole)
    forget_index(tmp_path)
    require_all(tmp_path, held)


def test_damage_in_the_middle_is_named_and_leaves_the_neighbours_readable(tmp_path: Path) -> None:
    held = fill(tmp_path, CONTENTS)
    (pack,) = packs(tmp_path)
    whole = pack.read_bytes()
    victim = digest_of(CONTENTS[1])
    start = whole.index(victim)
    pack.write_bytes(whole[:start] + bytes(64) + whole[start + 64 :])
    with opened(tmp_path) as store:
        with pytest.raises(ObjectDamaged, match=victim.hex()[:16]):
            store.read(victim)
        for digest in held.keys() - {victim}:
            assert store.read(digest) == held[digest]
        subjects = {problem.subject for problem in store.check(data=True)}
    assert subjects == {"pack 1", f"object {victim.hex()}"}


def test_a_damaged_base_makes_its_versions_unreadable_rather_than_wrong(tmp_path: Path) -> None:
    base = incompressible("base", 5000)
    version = base + b"edited"
    with opened(tmp_path) as store:
        store_objects(store, [base])
        writer = store.writer()
        writer.add(digest_of(version), version, similar_to=digest_of(base))
        writer.commit()
    (pack,) = packs(tmp_path)
    whole = bytearray(pack.read_bytes())
    whole[200] ^= 1
    pack.write_bytes(whole)
    with opened(tmp_path) as store:
        for digest in (digest_of(base), digest_of(version)):
            with pytest.raises(StoreDamaged):
                store.read(digest)


def test_a_pack_that_is_shorter_than_it_was_is_reported_and_never_appended_to(
    tmp_path: Path,
) -> None:
    held = fill(tmp_path, CONTENTS)
    (pack,) = packs(tmp_path)
    cut = pack.read_bytes()[:150]
    pack.write_bytes(cut)
    with opened(tmp_path) as store:
        assert [p.subject for p in store.check(data=False)] == ["pack 1"]
        store_objects(store, [b"later"])
        assert store.read(digest_of(b"later")) == b"later"
        assert store.read(digest_of(CONTENTS[0])) == CONTENTS[0]
        with pytest.raises(ObjectDamaged):
            store.read(digest_of(CONTENTS[-1]))
    assert len(held) == len(CONTENTS)
    assert pack.read_bytes() == cut


def test_a_pack_that_vanishes_while_the_store_is_open_is_reported(tmp_path: Path) -> None:
    held = fill(tmp_path, CONTENTS)
    with opened(tmp_path) as store:
        packs(tmp_path)[0].unlink()
        assert [p.subject for p in store.check(data=False)] == ["pack 1"]
        for digest in held:
            with pytest.raises(ObjectMissing):
                store.read(digest)


@pytest.mark.requirement("ST-1")
def test_content_of_a_pack_that_is_gone_can_be_stored_again_and_the_pack_may_return(
    tmp_path: Path,
) -> None:
    held = fill(tmp_path, CONTENTS)
    (pack,) = packs(tmp_path)
    pack.rename(tmp_path / "away")
    with opened(tmp_path) as store:
        generation = store.generation()
        assert store.missing(held) == set(held)
        store_objects(store, [*CONTENTS, b"later"])
        assert all(store.read(digest) == data for digest, data in held.items())
    assert not pack.exists(), "a number is not given out twice"
    (tmp_path / "away").rename(pack)
    with opened(tmp_path) as store:
        assert list(store.check(data=True)) == []
        assert store.read(digest_of(b"later")) == b"later"
        assert store.generation() == generation


def test_files_that_are_no_packs_are_left_alone(tmp_path: Path) -> None:
    held = fill(tmp_path, CONTENTS)
    strangers = ["notes.txt", "1.pack", "0000000x.pack", "00000001.pack.old", "².pack"]
    for name in strangers:
        (tmp_path / "packs" / name).write_bytes(b"stranger")
    require_writable(tmp_path, held)
    for name in strangers:
        assert (tmp_path / "packs" / name).read_bytes() == b"stranger"
