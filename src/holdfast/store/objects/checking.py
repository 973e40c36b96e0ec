"""Verifying packs and their index; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.domain.errors import StoreDamaged
from holdfast.ports.objects import ObjectProblem
from holdfast.ports.progress import Progress
from holdfast.store.objects.index import GONE

if TYPE_CHECKING:
    from holdfast.store.objects.local import LocalObjectStore


def check(store: LocalObjectStore, *, data: bool, progress: Progress) -> Iterator[ObjectProblem]:
    """Called with the object store's own lock held."""
    packs, index = store.packs, store.index
    for problem in index.problems():
        yield ObjectProblem("index.db", problem, "index")
    present = set(packs.numbers())
    lengths = index.pack_lengths()
    for number, length in sorted(lengths.items()):
        if number not in present and length != GONE:
            yield ObjectProblem(f"pack {number}", "the file is missing", "I1")
        elif number in present and packs.size_of(number) < length:
            yield ObjectProblem(f"pack {number}", "the file is shorter than it was", "I1")
    if not data:
        return
    readable = sorted(present & lengths.keys())
    magic = packs.records.pack_magic
    for done, number in enumerate(readable):
        progress.advance("checking packs", done, len(readable))
        if packs.read(number, 0, len(magic)) != magic:
            yield ObjectProblem(f"pack {number}", "it does not begin as a pack does", "I2")
        for offset, record, end in packs.scan(number, 0):
            # Behind the committed length stands, at worst, what a killed save left: no damage.
            if record is None and offset < lengths[number]:
                what = f"{end - offset} bytes at {offset} are no sound record"
                yield ObjectProblem(f"pack {number}", what, "I2")
    count = index.count()
    for done, (digest, _) in enumerate(index.locations()):
        progress.advance("checking objects", done, count)
        try:
            store.read(digest)
        except StoreDamaged as error:
            yield ObjectProblem(f"object {digest.hex()}", error.message, "I2")
