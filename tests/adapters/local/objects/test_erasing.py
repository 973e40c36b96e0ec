"""Packs and index after an erasure: needed records and nothing else, at every instant readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import all_digests
from holdfast.testing.faulty_filesystem import FaultyFilesystem, Kill, Killed
from holdfast.testing.samples import incompressible, store_objects
from tests.adapters.local.objects.local_stores import forget_index, opened, packs

pytestmark = pytest.mark.requirement("ST-5")


def _versions(place: Path, count: int) -> dict[Digest, bytes]:
    """Versions stored against each other, with something that does not compress beside each."""
    lines = [b"%d: a line of a text\n" % number for number in range(400)]
    held: dict[Digest, bytes] = {}
    with opened(place) as store:
        previous: Digest | None = None
        for number in range(count):
            lines[number] = b"edited as number %d\n" % number
            data = b"".join(lines)
            writer = store.writer()
            writer.add(digest_of(data), data, similar_to=previous)
            writer.commit()
            previous = digest_of(data)
            held[previous] = data
            other = incompressible(f"beside {number}", 300)
            store_objects(store, [other])
            held[digest_of(other)] = other
    return held


def _raw(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())


def test_no_byte_of_what_goes_is_left_in_any_file(tmp_path: Path) -> None:
    held = _versions(tmp_path, 10)
    needed = {d: data for number, (d, data) in enumerate(held.items()) if number % 4 == 0}
    with opened(tmp_path) as store:
        given_back = store.maintenance().erase_all_but(set(needed))
        assert given_back > 0
        assert {d: store.read(d) for d in needed} == needed
    raw = _raw(tmp_path)
    for digest, data in held.items():
        if digest not in needed:
            assert raw.find(digest) < 0
            assert data[:100] not in raw
    with opened(tmp_path) as store:
        assert list(store.check(data=True)) == []


def test_what_a_cut_off_save_left_behind_a_pack_goes_too(tmp_path: Path) -> None:
    digest = next(iter(_versions(tmp_path, 1)))
    newest = packs(tmp_path)[-1]
    with newest.open("ab") as file:
        file.write(b"HF" + b"torn record of a killed save" * 10)
    with opened(tmp_path) as store:
        store.maintenance().erase_all_but({digest})
        assert store.read(digest)
    assert b"torn record" not in _raw(tmp_path)


def test_killed_at_any_call_everything_needed_is_readable_and_a_second_run_finishes(
    tmp_path: Path,
) -> None:
    counting = FaultyFilesystem(LocalFilesystem(), {})
    held = _versions(tmp_path / "count", 6)
    needed = {d: data for number, (d, data) in enumerate(held.items()) if number % 3 == 1}
    with opened(tmp_path / "count", counting) as store:
        store.maintenance().erase_all_but(set(needed))
    for number in range(1, len(counting.calls) + 1):
        for after in (False, True):
            place = tmp_path / f"{number}-{after}"
            _versions(place, 6)
            fs = FaultyFilesystem(LocalFilesystem(), {number: Kill(after=after)})
            try:
                with opened(place, fs) as store:
                    store.maintenance().erase_all_but(set(needed))
            except Killed:
                pass
            finally:
                fs.release()
            if number % 2:
                forget_index(place)  # the index may know less after a power cut
            with opened(place) as store:
                assert {d: store.read(d) for d in needed} == needed
                store.maintenance().erase_all_but(set(needed))
                assert set(all_digests(store)) == set(needed)
                assert {d: store.read(d) for d in needed} == needed
            raw = _raw(place)
            assert not [d for d in held if d not in needed and raw.find(d) >= 0]
