"""Helpers of the contract suites: an expected error, content to store, and rows to fill a catalog
with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from blake3 import blake3

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind, NewCheckpoint
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.catalog import (
    Catalog,
    NewOperation,
)
from holdfast.ports.objects import ObjectStore

ONE = SessionId("one")
TWO = SessionId("two")


class expect_error:  # noqa: N801
    """The block must raise `kind` or a subclass; anything else passes through unchanged."""

    def __init__(self, kind: type[Exception]) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None:
            raise AssertionError(f"no {self._kind.__name__} was raised")
        return issubclass(kind, self._kind)


def incompressible(label: str, size_bytes: int) -> bytes:
    """Bytes that look random, equal on every run and different for every label."""
    return blake3(label.encode()).digest(length=size_bytes)


def compressible(label: str, size_bytes: int) -> bytes:
    """Text in numbered lines, equal on every run and different for every label."""
    line_count = size_bytes // 15 + 1  # the length of a line without its label
    text = "".join(f"{label} line {number:08d}\n" for number in range(line_count))
    return text.encode()[:size_bytes]


def store_objects(store: ObjectStore, contents: Iterable[bytes]) -> list[Digest]:
    """Write `contents` as one batch; returns the digests in the same order."""
    writer = store.writer()
    digests: list[Digest] = []
    for data in contents:
        digests.append(digest_of(data))
        writer.add(digests[-1], data)
    writer.commit()
    return digests


def checkpoint_id(number: int) -> CheckpointId:
    """An id of the real length that begins with the number in hexadecimal."""
    return CheckpointId(f"{number:04x}" + digest_of(b"%d" % number).hex()[:16])


def new_checkpoint(
    number: int,
    session_id: SessionId = ONE,
    *,
    kind: Kind = Kind.MANUAL,
    name: str | None = None,
    parent: int | None = None,
    created_at_ns: int | None = None,
) -> NewCheckpoint:
    """A checkpoint that differs from all those with another number."""
    return NewCheckpoint(
        id=checkpoint_id(number),
        session_id=session_id,
        parent=None if parent is None else checkpoint_id(parent),
        kind=kind,
        created_at_ns=number * 1_000_000_000 if created_at_ns is None else created_at_ns,
        tree=digest_of(b"tree %d" % number),
        intent=make_intent(f"reason {number}", name=name),
        files=number,
        size_bytes=number * 100,
        changed=ChangeCounts(number, number + 1, number + 2),
    )


def new_operation(
    number: int,
    session_id: SessionId = ONE,
    *,
    kind: OperationKind = OperationKind.CHECKPOINT,
    token: str | None = None,
) -> NewOperation:
    return NewOperation(kind, session_id, number, checkpoint_id(number), token=token)


class CatalogOpening:
    """How the tests open a catalog. The suites build on this; adapters subclass those."""

    def open_catalog(self, place: Path) -> Catalog:
        """A writable catalog that keeps its files in the directory `place`."""
        raise NotImplementedError

    def fill(self, catalog: Catalog, *checkpoints: NewCheckpoint) -> list[Checkpoint]:
        """Add two sessions, and the given checkpoints with an operation each."""
        with catalog.transaction() as transaction:
            for session_id in (ONE, TWO):
                if catalog.session(session_id) is None:
                    transaction.add_session(Session(session_id, created_at_ns=1))
            added = [transaction.add_checkpoint(new) for new in checkpoints]
            for new in checkpoints:
                transaction.add_operation(
                    NewOperation(
                        OperationKind.CHECKPOINT, new.session_id, new.created_at_ns, new.id
                    )
                )
        return added
