"""Values to fill a catalog with, and what every part of its contract starts from."""

from __future__ import annotations

from pathlib import Path

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Session
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.catalog import Catalog, NewCheckpoint, NewOperation

ONE = SessionId("one")
TWO = SessionId("two")


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
    """How the tests come by a catalog. The suites build on this; adapters subclass those."""

    def open_catalog(self, place: Path) -> Catalog:
        """A catalog that keeps what it needs in the directory `place`, ready to be written to."""
        raise NotImplementedError

    def fill(self, catalog: Catalog, *checkpoints: NewCheckpoint) -> list[Checkpoint]:
        """Two sessions, and the given checkpoints with an operation each."""
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
