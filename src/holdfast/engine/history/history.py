"""HEAD, and the history of the workspace or of some paths, within a time range.

HEAD is the current checkpoint:

    of a session: its newest state, following restore records to their targets
    of the workspace, from the newest log entry of any session that saved or restored:
      a checkpoint                       that one
      a restore to a checkpoint          that one
      a restore to a safety checkpoint   HEAD at the time of that one, as after an undo
      a restore of some paths            HEAD before it
      a deleted one                      HEAD of its session, if any checkpoint is left

Imported checkpoints do not count for the workspace, because it was never at them. Without any other
checkpoint, HEAD is that of the current session.

A checkpoint changed a path if its content differs from the previously saved state of any session.
Only trees are read, and only along the paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise, repeat

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.trees.entries import Entry
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass

MOVING_KINDS = (OperationKind.CHECKPOINT, *RESTORING_KINDS)
"""Operations that record the workspace's state at that moment."""
_FIRST_CHUNK = 2
"""The newest operation nearly always decides."""
_CHUNK = 50
_PAGE = 200
_CACHED = 1_000
_MOST_LOOKED_AT = 5_000


def head_checkpoint(vault: Vault, session_id: SessionId | None) -> Checkpoint | None:
    """The HEAD of a session or, if None, of the workspace."""
    if session_id is not None:
        return _of_session(vault, session_id)
    wanted: CheckpointId | None = None
    for number, operation in enumerate(_newest_first(vault)):
        if operation.checkpoint is None or wanted not in (None, operation.checkpoint):
            continue
        made, wanted = vault.catalog.checkpoint(None, operation.checkpoint), None
        if made is None and number == 0:  # deleted, but its session knows its parent
            made = _of_session(vault, operation.session_id)
            if made is None and vault.catalog.history(operation.session_id, limit=1):
                return None  # the session is at none of the remaining ones
        if made is None or made.kind is Kind.SAFETY or selection_of(made) is not None:
            continue
        if made.kind is not Kind.RESTORE:
            return made
        target = made.restores_from and vault.catalog.checkpoint(None, made.restores_from)
        if not target:
            return made
        if not target.kind.is_record:
            return target
        wanted = target.id
    current = vault.catalog.current_session()
    return None if current is None else _of_session(vault, current)


def has_lost_target(record: Checkpoint) -> bool:
    """A restore record whose target was deleted is the only one left with that state. A restore of
    some paths does not move HEAD, even if its target is deleted."""
    gone = record.kind is Kind.RESTORE and record.restores_from is None
    return gone and selection_of(record) is None


def _of_session(vault: Vault, session_id: SessionId) -> Checkpoint | None:
    session = vault.catalog.session(session_id)
    if session is None or session.head is None:
        return None
    at = vault.catalog.checkpoint(session_id, session.head)
    while at is not None and at.kind.is_record and not has_lost_target(at):
        at = vault.catalog.checkpoint(session_id, at.parent)
    return at


def _newest_first(vault: Vault) -> Iterator[Operation]:
    before: int | None = None
    for size in chain((_FIRST_CHUNK,), repeat(_CHUNK)):
        chunk = vault.catalog.operations_before(before, size, kinds=MOVING_KINDS)
        yield from chunk
        if len(chunk) < size:
            return
        before = chunk[-1].sequence


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """For one session or all, with or without restore records. Kinds requested by name may be
    records, too."""

    session_id: SessionId | None = None
    records: bool = False
    paths: Sequence[bytes] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    kinds: tuple[Kind, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether it filters anything."""
        limited = self.since_ns is not None or self.until_ns is not None
        return limited or bool(self.paths or self.kinds)

    def wants(self, one: Checkpoint) -> bool:
        """Decides by the checkpoint's own fields."""
        return (
            (self.session_id is None or one.session_id == self.session_id)
            and (not self.kinds or one.kind in self.kinds)
            and (self.records or one.kind in self.kinds or not one.kind.is_record)
            and (self.since_ns is None or one.created_at_ns >= self.since_ns)
            and (self.until_ns is None or one.created_at_ns <= self.until_ns)
        )


def history(vault: Vault, wanted: HistoryFilter, limit: int | None) -> tuple[list[Checkpoint], int]:
    """Newest first, and the number of further ones."""
    if not wanted.is_narrow:
        scope, records = wanted.session_id, wanted.records
        found = list(vault.catalog.history(scope, limit=limit, records=records))
        if limit is None or len(found) < limit:
            return found, 0
        counts = vault.catalog.counts(scope)
        total = counts.checkpoints + (counts.records if records else 0)
        return found, max(total - len(found), 0)
    matching = _matching(vault, wanted)
    found = list(islice(matching, limit))
    return found, sum(1 for _ in matching)


def newest_with(vault: Vault, path: bytes) -> Checkpoint | None:
    """The newest checkpoint of any session that has the path, including restore records, among the
    latest few thousand. Damaged ones are skipped."""
    looked_at: set[Digest] = set()
    for one in islice(_everything(vault), _MOST_LOOKED_AT):
        if one is None or one.tree in looked_at:
            continue
        looked_at.add(one.tree)
        try:
            if entry_at(vault.load_tree, one.tree, path) is not None:
                return one
        except StoreDamaged:
            continue
    return None


def _matching(vault: Vault, wanted: HistoryFilter) -> Iterator[Checkpoint]:
    @lru_cache(maxsize=_CACHED)
    def at(tree: Digest) -> tuple[Entry | None, ...]:
        return tuple(entry_at(vault.load_tree, tree, path) for path in wanted.paths)

    def changed(one: Checkpoint, before: Checkpoint | None) -> bool:
        if not wanted.paths:
            return True
        if before is None:
            return any(entry is not None for entry in at(one.tree))
        return one.tree != before.tree and at(one.tree) != at(before.tree)

    for one, before in pairwise(_everything(vault)):
        if one is not None and wanted.wants(one) and changed(one, before):
            yield one


def _everything(vault: Vault) -> Iterator[Checkpoint | None]:
    """All checkpoints of every session, including records, newest first; then None."""
    before: int | None = None
    while page := vault.catalog.history(None, limit=_PAGE, records=True, before=before):
        yield from page
        before = page[-1].sequence
    yield None
