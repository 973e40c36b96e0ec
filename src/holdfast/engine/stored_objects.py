"""Reading and writing the objects of a store: file contents, trees, and chains of similar objects.

Content is returned in pieces and verified against its digest (I2).

A store compares a new object only with durable ones. An object that resembles one in the current
batch therefore waits until that batch is committed (`store_chained`): one more sync for each link
of a chain, and a few dozen bytes instead of a whole directory for each version.

Readers hold no lock, so nothing waits for them. A checkpoint that is deleted while it is read, as
when a diff waits in a pager, is reported as deleted and not as damage (`explain_deletion`).
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
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.engine.vault import Vault
from holdfast.ports.objects import ObjectReader, ObjectStore, ObjectWriter

if TYPE_CHECKING:
    from holdfast.domain.checkpoints import NewCheckpoint
    from holdfast.engine.scan.scanner import Scan


def read_content(objects: ObjectReader, entry: FileEntry) -> Iterator[bytes]:
    """Pieces in order. The last one is only given out after the whole matched its digest (I2)."""
    if entry.chunks is None:
        data = objects.read(entry.digest)
        if len(data) != entry.size:
            raise ObjectDamaged(f"{to_text(entry.name)}: {len(data)} bytes instead of {entry.size}")
        yield data
        return
    whole = blake3()
    last: bytes | None = None
    for piece in decode_chunk_list(objects.read(entry.chunks)):
        if last is not None:
            yield last
        last = objects.read(piece.digest)
        if len(last) != piece.size:
            raise ObjectDamaged(f"a chunk of {to_text(entry.name)} has the wrong size")
        whole.update(last)
    if whole.digest() != entry.digest:
        raise ObjectDamaged(f"the chunks of {to_text(entry.name)} do not match its content")
    if last is not None:
        yield last


def loader_for(vault: Vault, scan: Scan) -> TreeLoader:
    """Loads trees of the store, and those that a scan found and that are not stored."""

    def load(digest: Digest) -> Tree:
        encoded = scan.encoded.get(digest)
        return vault.load_tree(digest) if encoded is None else decode_tree(encoded)

    return load


def unrestorable(path: bytes, error: ObjectMissing | ObjectDamaged) -> StoreDamaged:
    """The same error, for the file that cannot be restored because of it."""
    return type(error)(
        f"cannot restore {to_text(path)}: {error.message}",
        hint=(
            "restore everything else with --best-effort; to list all losses: holdfast check --data"
        ),
    )


_REMEMBERED = 64


def cached_loader(load: TreeLoader) -> TreeLoader:
    """For a look at many paths of a few trees: files of one directory read it once. Not kept for
    longer than that look."""
    return lru_cache(maxsize=_REMEMBERED)(load)


def entry_at(load: TreeLoader, root: Digest, path: bytes) -> Entry | None:
    """What a tree has at `path`."""
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
    """A batch of new objects: durable when the block ends, dropped when it raises."""
    writer = objects.writer()
    try:
        yield writer
        writer.commit()
    except BaseException:
        writer.abandon()
        raise


Item: TypeAlias = tuple[Digest, bytes, Digest | None]
"""An object's name, its bytes, and the name of one that it resembles."""


def store_chained(
    objects: ObjectStore, items: Iterable[Item], *, limit_bytes: int | None = None
) -> int:
    """Make every object durable; the bytes that took. `NoSpace` beyond the limit.

    An error leaves the batches before it: durable, unreferenced, collectable (I1).
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
    """`Refused` in place of `ObjectMissing`, where one of them has changed."""
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
