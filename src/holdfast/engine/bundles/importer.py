"""Importing a bundle into a store.

    verify the whole file → lock → compare with the store → objects durable, not yet referenced
    → one transaction: sessions, checkpoints, operations → messages and annotations

Guarantees: a refused bundle causes no visible change. A crash leaves at worst objects that the next
collection deletes (I1, I3, I5). Existing data is never changed: existing checkpoints are skipped.
Importing again adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.domain.bundles.rows import Origin
from holdfast.domain.errors import BudgetReached, ForeignBundle, NoSpace
from holdfast.domain.ids import CheckpointId, SessionId, WorkspaceId
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import Round, RoundStatus
from holdfast.engine.bundles.objects import MOST_TIMES_THE_BUDGET
from holdfast.engine.bundles.placement import ImportPlan, homes_of, import_story, plan_import
from holdfast.engine.bundles.verifier import VerifiedBundle, verified_bundle
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.stored_objects import Item, store_chained
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.ports.filesystem import DISK_RESERVE_BYTES, Filesystem
from holdfast.ports.progress import NoProgress, Progress


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """`as_session` imports the bundle's only session under another name. `foreign` accepts a bundle
    from another workspace."""

    path: Path
    as_session: SessionId | None = None
    foreign: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What was (or would be) added, and what the store already had. `told` counts the added
    messages and annotations."""

    origin: Origin
    sessions: tuple[SessionId, ...]
    added: tuple[CheckpointId, ...]
    already_there: int
    renamed: int
    stored_bytes: int
    latest: CheckpointId
    latest_session: SessionId
    told: int = 0


def import_bundle(
    vault: Vault, request: ImportRequest, *, progress: Progress | None = None
) -> ImportOutcome:
    """Called without the lock, because verifying can take long and must not block others."""
    progress = progress or NoProgress()
    with verified_bundle(
        vault.fs,
        request.path,
        accept=partial(_require_home, vault.workspace_id, request),
        most_bytes=vault.settings.budget * MOST_TIMES_THE_BUDGET,
        progress=progress,
    ) as bundle:
        with vault.lock.hold(read_only=request.dry_run):
            plan = plan_import(vault, bundle, request.as_session)
            if bundle.story_bytes:
                require_room(vault, bundle.story_bytes)
            stored_bytes = 0
            if plan.rows and not request.dry_run:
                _forget_damaged(vault, bundle)
                stored_bytes = _store_objects(vault, bundle, progress)
                _record(vault, plan)
            told = 0 if request.dry_run else import_story(vault, bundle, plan)
        return ImportOutcome(
            bundle.origin,
            plan.sessions,
            tuple(row.id for row in plan.rows),
            plan.already_there,
            sum(old != new for old, new in plan.ids.items()),
            stored_bytes,
            plan.latest,
            plan.latest_session,
            told,
        )


def verify_for_new_store(
    fs: Filesystem, request: ImportRequest, *, budget_bytes: int, progress: Progress
) -> ImportOutcome:
    """What an import into a workspace without a store would add. Called first, so that a refused
    file does not leave an empty store behind."""
    with verified_bundle(
        fs,
        request.path,
        accept=partial(_require_home, None, request),
        most_bytes=budget_bytes * MOST_TIMES_THE_BUDGET,
        progress=progress,
    ) as bundle:
        homes = homes_of(bundle, request.as_session)
        rows = list(bundle.checkpoints())
        latest = bundle.origin.latest
        at = next(row.session_id for row in rows if row.id == latest)
        added = tuple(row.id for row in rows)
        return ImportOutcome(
            bundle.origin, tuple(homes.values()), added, 0, 0, 0, latest, homes[at]
        )


def _require_home(home: WorkspaceId | None, request: ImportRequest, origin: Origin) -> None:
    if request.foreign or origin.workspace_id == home:
        return
    raise ForeignBundle(
        f"the file comes from another workspace, {origin.workspace} ({origin.workspace_id})",
        hint="to import it anyway, add --foreign",
    )


def _forget_damaged(vault: Vault, bundle: VerifiedBundle) -> None:
    """Forget stored objects that cannot be read, so that the bundle replaces them."""
    named = set(bundle.digests())
    held = named - vault.objects.missing(named)
    readable = {d for d, _ in vault.objects.read_many(held, skip_unreadable=True)}
    if damaged := held - readable:
        vault.objects.forget(damaged)


def _store_objects(vault: Vault, bundle: VerifiedBundle, progress: Progress) -> int:
    """Make every object durable; none is referenced yet."""

    def items() -> Iterator[Item]:
        for number, item in enumerate(bundle.objects()):
            progress.advance("importing", number, bundle.origin.objects)
            yield item

    try:
        return store_chained(vault.objects, items(), limit_bytes=_room(vault))
    except NoSpace:
        raise _no_room(vault) from None


def _room(vault: Vault) -> int:
    budget_left = vault.settings.budget - vault.space.size_bytes()
    left = min(budget_left, vault.space.free_bytes() - DISK_RESERVE_BYTES)
    if left <= 0:
        raise _no_room(vault)
    return left


def _no_room(vault: Vault) -> NoSpace:
    if vault.settings.budget - vault.space.size_bytes() > vault.space.free_bytes():
        return NoSpace(
            "not enough free disk space for the import",
            hint="free some disk space, or move the store: set HOLDFAST_HOME",
        )
    return BudgetReached(
        f"the import does not fit into the store's budget of {vault.settings.budget} bytes",
        hint=(
            "raise it: holdfast config set budget 10GB; or delete checkpoints: holdfast delete REF"
        ),
    )


def _record(vault: Vault, plan: ImportPlan) -> None:
    now_ns = vault.clock.now_ns()
    with vault.catalog.transaction() as transaction:
        for session in plan.new_sessions:
            transaction.add_session(session)
            for one in plan.rounds[session.id]:
                transaction.add_operation(_round_end(session.id, one, now_ns))
        for row in plan.rows:
            transaction.add_checkpoint(row)
            transaction.add_operation(
                NewOperation(OperationKind.IMPORT, row.session_id, now_ns, checkpoint=row.id)
            )
        if vault.catalog.current_session() is None:
            transaction.set_current_session(plan.latest_session)


def _round_end(session_id: SessionId, ended: Round, now_ns: int) -> NewOperation:
    """The log entry for a round that ended before its session was imported."""
    at_ns = now_ns if ended.ended_at_ns is None else ended.ended_at_ns
    if ended.status is RoundStatus.MERGED:
        return NewOperation(
            OperationKind.APPROVE,
            session_id,
            at_ns,
            checkpoint=ended.approved,
            note=ended.message,
        )
    return NewOperation(OperationKind.ABANDON, session_id, at_ns, safety=ended.head)
