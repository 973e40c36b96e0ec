"""Sessions, checkpoints, operations and settings: everything about content except the content.

    CatalogReader ← Catalog, whose `transaction` makes a CatalogTransaction

Reading is a separate port, so rows can be read from a place that only receives them. Reads need no
lock and see the last finished transaction. Where a lookup takes a session or None, None means all
sessions of the workspace.

Writes happen inside `transaction`, under the store's writer lock; either everything of one
transaction is durable when the block ends, or nothing of it is ever seen (I3). Sequence numbers are
given out by the catalog and rise.
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


@dataclass(frozen=True, slots=True)
class NewOperation:
    """An operation before the catalog has given it a place in the order.

    `token` names the attempt that made it, so that recovery can tell whether it was recorded.
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
        """The next stretch of work begins, on top of what is approved now."""

    def add_checkpoint(self, new: NewCheckpoint) -> Checkpoint:
        """Give it the next sequence number. A name already used in its session: `InvalidIntent`."""

    def remove_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        """Drop the row; children take over its parent. A restore record that referred to it is
        independent from now on: it restores from nothing. A session whose approved checkpoint it
        was has none."""

    def replace_checkpoint(self, changed: Checkpoint) -> None:
        """Let a row say something else from now on; its id, session, parent and place stay."""

    def add_operation(self, new: NewOperation) -> Operation: ...

    def set_operation_note(self, sequence: int, note: str) -> None:
        """Let an entry of the log say something else from now on. One is added behind it in the
        same transaction."""

    def set_setting(self, key: str, value_json: str | None) -> None:
        """Store a setting of this workspace; None removes it."""

    def set_current_session(self, session_id: SessionId) -> None: ...


class CatalogReader(Protocol):
    """The record of what was saved."""

    def sessions(self) -> Sequence[Session]:
        """All sessions, oldest first."""

    def session(self, session_id: SessionId) -> Session | None: ...

    def current_session(self) -> SessionId | None: ...

    def checkpoint(
        self, session_id: SessionId | None, checkpoint_id: str | None
    ) -> Checkpoint | None:
        """By its id; None where there is none, and for no id: a parent may be missing."""

    def checkpoint_named(self, session_id: SessionId, name: str) -> Checkpoint | None: ...

    def checkpoints_named(self, name: str) -> Sequence[Checkpoint]:
        """Of all sessions, newest first: a name is taken once in a session."""

    def checkpoints_with_prefix(
        self, session_id: SessionId | None, prefix: str, limit: int
    ) -> Sequence[Checkpoint]: ...

    def first_checkpoint(self, session_id: SessionId) -> Checkpoint | None:
        """The oldest one that is not a record."""

    def checkpoint_at(self, session_id: SessionId | None, at_ns: int) -> Checkpoint | None:
        """The newest by sequence, records apart, whose wall-clock time is not after `at_ns`."""

    def history(
        self,
        session_id: SessionId | None,
        *,
        limit: int | None = None,
        records: bool = False,
        before: int | None = None,
    ) -> Sequence[Checkpoint]:
        """Newest first; `before` is a sequence number to page on from."""

    def outline(
        self, session_id: SessionId, *, limit: int, before: int | None = None
    ) -> Sequence[Outline]:
        """Newest first, records included, only what a timeline shows: quick, and not checked for
        damage as other reads are."""

    def milestones(self, session_id: SessionId) -> Sequence[Milestone]:
        """All of a session, oldest first, records included: quick, and not checked for damage as
        other reads are."""

    def roots(self) -> Iterator[Checkpoint]:
        """Every checkpoint of every session, for reachability, oldest first: an iterator over one
        state, since there may be more of them than fit into memory."""

    def operations(
        self,
        session_id: SessionId,
        *,
        kinds: Sequence[OperationKind] | None = None,
        after: int = 0,
    ) -> Sequence[Operation]:
        """Oldest first; those of some kinds only, and only what came after a sequence number."""

    def restores_since(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Operation]:
        """What took the workspace back since a session began, made by any session, oldest first:
        those that came after a sequence number. The session's first operation is its beginning."""

    def checkpoints_after(self, sequence: int, limit: int) -> Sequence[Checkpoint]:
        """Of all sessions, records included, in order: how an index catches up."""

    def operations_after(self, sequence: int, limit: int) -> Sequence[Operation]:
        """Of all sessions, in order."""

    def operations_before(
        self, sequence: int | None, limit: int, *, kinds: Sequence[OperationKind]
    ) -> Sequence[Operation]:
        """Of all sessions, newest first: the newest of these kinds, or those before a number."""

    def newest_operation(self) -> Operation | None:
        """The last entry of the log: as long as it is the same, nothing has changed."""

    def latest_operation(
        self, session_id: SessionId, *, other_than: Sequence[OperationKind]
    ) -> Operation | None:
        """The operation of a session with the latest time, which need not be the newest: clocks
        can be set back. Those of some kinds do not count."""

    def operation_with_token(self, token: str) -> Operation | None: ...

    def counts(self, session_id: SessionId | None = None) -> CatalogCounts: ...

    def count(
        self, session_id: SessionId, kinds: Sequence[Kind], *, since_ns: int | None = None
    ) -> int:
        """How many checkpoints of these kinds a session has, made after `since_ns`."""

    def count_in_round(
        self, session_id: SessionId, number: int, *, leading_to: str | None = None
    ) -> int:
        """How many checkpoints, records apart, a round of a session has; with `leading_to`, only
        that checkpoint and those that it grew from, back to where the round began."""

    def newest_of(self, session_id: SessionId, kinds: Sequence[Kind]) -> Checkpoint | None:
        """The newest by sequence of these kinds."""

    def settings(self) -> Mapping[str, str]:
        """Key to value as JSON."""

    def close(self) -> None: ...


class Catalog(CatalogReader, Protocol):
    """The place where the record becomes durable."""

    def transaction(self) -> AbstractContextManager[CatalogTransaction]: ...

    def erase_traces(self) -> None:
        """Leave nothing of removed or replaced rows on the medium; `Busy` when a reader keeps it
        from that."""

    def check(self) -> Iterator[str]:
        """Problems of the catalog's own structure."""
