"""Sessions, checkpoints, operations and settings: everything about content except the content.

    CatalogReader ← Catalog, whose `transaction` makes a CatalogTransaction

Reading is a separate port, so that rows can be read from a replica. Reads need no lock and see the
last finished transaction. If a lookup takes a session or None, None means all sessions of the
workspace.

Writes happen inside `transaction`, under the store's writer lock. When the block ends, the whole
transaction is durable, or none of it is ever visible (I3). The catalog assigns increasing sequence
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.checkpoints import Checkpoint, Kind, NewCheckpoint
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.values.classes import dataclass

if TYPE_CHECKING:  # a save draws no timeline
    from holdfast.domain.checkpoints import Milestone
    from holdfast.domain.timeline.timeline import Outline

_CHECKPOINTS_AT_ONCE = 1000
_OPERATIONS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation that has no sequence number yet.

    `token` names the attempt that made it, so that recovery can find out whether it was recorded.
    """

    kind: OperationKind
    session_id: SessionId
    at_ns: int
    checkpoint: CheckpointId | None = None
    safety: CheckpointId | None = None
    head_before: CheckpointId | None = None
    reverses: int | None = None
    token: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogCounts:
    """Totals of one session, or of all."""

    checkpoints: int
    records: int
    restores: int


class CatalogTransaction(Protocol):
    """Changes that become durable together."""

    def add_session(self, session: Session) -> None: ...

    def set_session_status(self, session_id: SessionId, status: SessionStatus) -> None: ...

    def set_session_title(self, session_id: SessionId, title: str | None) -> None: ...

    def set_head(self, session_id: SessionId, head: CheckpointId | None) -> None: ...

    def start_round(
        self, session_id: SessionId, number: int, *, approved: CheckpointId | None
    ) -> None:
        """Begin the next round, based on the last approval."""

    def add_checkpoint(self, new: NewCheckpoint) -> Checkpoint:
        """Add a checkpoint with the next sequence number. `InvalidIntent` if its name is already
        used in its session."""

    def remove_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """Delete the row; children get its parent.

        A restore record that referred to it becomes independent: it restores from nothing. A
        session whose approved checkpoint it was has none."""

    def replace_checkpoint(self, changed: Checkpoint) -> None:
        """Replace a row's content. Its id, session, parent and sequence number stay."""

    def add_operation(self, new: NewOperation) -> Operation: ...

    def set_operation_note(self, sequence: int, note: str) -> None:
        """Replace the note of a log entry. A new entry is added in the same transaction."""

    def set_setting(self, key: str, value_json: str | None) -> None:
        """Store a setting of this workspace; None removes it."""

    def set_current_session(self, session_id: SessionId) -> None: ...


class CatalogReader(Protocol):
    """Read access to the catalog."""

    def sessions(self) -> Sequence[Session]:
        """All sessions, oldest first."""

    def session(self, session_id: SessionId) -> Session | None: ...

    def current_session(self) -> SessionId | None: ...

    def checkpoint(
        self, session_id: SessionId | None, checkpoint_id: str | None
    ) -> Checkpoint | None:
        """A checkpoint by its id; None if there is none, or if the id is None, because a parent may
        be missing."""

    def checkpoint_named(self, session_id: SessionId, name: str) -> Checkpoint | None: ...

    def checkpoints_named(self, name: str) -> Sequence[Checkpoint]:
        """Checkpoints of all sessions with this name, newest first. A name is unique within a
        session."""

    def checkpoints_with_prefix(
        self, session_id: SessionId | None, prefix: str, limit: int
    ) -> Sequence[Checkpoint]: ...

    def first_checkpoint(self, session_id: SessionId | None) -> Checkpoint | None:
        """The oldest one that is not a record, of a session or of the workspace."""

    def checkpoint_at(self, session_id: SessionId | None, at_ns: int) -> Checkpoint | None:
        """The newest checkpoint by sequence, without records, whose time is not after `at_ns`."""

    def history(
        self,
        session_id: SessionId | None,
        *,
        limit: int | None = None,
        records: bool = False,
        before: int | None = None,
    ) -> Sequence[Checkpoint]:
        """Newest first; `before` is the sequence number to continue from."""

    def outline(
        self, session_id: SessionId, *, limit: int, before: int | None = None
    ) -> Sequence[Outline]:
        """Newest first, including records, with only the fields that a timeline shows. Fast, and
        not checked for damage like other reads."""

    def milestones(self, session_id: SessionId) -> Sequence[Milestone]:
        """All checkpoints of a session, oldest first, including records. Fast, and not checked for
        damage like other reads."""

    def operations(
        self,
        session_id: SessionId,
        *,
        kinds: Sequence[OperationKind] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Operation]:
        """Oldest first; only of some kinds, and only after a sequence number."""

    def restores_since(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Operation]:
        """Restores by any session since a session began, oldest first, after a sequence number. The
        session's first operation is its beginning."""

    def checkpoints_after(self, sequence: int, limit: int) -> Sequence[Checkpoint]:
        """Checkpoints of all sessions, including records, in order; fewer than `limit` only at the
        end. Reachability and indexes are computed page by page."""

    def operations_after(self, sequence: int, limit: int) -> Sequence[Operation]:
        """Operations of all sessions, in order."""

    def operations_before(
        self, sequence: int | None, limit: int, *, kinds: Sequence[OperationKind]
    ) -> Sequence[Operation]:
        """Operations of all sessions, newest first: the newest of these kinds, or those before a
        number."""

    def newest_operation(self) -> Operation | None:
        """The last entry of the log. While it stays the same, nothing has changed."""

    def latest_operation(
        self, session_id: SessionId, *, other_than: Sequence[OperationKind]
    ) -> Operation | None:
        """A session's operation with the latest time, without those of some kinds. Clocks can be
        set back, so it need not be the newest."""

    def operation_with_token(self, token: str) -> Operation | None: ...

    def counts(self, session_id: SessionId | None = None) -> CatalogCounts: ...

    def count(
        self, session_id: SessionId, kinds: Sequence[Kind], *, since_ns: int | None = None
    ) -> int:
        """How many checkpoints of these kinds a session has, made after `since_ns`."""

    def count_in_round(
        self, session_id: SessionId, number: int, *, leading_to: str | None = None
    ) -> int:
        """How many checkpoints, without records, a round has. With `leading_to`, only that
        checkpoint and its ancestors within the round."""

    def newest_of(self, session_id: SessionId, kinds: Sequence[Kind]) -> Checkpoint | None:
        """The newest checkpoint of these kinds, by sequence."""

    def settings(self) -> Mapping[str, str]:
        """Settings as JSON, by key."""

    def close(self) -> None: ...


class Catalog(CatalogReader, Protocol):
    """Read and write access to the catalog."""

    def transaction(self) -> AbstractContextManager[CatalogTransaction]: ...

    def erase_traces(self) -> None:
        """Remove all traces of deleted or replaced rows from the disk; `Busy` if a reader prevents
        it."""

    def check(self) -> Iterator[str]:
        """Problems in the catalog's own structure."""


def all_checkpoints(catalog: CatalogReader) -> Iterator[Checkpoint]:
    """Every checkpoint of every session, oldest first, page by page: they may not fit into memory.
    Without the store's lock, it may miss those that are added or deleted meanwhile."""
    last = 0
    while page := catalog.checkpoints_after(last, _CHECKPOINTS_AT_ONCE):
        yield from page
        if len(page) < _CHECKPOINTS_AT_ONCE:
            return
        last = page[-1].sequence


def all_operations(catalog: CatalogReader, session_id: SessionId) -> Iterator[Operation]:
    """A session's operations, oldest first, page by page."""
    last = 0
    while page := catalog.operations(session_id, after=last, limit=_OPERATIONS_AT_ONCE):
        yield from page
        if len(page) < _OPERATIONS_AT_ONCE:
            return
        last = page[-1].sequence
