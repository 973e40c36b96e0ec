"""The bytes of a file in a checkpoint, piece by piece and proven."""

from __future__ import annotations

from collections.abc import Iterator

from blake3 import blake3

from holdfast.domain.chunk_lists import decode_chunk_list
from holdfast.domain.entries import FileEntry
from holdfast.domain.errors import ObjectDamaged, ObjectMissing, StoreDamaged
from holdfast.domain.paths import to_text
from holdfast.ports.objects import ObjectStore


def read_content(objects: ObjectStore, entry: FileEntry) -> Iterator[bytes]:
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
            raise ObjectDamaged(f"a piece of {to_text(entry.name)} has another size than listed")
        whole.update(last)
    if whole.digest() != entry.digest:
        raise ObjectDamaged(f"the pieces of {to_text(entry.name)} do not make up its content")
    if last is not None:
        yield last


def lost_to(path: bytes, error: ObjectMissing | ObjectDamaged) -> StoreDamaged:
    """The same error, told of the file that cannot be restored because of it."""
    return type(error)(
        f"{to_text(path)} cannot be restored: {error.message}",
        hint="restore all the others with --best-effort; what else is lost: holdfast check --data",
    )
