"""Reads and writes stored objects: file contents, trees, and chains of similar objects.

Content is returned in pieces and verified against its digest (I2).

A store compares a new object only with durable ones. An object that resembles one in the current
batch therefore waits until that batch is committed (`store_chained`). This costs one sync per chain
link, and saves storing a whole directory for each version.

Readers hold no lock, so nothing waits for them. If a checkpoint is deleted while it is being read,
for example by a diff in a pager, the error says so, and not that data is damaged
(`explain_deletion`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from blake3 import blake3

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import ObjectDamaged, ObjectMissing, Refused, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join, to_text
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.trees.objects import Piece, decode_chunk_list
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.engine.vault import Vault
from holdfast.ports.objects import ObjectReader, ObjectStore, ObjectWriter

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import NewCheckpoint
    from holdfast.engine.scan.scanner import Scan


_PIECES_AT_ONCE = 8
"""Up to 2 MiB of a large file are in memory at once."""


def read_content(objects: ObjectReader, entry: FileEntry) -> Iterator[bytes]:
    """Pieces in order. The last one is yielded only after the whole matched its digest (I2)."""
    if entry.chunks is None:
        data = objects.read(entry.digest)
        if len(data) != entry.size:
            raise ObjectDamaged(f"{to_text(entry.name)}: {len(data)} bytes instead of {entry.size}")
        yield data
        return
    whole = blake3()
    last: bytes | None = None
    for size, data in _read_pieces(objects, decode_chunk_list(objects.read(entry.chunks))):
        if last is not None:
            yield last
        if len(data) != size:
            raise ObjectDamaged(f"a chunk of {to_text(entry.name)} has the wrong size")
        whole.update(data)
        last = data
    if whole.digest() != entry.digest:
        raise ObjectDamaged(f"the chunks of {to_text(entry.name)} do not match its content")
    if last is not None:
        yield last


def _read_pieces(objects: ObjectReader, pieces: list[Piece]) -> Iterator[tuple[int, bytes]]:
    """The size that the chunk list names, and the bytes, of each piece in order. The first two are
    read alone, for callers that only need the beginning."""
    begin, end = 0, 2
    while batch := pieces[begin:end]:
        found = dict(objects.read_many({piece.digest for piece in batch}))
        for piece in batch:
            yield piece.size, found[piece.digest]
        del found  # before the next ones are read
        begin, end = end, end + _PIECES_AT_ONCE


def loader_for(vault: Vault, scan: Scan) -> TreeLoader:
    """Loads trees from the store, and unstored ones from a scan."""

    def load(digest: Digest) -> Tree:
        encoded = scan.encoded.get(digest)
        return vault.load_tree(digest) if encoded is None else decode_tree(encoded)

    return load


def unrestorable(path: bytes, error: ObjectMissing | ObjectDamaged) -> StoreDamaged:
    """The same error, naming the file that it makes unrestorable."""
    return type(error)(
        f"cannot restore {to_text(path)}: {error.message}",
        hint=(
            "restore everything else with --best-effort; to list all losses: holdfast check --data"
        ),
    )


_REMEMBERED = 64


def cached_loader(load: TreeLoader) -> TreeLoader:
    """A loader that reads each tree once, for many paths in a few trees. It is meant for one
    lookup and not kept longer."""
    return lru_cache(maxsize=_REMEMBERED)(load)


def entry_at(load: TreeLoader, root: Digest, path: bytes) -> Entry | None:
    """The entry of a tree at `path`."""
    tree = load(root)
    *directories, name = path.split(b"/")
    for directory in directories:
        entry = tree.by_name.get(directory)
        if not isinstance(entry, DirectoryEntry):
            return None
        tree = load(entry.digest)
    return tree.by_name.get(name)


def list_entries(
    load: TreeLoader, root: Digest, directory: bytes = b""
) -> Iterator[tuple[bytes, Entry]]:
    tree = load(root)
    for name, entry in sorted(tree.by_name.items()):
        path = join(directory, name)
        yield path, entry
        if isinstance(entry, DirectoryEntry):
            yield from list_entries(load, entry.digest, path)


def list_files(load: TreeLoader, root: Digest) -> Iterator[tuple[bytes, FileEntry]]:
    for path, entry in list_entries(load, root):
        if isinstance(entry, FileEntry):
            yield path, entry


@contextmanager
def object_batch(objects: ObjectStore) -> Iterator[ObjectWriter]:
    """A batch of new objects: durable when the block ends, discarded if it raises."""
    writer = objects.writer()
    try:
        yield writer
        writer.commit()
    except BaseException:
        writer.abandon()
        raise


Item: TypeAlias = tuple[Digest, bytes, Digest | None]
"""An object's digest, its bytes, and the digest of a similar object."""


def store_chained(
    objects: ObjectStore, items: Iterable[Item], *, limit_bytes: int | None = None
) -> int:
    """Make every object durable; returns the bytes stored. `NoSpace` beyond the limit.

    An error leaves the earlier batches: durable, unreferenced, collectable (I1).
    """
    stored_bytes = 0
    batch: set[Digest] = set()
    writer = objects.writer(limit_bytes=limit_bytes)
    try:
        for digest, data, similar_to in items:
            if similar_to in batch:
                stored_bytes += writer.commit().stored_bytes
                left = None if limit_bytes is None else limit_bytes - stored_bytes
                writer = objects.writer(limit_bytes=left)
                batch.clear()
            writer.add(digest, data, similar_to=similar_to)
            batch.add(digest)
        return stored_bytes + writer.commit().stored_bytes
    except BaseException:
        writer.abandon()
        raise


Row: TypeAlias = "Checkpoint | NewCheckpoint | None"


@contextmanager
def explain_deletion(
    vault: Vault, checkpoints: Iterable[Row], doing: str, hint: str
) -> Iterator[None]:
    """`Refused` instead of `ObjectMissing` if a checkpoint was deleted or purged meanwhile."""
    try:
        yield
    except ObjectMissing:
        for row in checkpoints:
            if row is None:
                continue
            now = vault.catalog.checkpoint(row.session_id, row.id)
            if now is None or now.tree != row.tree:
                lost = "deleted" if now is None else "purged"
                raise Refused(
                    f"checkpoint {row.id} was {lost} while it was being {doing}", hint=hint
                ) from None
        raise
