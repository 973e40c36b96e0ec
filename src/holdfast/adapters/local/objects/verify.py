"""Verifying packs and their index; nothing is changed.

quick: the index is whole, packs are there and as long as they were
data:  packs hold nothing but sound records → the index knows each of them → each object's bytes
       have the digest that is its name
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.adapters.local.objects.blocks import objects_in
from holdfast.adapters.local.objects.index import GONE
from holdfast.domain.errors import IndexDamaged, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.ports.objects import ObjectProblem
from holdfast.ports.progress import Progress

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.local import LocalObjectStore


def check(store: LocalObjectStore, *, data: bool, progress: Progress) -> Iterator[ObjectProblem]:
    """Called with the object store's own lock held."""
    try:
        yield from _check_index(store)
        yield from _check_lengths(store)
        if data:
            yield from _check_packs(store, progress)
            yield from _check_objects(store, progress)
    except IndexDamaged as error:
        yield ObjectProblem("index.db", error.message, "index")


def _check_index(store: LocalObjectStore) -> Iterator[ObjectProblem]:
    for problem in store.index.problems():
        yield ObjectProblem("index.db", problem, "index")


def _check_lengths(store: LocalObjectStore) -> Iterator[ObjectProblem]:
    present = set(store.packs.numbers())
    ends = store.index.ends()  # behind damage a pack is not known to be whole, but it holds objects
    for number, whole in sorted(store.index.pack_lengths().items()):
        length = whole if whole == GONE else max(whole, ends.get(number, 0))
        if number not in present and length != GONE:
            yield ObjectProblem(f"pack {number}", "the file is missing", "I1")
        elif number in present and store.packs.size_of(number) < length:
            yield ObjectProblem(f"pack {number}", "the file is shorter than it was", "I1")


def _check_packs(store: LocalObjectStore, progress: Progress) -> Iterator[ObjectProblem]:
    for number, problem in damaged_packs(store, progress).items():
        yield ObjectProblem(f"pack {number}", problem, "I2")


def damaged_packs(store: LocalObjectStore, progress: Progress | None = None) -> dict[int, str]:
    """Behind the committed length stands, at worst, what a killed save left: no damage."""
    lengths = store.index.pack_lengths()
    magic = store.packs.records.pack_magic
    readable = sorted(set(store.packs.numbers()) & lengths.keys())
    found: dict[int, str] = {}
    for done, number in enumerate(readable):
        if progress is not None:
            progress.advance("checking packs", done, len(readable))
        if store.packs.read(number, 0, len(magic)) != magic:
            found[number] = "it does not begin as a pack does"
        for offset, record, end in store.packs.scan(number, 0):
            if offset >= lengths[number]:
                break
            if record is None:
                found[number] = f"{end - offset} bytes at {offset} are no sound record"
            elif any(store.index.find(digest) is None for digest in objects_in(record)):
                found[number] = f"the index does not know the object at {offset}"
    return found


def _check_objects(store: LocalObjectStore, progress: Progress) -> Iterator[ObjectProblem]:
    count = store.index.count()
    for number, (digest, _) in enumerate(store.index.locations()):
        progress.advance("checking objects", number, count)
        try:
            store.read(digest)
        except IndexDamaged:
            raise
        except StoreDamaged as error:
            yield ObjectProblem(f"object {digest.hex()}", error.message, "I2")


def unreadable(store: LocalObjectStore) -> dict[Digest, str]:
    found: dict[Digest, str] = {}
    for digest, _ in store.index.locations():
        try:
            store.read(digest)
        except IndexDamaged:
            raise
        except StoreDamaged as error:
            found[digest] = error.message
    return found
