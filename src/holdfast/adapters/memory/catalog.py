"""The catalog in memory: the smallest implementation of the contract; for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from holdfast.domain.checkpoints import Checkpoint, Kind, Milestone, NewCheckpoint
from holdfast.domain.errors import InvalidIntent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.timeline.timeline import Outline
from holdfast.ports.catalog import (
    CatalogCounts,
    NewOperation,
)

_OUTLINE = attrgetter(
    *("sequence", "id", "parent", "kind", "created_at_ns", "intent.reasoning", "name"),
    *("intent.confidence", "changed.added", "changed.modified", "changed.removed"),
    *("restores_from", "partial", "message_index", "tool_use_id", "round"),
)


@dataclass(slots=True, eq=False)
class _State:
    """Everything, so that a transaction is a copy; compared by identity."""

    sessions: dict[SessionId, Session] = field(default_factory=dict)
    checkpoints: dict[CheckpointId, Checkpoint] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    current_session: SessionId | None = None
    last_sequence: int = 0

    def copy(self) -> _State:
        """Rows are immutable, so only their lists have to be copied."""
        return _State(*(copy(getattr(self, name)) for name in _State.__dataclass_fields__))


class MemoryTransaction:
    def __init__(self, state: _State) -> None:
        self._state = state

    def add_session(self, session: Session) -> None:
        self._state.sessions[session.id] = session

    def set_session_status(self, session_id: SessionId, status: SessionStatus) -> None:
        self._change(session_id, status=status)

    def set_session_title(self, session_id: SessionId, title: str | None) -> None:
        self._change(session_id, title=title)

    def set_head(self, session_id: SessionId, head: CheckpointId | None) -> None:
        self._change(session_id, head=head)

    def start_round(
        self, session_id: SessionId, number: int, *, approved: CheckpointId | None
    ) -> None:
        self._change(session_id, round=number, approved=approved)

    def _change(self, session_id: SessionId, **fields: Any) -> None:
        sessions = self._state.sessions
        sessions[session_id] = replace(sessions[session_id], **fields)

    def add_checkpoint(self, new: NewCheckpoint) -> Checkpoint:
        name = new.intent.checkpoint_name
        for other in self._state.checkpoints.values():
            if name is not None and (other.session_id, other.name) == (new.session_id, name):
                raise InvalidIntent(f"the session already has a checkpoint named {name!r}")
        fields = {key: getattr(new, key) for key in NewCheckpoint.__dataclass_fields__}
        checkpoint = Checkpoint(sequence=self._next(), **fields)
        self._state.checkpoints[checkpoint.id] = checkpoint
        return checkpoint

    def remove_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        removed = self._state.checkpoints.pop(checkpoint_id)
        for other in list(self._state.checkpoints.values()):
            if other.parent == checkpoint_id:
                is_restore = other.kind is Kind.RESTORE
                self._state.checkpoints[other.id] = replace(
                    other,
                    parent=removed.parent,
                    restores_from=None if is_restore else other.restores_from,
                )

        for session in list(self._state.sessions.values()):
            if session.approved == checkpoint_id:
                self._state.sessions[session.id] = replace(session, approved=None)

    def replace_checkpoint(self, changed: Checkpoint) -> None:
        old = self._state.checkpoints[changed.id]
        self._state.checkpoints[changed.id] = replace(
            changed, sequence=old.sequence, session_id=old.session_id, parent=old.parent
        )

    def add_operation(self, new: NewOperation) -> Operation:
        fields = {key: getattr(new, key) for key in NewOperation.__dataclass_fields__}
        operation = Operation(sequence=self._next(), **fields)
        self._state.operations.append(operation)
        return operation

    def set_operation_note(self, sequence: int, note: str) -> None:
        self._state.operations[:] = [
            replace(one, note=note) if one.sequence == sequence else one
            for one in self._state.operations
        ]

    def set_setting(self, key: str, value_json: str | None) -> None:
        if value_json is None:
            self._state.settings.pop(key, None)
        else:
            self._state.settings[key] = value_json

    def set_current_session(self, session_id: SessionId) -> None:
        self._state.current_session = session_id

    def _next(self) -> int:
        self._state.last_sequence += 1
        return self._state.last_sequence


class MemoryCatalog:
    """See `holdfast.ports.catalog.Catalog` for the contract of each member."""

    def __init__(self) -> None:
        self._state = _State()

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        draft = self._state.copy()
        yield MemoryTransaction(draft)
        self._state = draft

    def sessions(self) -> Sequence[Session]:
        return sorted(self._state.sessions.values(), key=lambda s: (s.created_at_ns, s.id))

    def session(self, session_id: SessionId) -> Session | None:
        return self._state.sessions.get(session_id)

    def current_session(self) -> SessionId | None:
        return self._state.current_session

    def checkpoint(
        self, session_id: SessionId | None, checkpoint_id: str | None
    ) -> Checkpoint | None:
        found = self._state.checkpoints.get(CheckpointId(checkpoint_id or ""))
        return found if found is not None and session_id in (None, found.session_id) else None

    def checkpoint_named(self, session_id: SessionId, name: str) -> Checkpoint | None:
        return next((c for c in self._of(session_id) if c.name == name), None)

    def checkpoints_named(self, name: str) -> Sequence[Checkpoint]:
        return [c for c in self._of(None) if c.name == name][::-1]

    def checkpoints_with_prefix(
        self, session_id: SessionId | None, prefix: str, limit: int
    ) -> Sequence[Checkpoint]:
        found = [c for c in self._of(session_id) if c.id.startswith(prefix)]
        return found[::-1][:limit]

    def first_checkpoint(self, session_id: SessionId | None) -> Checkpoint | None:
        return next((c for c in self._of(session_id) if not c.kind.is_record), None)

    def checkpoint_at(self, session_id: SessionId | None, at_ns: int) -> Checkpoint | None:
        found = [c for c in self._of(session_id) if c.created_at_ns <= at_ns]
        return next((c for c in found[::-1] if not c.kind.is_record), None)

    def history(
        self,
        session_id: SessionId | None,
        *,
        limit: int | None = None,
        records: bool = False,
        before: int | None = None,
    ) -> Sequence[Checkpoint]:
        found = [c for c in self._of(session_id) if records or not c.kind.is_record]
        return [c for c in found[::-1] if before is None or c.sequence < before][:limit]

    def outline(
        self, session_id: SessionId, *, limit: int, before: int | None = None
    ) -> Sequence[Outline]:
        rows = self.history(session_id, limit=limit, records=True, before=before)
        outlines = [Outline._make((*_OUTLINE(row), selection_of(row))) for row in rows]
        return [one._replace(reasoning=one.reasoning[:400]) for one in outlines]

    def milestones(self, session_id: SessionId) -> Sequence[Milestone]:
        rows = reversed(self.history(session_id, records=True))
        return [Milestone(row.sequence, row.id, row.kind, row.message_index) for row in rows]

    def operations(
        self,
        session_id: SessionId,
        *,
        kinds: Sequence[OperationKind] | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Sequence[Operation]:
        found = [op for op in self._state.operations if op.session_id == session_id]
        found = [op for op in found if op.sequence > after and (kinds is None or op.kind in kinds)]
        return found[:limit]

    def checkpoints_after(self, sequence: int, limit: int) -> Sequence[Checkpoint]:
        return [c for c in self._of(None) if c.sequence > sequence][:limit]

    def operations_after(self, sequence: int, limit: int) -> Sequence[Operation]:
        return [op for op in self._state.operations if op.sequence > sequence][:limit]

    def operations_before(
        self, sequence: int | None, limit: int, *, kinds: Sequence[OperationKind]
    ) -> Sequence[Operation]:
        found = [op for op in self._state.operations[::-1] if op.kind in kinds]
        return [op for op in found if sequence is None or op.sequence < sequence][:limit]

    def restores_since(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Operation]:
        done = self._state.operations
        began = min((op.sequence for op in done if op.session_id == session_id), default=None)
        if began is None:
            return []
        found = [
            op for op in done if op.kind in RESTORING_KINDS and op.sequence > max(began, after)
        ]
        return found if limit is None else found[:limit]

    def newest_operation(self) -> Operation | None:
        return self._state.operations[-1] if self._state.operations else None

    def latest_operation(
        self, session_id: SessionId, *, other_than: Sequence[OperationKind]
    ) -> Operation | None:
        found = [op for op in self.operations(session_id) if op.kind not in other_than]
        return max(found, key=lambda op: (op.at_ns, op.sequence), default=None)

    def operation_with_token(self, token: str) -> Operation | None:
        return next((op for op in self._state.operations if op.token == token), None)

    def counts(self, session_id: SessionId | None = None) -> CatalogCounts:
        kept = self._of(session_id)
        done = [op for op in self._state.operations if session_id in (None, op.session_id)]
        records = sum(c.kind.is_record for c in kept)
        restores = sum(op.kind in RESTORING_KINDS for op in done)
        return CatalogCounts(len(kept) - records, records, restores)

    def count(
        self, session_id: SessionId, kinds: Sequence[Kind], *, since_ns: int | None = None
    ) -> int:
        found = [c for c in self._of(session_id) if c.kind in kinds]
        return sum(since_ns is None or c.created_at_ns > since_ns for c in found)

    def count_in_round(
        self, session_id: SessionId, number: int, *, leading_to: str | None = None
    ) -> int:
        found = {c.id: c for c in self._of(session_id) if c.round == number}
        if leading_to is None:
            return sum(not c.kind.is_record for c in found.values())
        count, at = 0, found.pop(CheckpointId(leading_to), None)
        while at is not None:
            count += not at.kind.is_record
            at = found.pop(at.parent, None) if at.parent is not None else None
        return count

    def newest_of(self, session_id: SessionId, kinds: Sequence[Kind]) -> Checkpoint | None:
        return next((c for c in self._of(session_id)[::-1] if c.kind in kinds), None)

    def version(self) -> object:
        """Differs after every transaction."""
        return self._state

    def settings(self) -> Mapping[str, str]:
        return dict(self._state.settings)

    def erase_traces(self) -> None:
        return None

    def check(self) -> Iterator[str]:
        yield from ()

    def close(self) -> None:
        return None

    def _of(self, session_id: SessionId | None) -> list[Checkpoint]:
        found = sorted(self._state.checkpoints.values(), key=lambda c: c.sequence)
        return [c for c in found if session_id in (None, c.session_id)]
