"""Stores of packs for the tests of this directory: opening, filling, and looking at their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects.object_store import LocalObjectStore
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import Filesystem
from holdfast.testing.samples import store_objects


def open_objects(place: Path, fs: Filesystem | None = None) -> LocalObjectStore:
    """As a store is opened under its lock: records of packs that the index lacks are added to
    it."""
    (place / "packs").mkdir(parents=True, exist_ok=True)
    store = LocalObjectStore(fs or LocalFilesystem(), place)
    store.catch_up()
    return store


@contextmanager
def opened(place: Path, fs: Filesystem | None = None) -> Iterator[LocalObjectStore]:
    store = open_objects(place, fs)
    try:
        yield store
    finally:
        store.close()


def fill(place: Path, contents: Iterable[bytes]) -> dict[Digest, bytes]:
    """Store `contents`, one batch each, so that every one ends at a committed length."""
    held: dict[Digest, bytes] = {}
    with opened(place) as store:
        for data in contents:
            store_objects(store, [data])
            held[digest_of(data)] = data
    return held


def packs(place: Path) -> list[Path]:
    return sorted((place / "packs").iterdir())


def forget_index(place: Path) -> None:
    for path in place.glob("index.db*"):
        path.unlink()
