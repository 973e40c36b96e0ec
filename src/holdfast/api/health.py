"""The health of a workspace: its status, the next undo step, and whether its store is sound.

Every part of a status is about the same moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import HoldfastError, NothingToUndo, StoreDamaged
from holdfast.values.classes import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.bootstrap.maintenance import Gap as Gap
    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.ids import SessionId
    from holdfast.domain.repair_plan import Problem, Symptom
    from holdfast.domain.sessions import Round
    from holdfast.domain.story import Activity
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.manifests import Degraded as Degraded
    from holdfast.engine.scan.scanner import Scan
    from holdfast.engine.sessions.approval import ApprovalStatus
    from holdfast.engine.undo.undo import UndoStep
    from holdfast.ports.progress import Progress

_LATELY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LastAction:
    """The last change to the workspace, which `undo` would undo."""

    what: str
    at: datetime | None
    removed: int = 0
    added: int = 0
    """Numbers of files that it deleted and created."""

    removed_in_turn: int = 0
    """Files deleted by the whole turn, if it deleted more than it created and more than `removed`.
    """
    lost: bool = False
    """It deleted only files that no checkpoint has, so undo cannot restore them."""

    def is_wreck(self, now: datetime) -> bool:
        """Whether it recently deleted files, which is probably why the user looks at the status."""
        return self._is_recent(now) and self.removed > self.added

    def is_in_wrecked_turn(self, now: datetime) -> bool:
        """Whether earlier calls of the same turn deleted files too."""
        return self._is_recent(now) and self.removed_in_turn > 0

    def _is_recent(self, now: datetime) -> bool:
        return self.at is None or now - self.at < _LATELY


class ScannedWorkspace(NamedTuple):
    """One scan of the workspace. `head` is that of a session or, without `scope`, of the
    workspace."""

    scan: Scan
    scope: SessionId | None
    head: Checkpoint | None
    changes: Sequence[Change]


class LastCleanup(NamedTuple):
    at: datetime
    deleted: int
    freed_bytes: int


class LastCheck(NamedTuple):
    """A check that ran to its end; `data` if it read every stored byte."""

    at: datetime
    problems: int
    data: bool


@dataclass(frozen=True, slots=True)
class WorkspaceStatus:
    """The status of a workspace. Before the first checkpoint, most of it is empty."""

    workspace: Path
    budget_bytes: int
    store: Path | None = None
    store_bytes: int = 0
    session: SessionId | None = None
    session_status: str | None = None
    sessions: tuple[SessionId, ...] = ()
    checkpoints: int = 0
    head: Checkpoint | None = None
    changes: Sequence[Change] = ()
    skipped: Sequence[Skipped] = ()
    files: int = 0
    approval: ApprovalStatus | None = None
    rounds: Sequence[Round] = ()
    interrupted: Sequence[Activity] = ()
    """Edits and attempts whose process is gone."""

    restorable: Mapping[int, Sequence[bytes]] = field(default_factory=dict)
    """Paths that can be restored, by the number of the interrupted edit or attempt."""

    degraded: Sequence[Degraded] = ()
    cleanup: LastCleanup | None = None
    last_check: LastCheck | None = None
    git: str | None = None
    """Branch, commit and dirty files as they are now."""

    last: LastAction | None = None
    redo: str | None = None
    """The step that the last undo reverted, as long as nothing has changed since."""

    gaps: Sequence[Gap] = ()
    """Where protection is weaker than users may expect."""

    @property
    def blocker(self) -> Gap | None:
        """Why no checkpoint can be made now."""
        return next((gap for gap in self.gaps if gap.stops_saves), None)


class Health:
    """Health of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._opened = opened
        self._engine, self._vault = opened.engine, opened.engine.vault

    def check(self, *, data: bool, progress: Progress) -> Iterator[Problem]:
        """Verify the store; with `data`, every stored byte too. The store is not changed. A
        completed check is recorded beside it."""
        from holdfast.engine.repair.check import run_checks

        found = 0
        for problem in run_checks(self._vault, data=data, progress=progress):
            found += 1
            yield problem
        with suppress(HoldfastError, OSError):  # a read-only store can be checked too
            self._vault.space.note_upkeep(
                checked_ns=self._vault.clock.now_ns(), check_problems=found, check_data=int(data)
            )

    def scan(
        self, scope: SessionId | None, reported: Mapping[str, Any] | None = None
    ) -> ScannedWorkspace:
        """Scan every file and compare with the HEAD of a session or of the workspace."""
        from holdfast.engine.history.history import head_checkpoint

        scan = None
        if reported is not None:
            from holdfast.api.views.scans import scan_from

            scan = scan_from(reported)
        if scan is None:
            scan = self._engine.scan()
        head = head_checkpoint(self._vault, scope)
        changes = self._engine.changes_in(scan, head) if head is not None else []
        return ScannedWorkspace(scan, scope, head, changes)

    def status(
        self,
        session_id: SessionId | None,
        scanned: ScannedWorkspace,
        *,
        tested_within_s: float = 0,
    ) -> WorkspaceStatus:
        """The status of the workspace and of a session. It writes a test file into the store,
        unless this process could write one within these seconds."""
        from holdfast.api.sessions import Sessions
        from holdfast.bootstrap.maintenance import ignored_by_far, protection_gaps
        from holdfast.engine.edits.attempts import interrupted_activities, paths_to_revert
        from holdfast.engine.sessions.approval import approval, counted_rounds

        vault, sessions = self._vault, Sessions(self._opened)
        scan, scope, head, changes = scanned
        known = sessions.get(session_id) if session_id is not None else None
        at_work = session_id if head is not None else None
        interrupted = interrupted_activities(vault, scope)
        gaps = protection_gaps(
            vault.workspace, self._opened.setting_problems, tested_within_s=tested_within_s
        )
        ignored = ignored_by_far(scan.skipped, scan.files)
        return WorkspaceStatus(
            workspace=vault.workspace,
            budget_bytes=vault.settings.budget,
            store=self._opened.store.directory,
            store_bytes=vault.space.size_bytes(),
            session=session_id,
            session_status=sessions.status(known).value if known else None,
            sessions=tuple(one.id for one in sessions.listed()),
            checkpoints=sessions.checkpoint_count(session_id) if session_id else 0,
            head=head,
            changes=changes,
            skipped=scan.skipped,
            files=scan.files,
            approval=approval(vault, at_work, scan) if at_work else None,
            rounds=counted_rounds(vault, at_work) if at_work else (),
            interrupted=interrupted,
            restorable={one.number: paths_to_revert(vault, scan, one) for one in interrupted},
            degraded=self.degraded(head),
            cleanup=self._last_cleanup(),
            last_check=self._last_check(),
            git=self._git(scan),
            last=self._last_action(scan),
            redo=self._redo(scan),
            gaps=[*gaps, *([] if ignored is None else [ignored])],
        )

    def degraded(self, head: Checkpoint | None) -> Sequence[Degraded]:
        """Components that the last checkpoint lacks, or has only in part. `check` reports
        unreadable ones."""
        from holdfast.engine.components.manifests import degraded

        try:
            return degraded(self._vault, head)
        except StoreDamaged:
            return ()

    def _last_cleanup(self) -> LastCleanup | None:
        noted = self._vault.space.read_upkeep()
        if "cleaned_ns" not in noted:
            return None
        at = datetime.fromtimestamp(noted["cleaned_ns"] / 1e9, tz=UTC)
        return LastCleanup(at, noted.get("dropped", 0), noted.get("freed_bytes", 0))

    def _last_check(self) -> LastCheck | None:
        noted = self._vault.space.read_upkeep()
        if "checked_ns" not in noted:
            return None
        at = datetime.fromtimestamp(noted["checked_ns"] / 1e9, tz=UTC)
        return LastCheck(at, noted.get("check_problems", 0), bool(noted.get("check_data")))

    def _git(self, scan: Scan) -> str | None:
        from holdfast.engine.components.git_drift import present_git

        place = present_git(self._vault, scan=scan)
        return None if place is None else str(place)

    def _last_action(self, scan: Scan) -> LastAction | None:
        """What `undo` would undo; None if there is nothing, or it cannot be determined."""
        from holdfast.domain.checkpoints import SETUP_TAG
        from holdfast.engine.undo.causes import loss_words, undone_words

        try:
            try:
                step, loss = self._engine.last_step(scan), None
            except NothingToUndo:
                step, loss = None, self._engine.last_loss()
            if step is not None:
                loss = step.loss
            if loss is not None:
                then = datetime.fromtimestamp(loss.cause.at_ns / 1e9, tz=UTC)
                return LastAction(loss_words(self._vault, loss), then, lost=True)
            if step is None:
                return None
            words = undone_words(self._vault, step)
            setup = step.saved is not None and SETUP_TAG in step.saved.intent.tags
            if step.undone is not None or setup:
                return LastAction(words, step.at)
            removed, added = self._removed_and_added(scan, step)
            in_turn = self._removed_in_turn(scan) if step.causes else 0
            return LastAction(words, step.at, removed, added, in_turn if in_turn > removed else 0)
        except HoldfastError:
            return None

    def _removed_in_turn(self, scan: Scan) -> int:
        """How many files the last turn deleted, if it deleted more than it created."""
        try:
            turn = self._engine.last_step(scan, turn=True)
        except NothingToUndo:
            return 0
        removed, added = self._removed_and_added(scan, turn)
        return removed if removed > added else 0

    def _removed_and_added(self, scan: Scan, step: UndoStep) -> tuple[int, int]:
        from holdfast.domain.trees.changes import ChangeType

        changes = self._engine.changes_in(scan, step.request.target)
        files = [
            one.type for one in changes if not one.is_directory and not _is_left_out(scan, one)
        ]
        return files.count(ChangeType.REMOVED), files.count(ChangeType.ADDED)

    def _redo(self, scan: Scan) -> str | None:
        """What `redo` would restore, directly after an undo."""
        from holdfast.engine.undo.causes import undone_words
        from holdfast.engine.undo.undo import next_step

        try:
            step = next_step(self._vault)
            seen = step.request.seen
            if seen is None or seen.tree != scan.tree:
                return None
            return undone_words(self._vault, step)
        except HoldfastError:
            return None


def _is_left_out(scan: Scan, change: Change) -> bool:
    """Whether a path that the next checkpoint would lack still exists: it is unreadable, or a rule
    now excludes it."""
    from holdfast.domain.paths import is_within
    from holdfast.domain.trees.changes import ChangeType

    return change.type is ChangeType.REMOVED and any(
        is_within(change.path, skip.path) for skip in scan.skipped if skip.path
    )


def write_gaps(workspace: Path) -> Sequence[Gap]:
    """Problems that prevent checkpoints, even before there is a store."""
    from holdfast.bootstrap.maintenance import write_gaps

    return write_gaps(workspace)


def examine_surroundings(directory: Path) -> list[Symptom]:
    """Problems around a directory's store, in any state of the store."""
    from holdfast.bootstrap.maintenance import examine_surroundings

    return examine_surroundings(directory)
