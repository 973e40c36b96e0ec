"""The manifest of a checkpoint: reading it, and everything that it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.chunk_lists import decode_chunk_list
from holdfast.domain.component_states import ComponentState, contents_of, decode_manifest
from holdfast.domain.ids import Digest
from holdfast.ports.objects import ObjectStore


def read_states(objects: ObjectStore, checkpoint: Checkpoint) -> tuple[ComponentState, ...]:
    """What was captured besides files; `StoreDamaged` when that cannot be read."""
    if checkpoint.components is None:
        return ()
    return decode_manifest(objects.read(checkpoint.components))


def state_of(
    objects: ObjectStore, checkpoint: Checkpoint | None, name: str
) -> ComponentState | None:
    states = () if checkpoint is None else read_states(objects, checkpoint)
    return next((state for state in states if state.name == name), None)


class ObjectReader(Protocol):
    """An object store, or one with objects that nobody has stored yet."""

    def read(self, digest: Digest) -> bytes: ...


def named_objects(objects: ObjectReader, manifest: Digest) -> Iterator[Digest]:
    """Every object that a manifest needs, itself included."""
    yield manifest
    for content in contents_of(decode_manifest(objects.read(manifest))):
        if content.chunks is None:
            yield content.digest
        else:
            yield content.chunks
            for piece in decode_chunk_list(objects.read(content.chunks)):
                yield piece.digest
