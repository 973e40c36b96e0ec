"""Giving space back while others read: nothing needed is lost, and no reader sees damage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.packs import PACK_MAGIC
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.faulty_filesystem import FaultyFilesystem, Kill, Killed
from holdfast.testing.intercepted_filesystem import Call, InterceptedFilesystem
from holdfast.testing.samples import incompressible, store_objects
from tests.adapters.local.objects.local_stores import (
    fill,
    forget_index,
    open_objects,
    opened,
    packs,
)

T = TypeVar("T")

CONTENTS = [incompressible(f"object {number}", 3000) for number in range(12)]
NEEDED = CONTENTS[:3]


class _MeanwhileAtOpen(InterceptedFilesystem):
    """Runs something just before the first pack is opened."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(LocalFilesystem())
        self._meanwhile: Callable[[], None] | None = meanwhile

    def around(self, call: Call, run: Callable[[], T]) -> T:
        if call.name == "open" and self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        return run()


def _collect(place: Path) -> None:
    with opened(place) as store:
        store.retain_only({digest_of(data) for data in NEEDED})


def test_an_object_that_moves_between_lookup_and_read_is_found_again(tmp_path: Path) -> None:
    fill(tmp_path, CONTENTS)
    reader = open_objects(tmp_path, _MeanwhileAtOpen(lambda: _collect(tmp_path)))
    with closing(reader):
        assert reader.read(digest_of(NEEDED[0])) == NEEDED[0]
    assert [path.name for path in packs(tmp_path)] == ["00000002.pack"]


def test_a_reader_that_still_has_a_removed_pack_open_reads_the_new_one_of_its_number(
    tmp_path: Path,
) -> None:
    fill(tmp_path, CONTENTS)
    with opened(tmp_path) as reader:
        assert reader.read(digest_of(CONTENTS[0])) == CONTENTS[0]
        with opened(tmp_path) as other:
            other.retain_only(set())
            later = [incompressible(f"later {number}", 3000) for number in range(5)]
            store_objects(other, later)
        for data in later:
            assert reader.read(digest_of(data)) == data


def test_a_collection_killed_at_any_call_loses_nothing_that_is_needed(tmp_path: Path) -> None:
    number = 0
    finished = False
    while not finished:
        number += 1
        place = tmp_path / str(number)
        fill(place, CONTENTS)
        fs = FaultyFilesystem(LocalFilesystem(), {number: Kill()})
        try:
            with opened(place, fs) as store:
                store.retain_only({digest_of(data) for data in NEEDED})
            finished = True
        except Killed:
            fs.release()
        for lose_index in (False, True):
            if lose_index:
                forget_index(place)
            with opened(place) as store:
                for data in NEEDED:
                    assert store.read(digest_of(data)) == data
                assert list(store.check(data=True)) == []
    assert number > 5


def test_nothing_is_collected_when_something_needed_is_not_known(tmp_path: Path) -> None:
    fill(tmp_path, CONTENTS)
    before = [path.read_bytes() for path in packs(tmp_path)]
    with opened(tmp_path) as store, pytest.raises(StoreDamaged, match="missing"):
        store.retain_only({digest_of(NEEDED[0]), digest_of(b"never stored")})
    assert [path.read_bytes() for path in packs(tmp_path)] == before


def test_a_limited_collection_goes_on_where_it_stopped(tmp_path: Path) -> None:
    for number in range(4):
        fill(tmp_path, [incompressible(f"{number} {n}", 5000) for n in range(3)])
        with opened(tmp_path) as store:
            (tmp_path / "packs" / f"{number + 2:08d}.pack").write_bytes(PACK_MAGIC)
            store.catch_up()
    with opened(tmp_path) as store:
        rounds = []
        while freed := store.retain_only(set(), limit_bytes=1):
            rounds.append(freed)
        assert len(rounds) == 4
        assert store.count() == 0


@pytest.mark.requirement("ST-2")
@pytest.mark.parametrize(("unneeded", "is_rewritten"), [(28, False), (32, True), (100, True)])
def test_a_pack_is_rewritten_when_more_than_thirty_percent_of_it_is_waste(
    tmp_path: Path, unneeded: int, is_rewritten: bool
) -> None:
    contents = [incompressible(f"of a hundred {number}", 20_000) for number in range(100)]
    with opened(tmp_path) as store:
        store_objects(store, contents)
        (before,) = packs(tmp_path)
        needed = {digest_of(data) for data in contents[unneeded:]}
        freed = store.retain_only(needed)
        assert (freed >= unneeded * 20_000) == is_rewritten
        assert (freed > 0) == is_rewritten
        assert (before not in packs(tmp_path)) == is_rewritten
        assert all(store.read(digest_of(data)) == data for data in contents[unneeded:])
        assert store.retain_only(needed) == 0
