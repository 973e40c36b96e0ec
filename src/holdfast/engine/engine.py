"""The use cases of one workspace that lock the store. Each first repairs unfinished work. Modules
that only some of them need are imported on first use, so that a save starts quickly."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.domain.checkpoints import Checkpoint, Kind, Position, Skipped
from holdfast.domain.errors import Busy, HoldfastError, StoreReadOnly
from holdfast.domain.ids import Digest, SessionId, short
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import OperationKind
from holdfast.domain.sessions import SessionStatus
from holdfast.engine.edits.running import wait_for_others, working_tools
from holdfast.engine.restore.directory_handles import needs_recovery
from holdfast.engine.save.save import NOWHERE, add_session, save
from holdfast.engine.scan.policy import FileFilter
from holdfast.engine.scan.scanner import RulesOf, Scan, Scanner
from holdfast.engine.vault import Vault, workspace_trouble
from holdfast.ports.catalog import NewOperation
from holdfast.ports.progress import Progress
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.domain.outcomes import (
        DeleteOutcome,
        RecoveredRestore,
        RestoreOutcome,
        SavedFirst,
        SaveOutcome,
    )
    from holdfast.domain.purges import PurgeOutcome
    from holdfast.domain.restore.plan import RestorePlan
    from holdfast.domain.retention import Decision
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.selection import ComponentChoice
    from holdfast.engine.purge.plan import PurgePlan, PurgeRequest, TextPurgePlan
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.retention.cleanup import CleanupOutcome, CleanupPlan
    from holdfast.engine.retention.deletion import DeletedSession
    from holdfast.engine.sessions.approval import ApproveOutcome
    from holdfast.engine.undo.causes import Loss
    from holdfast.engine.undo.undo import UndoStep
    from holdfast.ports.watcher import WorkspaceWatch

    _Outcome = TypeVar(
        "_Outcome",
        "SaveOutcome",
        "ApproveOutcome",
        "RestoreOutcome",
        "PurgeOutcome",
        "CleanupOutcome",
    )

_CLEANUP_EVERY_NS = 24 * 3600 * 1_000_000_000
_MOST_TIMES = 500


class Engine:
    """One per opened workspace; safe to use from several threads."""

    def __init__(self, vault: Vault, *, file_filter: FileFilter | None = None) -> None:
        self.vault = vault
        self.cleans_up = True
        """Whether saves run the daily cleanup when it is due. A daemon runs it on its own."""
        self.recovery: RecoveredRestore | None = None
        """The last interrupted restore that this engine finished or rolled back."""
        self.save_times_ns: deque[int] = deque(maxlen=_MOST_TIMES)
        """How long the last saves took, newest last; only in memory."""
        self._waits_for_tools = True
        self._unsettled: tuple[Skipped, ...] | None = None
        """Edits and tools that were still running when a caller stopped waiting for them."""
        # A filter is code, so its results cannot be reused by other callers.
        cache = None if file_filter is not None else vault.stat_cache
        self._scanner = Scanner(
            vault.fs, vault.objects, cache, vault.second_reader, vault.databases, file_filter
        )

    def for_environment(self, vault: Vault) -> Engine:
        """This engine for another caller: the same store and scanner, with the components and
        programs of `vault`."""
        return self._copy(vault=vault)

    def for_hooks(self) -> Engine:
        """This engine for saves that do not wait for agents' tools, such as saves by hooks."""
        return self._copy(_waits_for_tools=False)

    def after_waiting(self, inside: Collection[int] = ()) -> Engine:
        """This engine for a caller that is about to hold the lock over several steps. It waits for
        other edits and tools now; saves through the returned engine do not wait again."""
        tools = self._waits_for_tools
        return self._copy(_unsettled=wait_for_others(self.vault, inside, tools=tools))

    def _copy(self, **changes: Any) -> Engine:
        other = Engine.__new__(Engine)
        other.__dict__.update(self.__dict__, **changes)
        return other

    @contextmanager
    def recovered(self, *, looking: bool = False, required: bool = False) -> Iterator[str | None]:
        """Hold the store's lock, after repairing what a crash left unfinished. Yields the reason if
        the repair failed, or raises if it is `required`."""
        with self.vault.lock.hold(looking=looking):
            try:
                trouble = None
                if needs_recovery(self.vault):
                    from holdfast.engine.restore.recovery import try_recover

                    self.recovery, trouble = try_recover(
                        self.vault, self._scanner, required=required
                    )
                yield trouble
            except OSError as error:
                raise workspace_trouble(self.vault.workspace, error) from error

    def use_watch(self, watch: WorkspaceWatch) -> None:
        """Let saves visit only places where the watch saw changes. Restores still visit all."""
        self._scanner.watch = watch
        self._scanner.paranoid = self.vault.settings.watch == "paranoid"

    def finish_watching(self) -> None:
        """Hand the results of watched scans, so far only in memory, to the shared cache."""
        with suppress(Busy, StoreReadOnly), self.vault.lock.hold(wait=False):
            self._scanner.flush()

    def recover(self, *, required: bool = True) -> None:
        """Finish or roll back a restore that a crash interrupted. Unless `required`, a failure
        does not stop saves."""
        with self.recovered(required=required):
            return

    def recover_if_free(self) -> None:
        """Recover on opening, if possible. If another process holds the lock, the unfinished work
        is its own. In a read-only store recovery waits, and commands that read the workspace
        report it."""
        try:
            if not needs_recovery(self.vault):
                return
        except OSError as error:
            raise workspace_trouble(self.vault.workspace, error) from error
        with (
            suppress(Busy, StoreReadOnly),
            self.vault.lock.hold(wait=False),
            self.recovered(),
        ):
            return

    def save(
        self,
        session_id: SessionId,
        intent: SnapshotIntent,
        *,
        kind: Kind = Kind.MANUAL,
        position: Position = NOWHERE,
        reuse: bool = False,
        record_environment: bool = False,
        inside: Collection[int] = (),
    ) -> SaveOutcome:
        """Save the workspace: wait for others, lock, recover, save; then mirror, and clean up once
        a day. `inside` are the edits and attempts that the caller is part of."""
        unsettled = self._unsettled
        if unsettled is None:
            unsettled = wait_for_others(self.vault, inside, tools=self._waits_for_tools)
        begun_ns = self.vault.clock.monotonic_ns()
        with self.recovered() as trouble:
            outcome = save(
                self.vault,
                self._scanner,
                session_id,
                intent,
                kind=kind,
                position=position,
                reuse=reuse,
                record_environment=record_environment,
                unsettled=unsettled,
            )
            if trouble is not None:
                outcome = self._with_recovery_warning(trouble, outcome)
        self.save_times_ns.append(self.vault.clock.monotonic_ns() - begun_ns)
        if self.cleans_up:
            self._clean_up_if_due()
        return self._with_mirror_warnings(outcome)

    def is_cleanup_due(self) -> bool:
        """Whether the last cleanup, or else the oldest checkpoint, is at least a day old."""
        vault, now_ns = self.vault, self.vault.clock.now_ns()
        last_ns = vault.space.read_upkeep().get("cleaned_ns")
        if last_ns is None:
            oldest = vault.catalog.checkpoints_after(0, 1)
            last_ns = oldest[0].created_at_ns if oldest else now_ns
        return not 0 <= now_ns - last_ns < _CLEANUP_EVERY_NS

    def _clean_up_if_due(self) -> None:
        """Once a day after a save, if no daemon does it. A failure waits for the next day."""
        with suppress(HoldfastError):
            if self.is_cleanup_due():
                from holdfast.engine.retention.cleanup import cleanup
                from holdfast.ports.progress import NoProgress

                locked = partial(self.recovered, required=True)
                cleanup(self.vault, locked, NoProgress(), asked=False, most_steps=1)

    def _with_recovery_warning(self, trouble: str, outcome: SaveOutcome) -> SaveOutcome:
        """The outcome of a save that was made despite an unfinished restore."""
        from holdfast.engine.restore.recovery import note_saved_since

        note_saved_since(self.vault, outcome.checkpoint.tree)
        said = f"an earlier restore could not be finished: {trouble}; run: holdfast repair"
        return replace(outcome, warnings=(*outcome.warnings, said))

    def resolve(self, session_id: SessionId | None, reference: str | None) -> Checkpoint:
        """Resolve a reference in one session or, if None, in the workspace. Without a reference:
        the checkpoint before HEAD."""
        from holdfast.engine.history.references import before_head, resolve

        if reference is None:
            return before_head(self.vault, session_id)
        return resolve(self.vault, session_id, reference)

    def restore_request(
        self,
        session_id: SessionId | None,
        reference: str | None,
        *,
        paths: Sequence[bytes] = (),
        best_effort: bool = False,
        components: ComponentChoice | None = None,
        only_changes: bool = False,
    ) -> RestoreRequest:
        """A restore, to be recorded in the session of the restored checkpoint; with
        `only_changes`, only if it changes something."""
        from holdfast.engine.components.selection import choose_components
        from holdfast.engine.restore.database_files import with_companions
        from holdfast.engine.restore.plan import require_paths
        from holdfast.engine.restore.records import RestoreRequest

        target = self.resolve(session_id, reference)
        return RestoreRequest(
            target.session_id,
            target,
            with_companions(self.vault, target, require_paths(paths)),
            best_effort,
            components=choose_components(self.vault, target, components, paths=paths),
            only_changes=only_changes,
        )

    def last_step(self, scan: Scan | None = None, *, turn: bool = False) -> UndoStep:
        """What an undo of the whole workspace reverts: the last change or, with `turn`, everything
        since the last message. `scan` is the current workspace."""
        from holdfast.engine.undo.undo import last_step

        with self.recovered(looking=True):
            return last_step(self.vault, scan or self._scan(()), self._scan, turn=turn)

    def last_loss(self) -> Loss | None:
        """Files without a checkpoint that the last tool calls deleted, if nothing else changed."""
        from holdfast.engine.undo.undo import last_loss

        with self.recovered(looking=True):
            return last_loss(self.vault)

    def approve(self, session_id: SessionId, message: str | None) -> ApproveOutcome:
        """Approve the current workspace, and begin the next round."""
        from holdfast.engine.sessions.approval import approve

        with self.recovered(required=True):
            outcome = approve(self.vault, self._scanner, session_id, message)
        return self._with_mirror_warnings(outcome)

    def plan(self, request: RestoreRequest) -> RestorePlan:
        """What a restore would do now. Writes nothing, neither here nor in the store."""
        from holdfast.engine.conversation.conversation import BestEffortStory
        from holdfast.engine.history.history import head_checkpoint
        from holdfast.engine.restore.preview import preview
        from holdfast.engine.restore.records import required_trees

        with self.recovered(looking=True):
            scan = self._scan(required_trees(self.vault, request), request.rules_of)
            plan = preview(self.vault, scan, request, head_checkpoint(self.vault, None))
        notes = BestEffortStory(self.vault).notes(request.target)
        return replace(plan, target=request.target, annotations=tuple(n.text for n in notes))

    def working_agents(self, request: RestoreRequest) -> tuple[str, ...]:
        """Warnings about agents in the middle of a tool call, for a restore about to begin."""
        from holdfast.engine.restore.preview import working_warnings
        from holdfast.engine.stored_objects import loader_for

        if not working_tools(self.vault):
            return ()
        affected = list(self.plan(request).affected_files)
        scan = self.scan()
        load = loader_for(self.vault, scan)
        return tuple(working_warnings(self.vault, load, scan, affected)) if affected else ()

    def restore(self, request: RestoreRequest | Callable[[], RestoreRequest]) -> RestoreOutcome:
        """Restore, after checking under the lock that the request is still valid. A callable is
        called then, to get a request for the current state."""
        from holdfast.engine.restore.restore import restore, revalidate

        begun = False
        try:
            with self.recovered(required=True):
                begun = True
                meant = revalidate(self.vault, request() if callable(request) else request)
                outcome = restore(self.vault, self._scanner, meant)
        except KeyboardInterrupt as error:
            if not begun:
                error.add_note("the restore had not begun")
            raise
        return self._with_mirror_warnings(outcome)

    def changes(
        self, old: Checkpoint | None, new: Checkpoint | None, *, renames: bool = True
    ) -> list[Change]:
        """Changes between two checkpoints; None for `new` means the current workspace."""
        if new is None:
            return self.changes_in(self.scan(), old, renames=renames)
        from holdfast.engine.compare.tree_diff import tree_difference

        return tree_difference(self.vault.load_tree, old, new.tree, renames=renames)

    def changes_in(
        self, scan: Scan, since: Checkpoint | None, *, renames: bool = True
    ) -> list[Change]:
        """Changes between a checkpoint and a scan of the workspace."""
        from holdfast.engine.compare.tree_diff import tree_difference
        from holdfast.engine.stored_objects import loader_for

        return tree_difference(loader_for(self.vault, scan), since, scan.tree, renames=renames)

    def scan(self, wanted: tuple[Digest, ...] = ()) -> Scan:
        """Scan the workspace without storing anything."""
        with self.recovered(looking=True):
            return self._scan(wanted)

    def left_out(self) -> list[Skipped]:
        """The paths that a save would leave out now. Reads no file."""
        from holdfast.engine.save.workspace_tree import left_out

        with self.recovered(looking=True):
            return left_out(self.vault, self._scanner)

    def delete(self, session_id: SessionId, checkpoint: Checkpoint) -> DeleteOutcome:
        """Delete a checkpoint, and content that nothing else needs."""
        from holdfast.engine.retention.deletion import delete

        with self.recovered(required=True):
            saved = self._save_first(f"Deleted {checkpoint.name or short(checkpoint.id)}")
            outcome = delete(self.vault, session_id, checkpoint)
        warnings = (*saved.warnings, *outcome.warnings)
        return replace(outcome, warnings=warnings, saved_first=saved.checkpoint)

    def plan_purge(self, request: PurgeRequest) -> PurgePlan:
        """What a purge would do now. Changes nothing."""
        from holdfast.engine.purge.plan import plan_purge, with_holders

        with self.recovered(looking=True):
            return with_holders(self.vault, plan_purge(self.vault, request))

    def purge(self, request: PurgeRequest) -> PurgeOutcome:
        """Remove paths or checkpoints for good, then search the store for remains."""
        from holdfast.engine.purge.purge import purge

        with self.recovered(required=True):
            outcome = purge(self.vault, request)
        return self._with_mirror_warnings(outcome, "afresh")

    def plan_text_purge(self, text: str) -> TextPurgePlan:
        """The places where `purge_text` would replace a text. Changes nothing."""
        from holdfast.domain.purges import TextReplacement
        from holdfast.engine.purge.purge import plan_text_purge

        with self.recovered(looking=True):
            return plan_text_purge(self.vault, TextReplacement(text))

    def purge_text(self, text: str) -> PurgeOutcome:
        """Replace a text in all recorded messages, then search the store for remains."""
        from holdfast.domain.purges import TextReplacement
        from holdfast.engine.purge.purge import purge_text

        with self.recovered(required=True):
            outcome = purge_text(self.vault, TextReplacement(text))
        return self._with_mirror_warnings(outcome, "afresh")

    def finish_purge(self) -> PurgeOutcome | None:
        """Finish an interrupted purge, if there is one."""
        from holdfast.engine.purge.purge import finish_purge

        with self.recovered(required=True):
            outcome = finish_purge(self.vault)
        return outcome and self._with_mirror_warnings(outcome, "afresh")

    def plan_cleanup(self) -> CleanupPlan:
        """What `cleanup` would do now. Changes nothing."""
        from holdfast.engine.retention.cleanup import plan_cleanup

        with self.recovered(looking=True):
            return plan_cleanup(self.vault)

    def retention_decisions(self) -> Sequence[Decision]:
        """The retention decision for each checkpoint. Changes nothing."""
        from holdfast.engine.retention.cleanup import decisions

        with self.recovered(looking=True):
            return decisions(self.vault)

    def over_budget(self) -> Sequence[Checkpoint]:
        """Checkpoints to delete so that the store fits its budget. Changes nothing."""
        from holdfast.engine.retention.eviction import over_budget

        with self.recovered(looking=True):
            return over_budget(self.vault)

    def evict(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, int]:
        """Delete checkpoints that the user agreed to; returns their count and the bytes freed."""
        from holdfast.engine.retention.eviction import evict

        with self.recovered(required=True):
            return evict(self.vault, checkpoints)

    def cleanup(self, progress: Progress, *, asked: bool = True) -> CleanupOutcome:
        """Delete expired checkpoints, free their space step by step, and remove leftovers. Without
        `asked`, it is the daily cleanup: it saves nothing first, and does not trust the clock
        alone."""
        from holdfast.domain.outcomes import SavedFirst
        from holdfast.engine.retention.cleanup import cleanup

        locked = partial(self.recovered, required=True)
        save_first = partial(self._save_first, "Cleaned up") if asked else SavedFirst
        outcome = cleanup(self.vault, locked, progress, asked=asked, save_first=save_first)
        return self._with_mirror_warnings(outcome, "everything")

    def set_setting(self, key: str, value: Any) -> None:
        """Store a setting of this workspace; None removes it. A dot in the key selects one entry
        of a table."""
        from holdfast.engine.settings import set_setting

        with self.recovered():
            set_setting(self.vault, key, value)

    def change_list(self, key: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Add and remove entries of a list setting."""
        from holdfast.engine.settings import change_list

        with self.recovered():
            change_list(self.vault, key, add=add, remove=remove)

    def archive(self, session_id: SessionId) -> bool:
        """Archive a session; False if it does not exist."""
        with self.recovered():
            if self.vault.catalog.session(session_id) is None:
                return False
            with self.vault.catalog.transaction() as transaction:
                transaction.set_session_status(session_id, SessionStatus.ARCHIVED)
                transaction.add_operation(
                    NewOperation(OperationKind.ARCHIVE, session_id, self.vault.clock.now_ns())
                )
            return True

    def delete_session(self, session_id: SessionId) -> DeletedSession:
        """Delete a session and everything that only it has."""
        from holdfast.domain.errors import NotFound
        from holdfast.engine.retention.deletion import delete_session

        with self.recovered(required=True):
            session = self.vault.catalog.session(session_id)
            if session is None:
                raise NotFound(
                    f"unknown session: {session_id!r}", hint="list sessions: holdfast sessions"
                )
            saved = self._save_first(f"Deleted the session {session_id}", outside=session_id)
            outcome = delete_session(self.vault, session)
        warnings = (*saved.warnings, *outcome.warnings)
        return replace(outcome, warnings=warnings, saved_first=saved.checkpoint)

    def ensure_current_session(self, fresh_id: Callable[[], SessionId]) -> SessionId:
        """The session that commands use by default; created on first use."""
        known = self._open_current_session()
        if known is not None:
            return known
        with self.recovered():
            known = self._open_current_session()
            if known is not None:
                return known
            session_id = fresh_id()
            with self.vault.catalog.transaction() as transaction:
                add_session(self.vault, transaction, session_id)
                transaction.set_current_session(session_id)
            return session_id

    def _open_current_session(self) -> SessionId | None:
        """The current session, unless it is archived and accepts no more checkpoints. None if only
        programs have worked, because nothing is added to their sessions."""
        from holdfast.engine.sessions.current import current_session

        catalog = self.vault.catalog
        known = None if catalog.current_session() is None else current_session(self.vault)
        session = catalog.session(known) if known is not None else None
        if session is None or session.status is SessionStatus.ARCHIVED:
            return None
        return session.id

    def _save_first(self, what: str, *, outside: SessionId | None = None) -> SavedFirst:
        """Save unsaved changes before saved states are deleted. Called with the lock held."""
        from holdfast.engine.save.unsaved_work import save_unsaved_work

        return save_unsaved_work(self.vault, self._scanner, what, outside=outside)

    def _with_mirror_warnings(self, outcome: _Outcome, how: str = "soon") -> _Outcome:
        """Update the mirror, if there is one, and add its warnings to the outcome."""
        if not self.vault.settings.mirror and how != "afresh":
            return outcome
        from holdfast.engine.git_mirror import mirror_work

        said: tuple[str, ...] = mirror_work(self.vault, how)
        return replace(outcome, warnings=(*outcome.warnings, *said)) if said else outcome

    def _scan(self, wanted: tuple[Digest, ...], rules_of: RulesOf | None = None) -> Scan:
        from holdfast.engine.save.workspace_tree import dry_scan

        return dry_scan(self.vault, self._scanner, wanted, rules_of)
