"""Saves, restores and scans of one workspace, under the store's lock and after repairing unfinished
work. Other use cases take an `Engine` and lock the store through it.

Modules that only some calls need are imported on first use, so that a save starts quickly."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.domain.checkpoints import Checkpoint, Kind, Position, Skipped
from holdfast.domain.errors import Busy, HoldfastError, StoreReadOnly
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.engine.edits.open_activities import wait_for_others
from holdfast.engine.restore.directory_handles import needs_recovery
from holdfast.engine.save.save import NOWHERE, save
from holdfast.engine.scan.policy import FileFilter
from holdfast.engine.scan.scanner import RulesOf, Scan, Scanner
from holdfast.engine.vault import Vault, workspace_trouble
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.domain.outcomes import (
        RecoveredRestore,
        RestoreOutcome,
        SavedFirst,
        SaveOutcome,
    )
    from holdfast.domain.purges import PurgeOutcome
    from holdfast.domain.restore.plan import RestorePlan
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.selection import ComponentChoice
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.retention.cleanup import CleanupOutcome
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

CLEANUP_EVERY_NS = 24 * 3600 * 1_000_000_000
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
        self.scanner = Scanner(
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
    def recovered(self, *, read_only: bool = False, required: bool = False) -> Iterator[str | None]:
        """Hold the store's lock, after repairing what a crash left unfinished. Yields the reason if
        the repair failed, or raises if it is `required`."""
        with self.vault.lock.hold(read_only=read_only):
            try:
                trouble = None
                if needs_recovery(self.vault):
                    from holdfast.engine.restore.recovery import try_recover

                    self.recovery, trouble = try_recover(
                        self.vault, self.scanner, required=required
                    )
                yield trouble
            except OSError as error:
                raise workspace_trouble(self.vault.workspace, error) from error

    def use_watch(self, watch: WorkspaceWatch) -> None:
        """Let saves visit only places where the watch saw changes. Restores still visit all."""
        self.scanner.watch = watch
        self.scanner.paranoid = self.vault.settings.watch == "paranoid"

    def finish_watching(self) -> None:
        """Hand the results of watched scans, so far only in memory, to the shared cache."""
        with suppress(Busy, StoreReadOnly), self.vault.lock.hold(wait=False):
            self.scanner.flush()

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
                self.scanner,
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
        return self.with_mirror_warnings(outcome)

    def is_cleanup_due(self) -> bool:
        """Whether the last cleanup, or else the oldest checkpoint, is at least a day old."""
        vault, now_ns = self.vault, self.vault.clock.now_ns()
        last_ns = vault.space.read_upkeep().get("cleaned_ns")
        if last_ns is None:
            oldest = vault.catalog.checkpoints_after(0, 1)
            last_ns = oldest[0].created_at_ns if oldest else now_ns
        return not 0 <= now_ns - last_ns < CLEANUP_EVERY_NS

    def _clean_up_if_due(self) -> None:
        """Once a day after a save, if no daemon does it. A failure waits for the next day."""
        with suppress(HoldfastError):
            if self.is_cleanup_due():
                from holdfast.engine.retention.cleanup import cleanup
                from holdfast.ports.progress import NoProgress

                cleanup(self, NoProgress(), asked=False, most_steps=1)

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

        with self.recovered(read_only=True):
            return last_step(self.vault, scan or self._scan(()), self._scan, turn=turn)

    def last_loss(self) -> Loss | None:
        """Files without a checkpoint that the last tool calls deleted, if nothing else changed."""
        from holdfast.engine.undo.undo import last_loss

        with self.recovered(read_only=True):
            return last_loss(self.vault)

    def plan(self, request: RestoreRequest) -> RestorePlan:
        """What a restore would do now. Writes nothing, neither here nor in the store."""
        from holdfast.engine.conversation.conversation import BestEffortStory
        from holdfast.engine.history.history import head_checkpoint
        from holdfast.engine.restore.preview import preview
        from holdfast.engine.restore.records import required_trees

        with self.recovered(read_only=True):
            scan = self._scan(required_trees(self.vault, request), request.rules_of)
            plan = preview(self.vault, scan, request, head_checkpoint(self.vault, None))
        notes = BestEffortStory(self.vault).notes(request.target)
        return replace(plan, target=request.target, annotations=tuple(n.text for n in notes))

    def restore(self, request: RestoreRequest | Callable[[], RestoreRequest]) -> RestoreOutcome:
        """Restore, after checking under the lock that the request is still valid. A callable is
        called then, to get a request for the current state."""
        from holdfast.engine.restore.restore import restore, revalidate

        begun = False
        try:
            with self.recovered(required=True):
                begun = True
                meant = revalidate(self.vault, request() if callable(request) else request)
                outcome = restore(self.vault, self.scanner, meant)
        except KeyboardInterrupt as error:
            if not begun:
                error.add_note("the restore had not begun")
            raise
        return self.with_mirror_warnings(outcome)

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
        with self.recovered(read_only=True):
            return self._scan(wanted)

    def left_out(self) -> list[Skipped]:
        """The paths that a save would leave out now. Reads no file."""
        from holdfast.engine.save.workspace_tree import left_out

        with self.recovered(read_only=True):
            return left_out(self.vault, self.scanner)

    def save_unsaved_work(self, what: str, *, outside: SessionId | None = None) -> SavedFirst:
        """Save unsaved changes before `what` deletes saved states. Called with the lock held."""
        from holdfast.engine.save.unsaved_work import save_unsaved_work

        return save_unsaved_work(self.vault, self.scanner, what, outside=outside)

    def with_mirror_warnings(self, outcome: _Outcome, how: str = "soon") -> _Outcome:
        """Update the mirror, if there is one, and add its warnings to the outcome."""
        if not self.vault.settings.mirror and how != "afresh":
            return outcome
        from holdfast.engine.git_mirror import mirror_work

        said: tuple[str, ...] = mirror_work(self.vault, how)
        return replace(outcome, warnings=(*outcome.warnings, *said)) if said else outcome

    def _scan(self, wanted: tuple[Digest, ...], rules_of: RulesOf | None = None) -> Scan:
        from holdfast.engine.save.workspace_tree import dry_scan

        return dry_scan(self.vault, self.scanner, wanted, rules_of)
