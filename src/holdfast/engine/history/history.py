"""HEAD, and the history of the workspace or of some paths, within a time range.

HEAD is the current checkpoint:

    of a session: its newest state, with the records of restores looked through
    of the workspace, from the newest entry of the log that saved or restored, by any session:
      a checkpoint                       that one
      a restore to a checkpoint          that one
      a restore to a safety checkpoint   HEAD as it was when that was made: so it is after an undo
      a restore of some paths            HEAD as it was before
      one that was deleted               HEAD of its session, if that is left with any checkpoint

Imported checkpoints do not count for the workspace, because it was never at them. If there is
nothing else, HEAD is that of the current session.

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
"""Operations that say what the workspace held at that moment."""
_FIRST_CHUNK = 2
"""The newest operation nearly always decides."""
_CHUNK = 50
_PAGE = 200
_CACHED = 1_000
_MOST_LOOKED_AT = 5_000


def head_checkpoint(vault: Vault, session_id: SessionId | None) -> Checkpoint | None:
    """The checkpoint that HEAD means in a session or, without one, in the workspace."""
    if session_id is not None:
        return _of_session(vault, session_id)
    wanted: CheckpointId | None = None
    for number, operation in enumerate(_newest_first(vault)):
        if operation.checkpoint is None or wanted not in (None, operation.checkpoint):
            continue
        made, wanted = vault.catalog.checkpoint(None, operation.checkpoint), None
        if made is None and number == 0:  # deleted: its session knows its parent
            made = _of_session(vault, operation.session_id)
            if made is None and vault.catalog.history(operation.session_id, limit=1):
                return None  # the work there is at none of those that are left
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
    """A restore record whose target was deleted is the only one left with that state. After a
    restore of some paths HEAD stays where it was, whatever became of the target."""
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
    """Of one session or of all, with the records of restores or without. Kinds that are asked for
    by name may be records, too."""

    session_id: SessionId | None = None
    records: bool = False
    paths: Sequence[bytes] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    kinds: tuple[Kind, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether it asks for less than everything."""
        limited = self.since_ns is not None or self.until_ns is not None
        return limited or bool(self.paths or self.kinds)

    def wants(self, one: Checkpoint) -> bool:
        """As far as the checkpoint itself tells."""
        return (
            (self.session_id is None or one.session_id == self.session_id)
            and (not self.kinds or one.kind in self.kinds)
            and (self.records or one.kind in self.kinds or not one.kind.is_record)
            and (self.since_ns is None or one.created_at_ns >= self.since_ns)
            and (self.until_ns is None or one.created_at_ns <= self.until_ns)
        )


def history(vault: Vault, wanted: HistoryFilter, limit: int | None) -> tuple[list[Checkpoint], int]:
    """Newest first, and how many more there are."""
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
    """The newest checkpoint of any session that has the path, records of restores included, among
    the latest few thousand. Damaged ones are passed over."""
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
    """Of every session, records included, newest first; None behind the first one ever."""
    before: int | None = None
    while page := vault.catalog.history(None, limit=_PAGE, records=True, before=before):
        yield from page
        before = page[-1].sequence
    yield None
