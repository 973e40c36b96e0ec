"""Frees space in a store whose budget is used up, without ending any session's protection.

    1. expired checkpoints; if all stores together are too large, the same three steps in other
       stores, least recently used first
    2. automatic checkpoints of sessions inactive for a day; oldest day first and, within a day,
       those with the most bytes of their own first
    3. the other checkpoints of ended sessions, oldest first: initial ones and HEADs, the ends of
       abandoned rounds, and those needed for undo

Guarantees: manual, named, annotated and approved checkpoints are never deleted. Neither is anything
of a session that was active in the last 24 hours, nor the newest checkpoint of the workspace. Each
remaining state is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.retention import Decision
from holdfast.domain.sessions import SessionStatus
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.wording import Remark, count_words
from holdfast.engine.retention.cleanup import confirmed_now_ns, decisions, drop, mark, reachable
from holdfast.engine.retention.protection import (
    annotated,
    last_activity_ns,
    open_edits,
    protection_reasons,
    recent_sessions,
)
from holdfast.engine.save.space_limit import SpaceLimit
from holdfast.engine.sessions.active_agents import effective_status
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_DAY_NS = 24 * 3600 * 1_000_000_000
_ENDED_AFTER_NS = 7 * _DAY_NS
"""A session that was never ended counts as ended after this long without use."""

_HEADROOM = 20
"""One part in this many of the budget is freed in addition, so that not every save must."""

_LEAST_WASTE_SHARE = 50
"""Share of a store's size: rewriting packs for less is not worth it."""

_ROUNDS = 3
REASON = "the disk budget is used up"


@dataclass(frozen=True, slots=True)
class Room:
    """The checkpoints deleted by retention, and to stay within the budget."""

    expired: tuple[Decision, ...] = ()
    evicted: tuple[Decision, ...] = ()

    def describe(self) -> tuple[str, ...]:
        said = []
        if self.expired:
            said.append(f"Removed {count_words(len(self.expired), 'expired checkpoint')}")
        if self.evicted:
            said.append(f"Removed {count_words(len(self.evicted), 'old automatic checkpoint')}")
        return tuple(Remark(f"{one} to stay within the disk budget") for one in said)


def make_room(vault: Vault, needed_bytes: int) -> Room:
    """With the store's lock held. Records a failure to free enough, so that not every save tries
    again. A damaged store frees nothing, and saves continue."""
    expired: tuple[Decision, ...] = ()
    evicted: tuple[Decision, ...] = ()
    try:
        expired = drop(vault, decisions(vault, confirmed_now_ns(vault)))
        _collect(vault, needed_bytes)
        limit = SpaceLimit(vault)
        if limit.is_total and limit.budget_left < needed_bytes:
            vault.evict_from_other_stores(needed_bytes)
        for _ in range(_ROUNDS):
            missing = needed_bytes - SpaceLimit(vault).budget_left
            if missing <= 0:
                break
            going = choose(vault, missing + vault.settings.budget // _HEADROOM)
            if not going:
                break
            evicted += drop(vault, [Decision(one, keep=False, reason=REASON) for one in going])
            _collect(vault, needed_bytes)
    except StoreDamaged:
        pass
    if SpaceLimit(vault).budget_left < needed_bytes:
        vault.space.note_upkeep(no_room_ns=vault.clock.now_ns())
    return Room(expired, evicted)


def _collect(vault: Vault, needed_bytes: int) -> None:
    """Packs with little waste are rewritten only if that frees the missing space."""
    needed = reachable(vault)
    vault.objects.retain_only(needed)
    vault.space.fold_logs()
    missing = needed_bytes - SpaceLimit(vault).budget_left
    waste = vault.objects.unneeded_bytes(needed)
    if missing > 0 and waste > vault.space.size_bytes() // _LEAST_WASTE_SHARE:
        vault.objects.retain_only(needed, thorough=True)
        vault.space.fold_logs()


def over_budget(engine: Engine) -> list[Checkpoint]:
    """Checkpoints to delete so that the store fits its budget; manual ones of ended sessions come
    last. The user decides. Changes nothing."""
    with engine.recovered(read_only=True):
        missing = -SpaceLimit(engine.vault).budget_left
        return choose(engine.vault, missing, chosen_too=True) if missing > 0 else []


def evict(engine: Engine, checkpoints: Sequence[Checkpoint]) -> tuple[int, int]:
    """Delete checkpoints that the user agreed to; returns their count and the bytes freed.
    Checkpoints that are protected by now, for example in an active session, stay."""
    vault = engine.vault
    with engine.recovered(required=True):
        before = vault.space.size_bytes()
        agreed = {one.id for one in checkpoints}
        groups = _evictable(vault, list(all_checkpoints(vault.catalog)), chosen_too=True)
        going = [one for group in groups for one in group if one.id in agreed]
        drop(vault, [Decision(one, keep=False, reason=REASON) for one in going])
        _collect(vault, 0)
        return len(going), before - vault.space.size_bytes()


def choose(vault: Vault, missing_bytes: int, *, chosen_too: bool = False) -> list[Checkpoint]:
    """The checkpoints to delete to free this many bytes; all evictable ones if not enough."""
    checkpoints = list(all_checkpoints(vault.catalog))
    automatic, ended = _evictable(vault, checkpoints, chosen_too=chosen_too)
    going = {one.id for one in (*automatic, *ended)}
    if not going:
        return []
    sizes = dict(vault.objects.stored_sizes())
    kept: set[Digest] = set()
    mark(vault, (one for one in checkpoints if one.id not in going), kept)
    now_ns, weights = vault.clock.now_ns(), _Weights(vault, kept, sizes)
    automatic.sort(key=lambda one: (-_days(one, now_ns), -weights.of(one.tree), one.sequence))
    order = automatic + ended
    free = sum(sizes.values()) - sum(sizes.get(digest, 0) for digest in kept)
    # From the last in order: spare each one that is not needed to free enough.
    while order:
        fresh = _Fresh(kept)
        mark(vault, (order[-1],), fresh)
        held = sum(sizes.get(digest, 0) for digest in fresh if digest not in kept)
        if held and free - held < missing_bytes:
            break
        free -= held
        kept |= fresh
        order.pop()
    return order


def _evictable(
    vault: Vault, checkpoints: Sequence[Checkpoint], *, chosen_too: bool
) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """Automatic checkpoints, then other checkpoints of ended sessions in deletion order."""
    recent, ended = recent_sessions(vault, vault.clock.now_ns()), _ended(vault)
    by_people, held = _chosen_by_people(vault), protection_reasons(vault)
    newest = max(checkpoints, key=lambda one: one.sequence, default=None)
    automatic: list[Checkpoint] = []
    last: list[Checkpoint] = []
    chosen: list[Checkpoint] = []
    for one in checkpoints:
        if one.session_id in recent or one is newest:
            continue
        if one.kind is Kind.MANUAL or one.name is not None or one.id in by_people:
            chosen += [one] if chosen_too and one.session_id in ended else []
        elif one.kind is not Kind.INITIAL and one.id not in held:
            automatic.append(one)
        elif one.session_id in ended:
            last.append(one)
    for group in (last, chosen):
        group.sort(key=lambda one: (ended[one.session_id], one.sequence))
    return automatic, last + chosen


def _days(checkpoint: Checkpoint, now_ns: int) -> int:
    return (now_ns - checkpoint.created_at_ns) // _DAY_NS


def _ended(vault: Vault) -> dict[SessionId, int]:
    """Ended sessions, each with the time of its last activity."""
    now_ns = vault.clock.now_ns()
    found = {}
    for session in vault.catalog.sessions():
        last_ns = last_activity_ns(vault, session.id)
        is_active = effective_status(vault, session) is SessionStatus.ACTIVE
        if not is_active or now_ns - last_ns > _ENDED_AFTER_NS:
            found[session.id] = last_ns
    return found


def _chosen_by_people(vault: Vault) -> set[CheckpointId]:
    """Approved and annotated states, and the checkpoints of unfinished edits."""
    kept = {*annotated(vault), *open_edits(vault)}
    for session in vault.catalog.sessions():
        approvals = vault.catalog.operations(session.id, kinds=(OperationKind.APPROVE,))
        approved = (session.approved, *(one.checkpoint for one in approvals))
        kept |= {one for one in approved if one is not None}
    return kept


class _Fresh(set[Digest]):
    """A set that also claims to contain everything in `known`."""

    def __init__(self, known: set[Digest]) -> None:
        super().__init__()
        self._known = known

    def __contains__(self, digest: object) -> bool:
        return digest in self._known or super().__contains__(digest)


class _Weights:
    """The bytes of a state that no kept state needs; each tree is visited once."""

    def __init__(self, vault: Vault, kept: set[Digest], sizes: Mapping[Digest, int]) -> None:
        self._vault = vault
        self._kept = frozenset(kept)
        self._sizes = sizes
        self._known: dict[Digest, int] = {}

    def of(self, top: Digest) -> int:
        pending = [top]
        while pending:
            digest = pending[-1]
            if digest in self._kept or digest in self._known:
                pending.pop()
                continue
            tree = self._vault.load_tree(digest)
            below = [entry.digest for entry in tree.directories if entry.digest not in self._kept]
            if unknown := [one for one in below if one not in self._known]:
                pending += unknown
                continue
            self._known[digest] = sum(self._known[one] for one in below) + sum(
                self._file(entry) for entry in tree.files
            )
        return self._known.get(top, 0)

    def _file(self, entry: FileEntry) -> int:
        named = entry.chunks or entry.digest
        if named in self._kept:
            return 0
        return entry.size if entry.chunks is not None else self._sizes.get(named, 0)
