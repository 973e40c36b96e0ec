"""Workspaces under watch: opened once, kept open, and saved at the cost of what changed.

What is kept open is looked at again before each use: another store, other settings or another
directory in the workspace's place make it be opened anew. So every operation gives the result that
it gives in a process of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path

from holdfast.adapters.local.system import SystemClock
from holdfast.adapters.local.watching.no_watcher import NoWatch, NoWatcher
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.components import in_environment
from holdfast.bootstrap.stores import tie_again
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint, Kind, Position
from holdfast.domain.errors import WorkspaceMissing
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.settings.schema import Settings
from holdfast.domain.triggers import (
    SECOND_NS,
    Situation,
    TriggerRules,
    day_of,
    describe,
    due,
    enough,
    wait_ns,
)
from holdfast.ports.watcher import Watcher, WatchStatus, WorkspaceWatch

_LOOK_UNWATCHED_EVERY_NS = 60 * SECOND_NS
_LONGEST_WAIT_NS = 60 * SECOND_NS


def open_watcher() -> Watcher:
    """The watcher of this system, or one that says why there is none."""
    if sys.platform != "linux":
        return _watcher_elsewhere()
    from holdfast.adapters.local.watching.inotify import InotifyWatcher

    try:
        return InotifyWatcher(SystemClock())
    except OSError as error:
        return NoWatcher(f"watching failed: {error.strerror}")


def _watcher_elsewhere() -> Watcher:
    from holdfast.adapters.local.watching.watchfiles_watch import WatchfilesWatcher

    try:
        return WatchfilesWatcher(SystemClock())
    except ImportError:
        return NoWatcher("watching needs a package here: pip install 'holdfast[watch]'")


def trigger_rules(settings: Settings) -> TriggerRules:
    return TriggerRules(
        files=settings.auto_files,
        interval_ns=int(settings.auto_interval * 60 * SECOND_NS),
        end_of_day=time.fromisoformat(settings.end_of_day) if settings.end_of_day else None,
        merges=bool(settings.auto_merge),
    )


class WatchedWorkspace:
    """One workspace, kept open; safe to use from several threads. `session` is where automatic
    checkpoints go; without one there are none."""

    def __init__(
        self,
        workspace: Path,
        watcher: Watcher,
        *,
        environment: Mapping[str, str] | None = None,
        listener: Callable[[], None] | None = None,
        opened: OpenWorkspace | None = None,
        rules: TriggerRules | None = None,
    ) -> None:
        """`opened` is a workspace that is open already; `rules` win over the settings."""
        self._environment = os.environ if environment is None else environment
        self._lock = threading.RLock()
        self._clock = SystemClock()
        self.session: SessionId | None = None
        self.opened = opened or open_workspace(
            workspace,
            create=True,
            spare_repositories=True,
            environment=self._environment,
            purpose="holdfast daemon",
        )
        vault = self.opened.engine.vault
        self.workspace = vault.workspace
        self.rules = rules or trigger_rules(vault.settings)
        self._identity = _identity(self.workspace)
        self.watch: WorkspaceWatch = (
            NoWatch("watching is switched off (setting watch)")
            if vault.settings.watch == "off"
            else watcher.open(os.fsencode(self.workspace), listener=listener)
        )
        self.opened.engine.use_watch(self.watch)
        self.last_used_ns = self._interval_ns = self._looked_ns = self._clock.monotonic_ns()
        self._branch_looked_ns, self._merge_under_way = self.last_used_ns, False
        self._looked_at = self._tool_until_ns = 0
        local = datetime.now().astimezone()
        end = self.rules.end_of_day
        # Opened in the evening: that day's end is past.
        self._ended_day = day_of(local) if end is not None and local.time() >= end else None

    def is_current(self) -> bool:
        """Whether opening it again would give the same workspace, store and settings."""
        if _identity(self.workspace) != self._identity:
            return False
        if not self.opened.is_current(self._environment):
            return False
        tie_again(self.opened)
        return True

    def save(
        self,
        session: SessionId,
        intent: SnapshotIntent,
        *,
        kind: Kind,
        position: Position | None = None,
        reuse: bool = False,
    ) -> SaveOutcome:
        # Others wait for this workspace meanwhile, the hook that tells of a tool's end among them.
        with self._lock:
            outcome = self.opened.engine.for_hooks().save(
                session, intent, kind=kind, position=position or Position(), reuse=reuse
            )
            self._interval_ns = self.last_used_ns = self._clock.monotonic_ns()
            self._looked_at = 0
            return outcome

    @contextmanager
    def worked_on(self, environment: Mapping[str, str]) -> Iterator[OpenWorkspace]:
        """For a hook event of a program with this environment; it counts as a save."""
        with self._lock:
            store, settings = self.opened.store, self.opened.engine.vault.settings
            self.opened = in_environment(self.opened, environment)
            store.patience_s = settings.hook_lock_timeout
            try:
                yield self.opened
            finally:
                store.patience_s = None
                self._interval_ns = self.last_used_ns = self._clock.monotonic_ns()
                self._looked_at = 0

    def tool_runs(self, *, until_ns: int) -> None:
        """A tool of an agent is at work, with checkpoints of its own before and after: until then,
        on the clock that does not go back, what it changes is no reason for another."""
        self._tool_until_ns = until_ns

    def status(self) -> WatchStatus:
        return self.watch.status()

    def wait_ns(self, local: datetime) -> int | None:
        """How long no trigger can call for a checkpoint, if nothing happens."""
        if self.session is None:
            return None
        now = self._situation(local)
        wait = wait_ns(self.rules, now)
        if wait is None:
            return None
        wait = max(wait, self._tool_until_ns - now.now_ns)
        # The clock by which anybody waits stands still while a computer sleeps; the day does not.
        return wait if self.rules.end_of_day is None else min(wait, _LONGEST_WAIT_NS)

    def consider(self, local: datetime) -> SaveOutcome | None:
        """Make the checkpoint that is due, if one is and there is enough to keep."""
        with self._lock:
            now = self._situation(local)
            if self.session is None or now.now_ns < self._tool_until_ns:
                return None
            kind = due(self.rules, now)
            if kind is Kind.MERGE:
                kept = self.keep_merge(self.session)
                if kept is not None:
                    return kept
                now = self._situation(local)
                kind = due(replace(self.rules, merges=False), now)
            if kind is None:
                return None
            self._looked_ns, self._looked_at = now.now_ns, now.touched
            if kind is Kind.END_OF_DAY:
                self._ended_day = day_of(local)
            if kind is Kind.INTERVAL:
                self._interval_ns = now.now_ns
            return self._save_if_changed(self.session, kind)

    def begin(self, session: SessionId) -> SaveOutcome | None:
        """From now on automatic checkpoints go to this session; what it lacks is kept at once."""
        with self._lock:
            self.session = session
            self.opened.engine.recover(required=False)  # refused where nothing could be saved later
            if self._last(session, Kind.INITIAL) is None:
                made = self.save(session, make_intent("Watching begins"), kind=Kind.INITIAL)
                return self.keep_merge(session) or made
            return self.keep_merge(session) or self._save_if_changed(session, Kind.INTERVAL)

    def finish(self) -> SaveOutcome | None:
        """Keep what has changed since the last checkpoint, as when an interval is over."""
        with self._lock:
            if self.session is None or not self.rules.interval_ns:
                return None
            return self._save_if_changed(self.session, Kind.INTERVAL)

    def keep_merge(self, session: SessionId) -> SaveOutcome | None:
        """Make a checkpoint if a branch was merged into the main one; note where that stands."""
        from holdfast.app.automation.merges import keep_merge

        with self._lock:
            now_ns = self._branch_looked_ns = self._clock.monotonic_ns()
            look = keep_merge(self.opened, session)
            self._merge_under_way = look.under_way
            if look.kept is not None:
                self._interval_ns = self.last_used_ns = now_ns
                self._looked_at = 0
            return look.kept

    def _save_if_changed(self, session: SessionId, kind: Kind) -> SaveOutcome | None:
        engine = self.opened.engine
        before = self._last(session, kind)
        scan = engine.look()
        if before is not None and scan.tree == before.tree:
            return None
        changes = engine.changes_in(scan, before, renames=False)
        if not enough(self.rules, kind, len(changes)):
            return None
        paths = [to_text(change.path) for change in changes]
        reason = describe(kind, paths, self.rules.interval_ns)
        return self.save(session, make_intent(reason), kind=kind)

    def _last(self, session: SessionId, kind: Kind) -> Checkpoint | None:
        catalog = self.opened.engine.vault.catalog
        if kind is Kind.END_OF_DAY:
            return catalog.newest_of(session, (kind,))
        found = catalog.session(session)
        if found is None or found.head is None:
            return None
        return catalog.checkpoint(session, found.head)

    def _situation(self, local: datetime) -> Situation:
        activity = self.watch.activity()
        touched, first_ns, last_ns = activity.names, activity.first_ns, activity.last_ns
        status = self.watch.status()
        looked_at = self._looked_at
        silent = status.off or (touched == 0 if status.unproven else status.overflows > 0)
        if status.doubt is not None and silent:
            # Nothing is told, or not everything: every so often something may have happened.
            touched = max(touched, self.rules.files, 1)
            looked_at = 0
            first_ns = last_ns = self._looked_ns + _LOOK_UNWATCHED_EVERY_NS - SECOND_NS
        return Situation(
            now_ns=self._clock.monotonic_ns(),
            local=local,
            touched=touched,
            first_change_ns=first_ns,
            last_change_ns=last_ns,
            interval_began_ns=self._interval_ns,
            looked_ns=self._looked_ns,
            looked_at=looked_at,
            ended_day=self._ended_day,
            branch_looked_ns=self._branch_looked_ns,
            merge_under_way=self._merge_under_way,
        )

    def rest(self) -> None:
        """Keep no memory for files of the store, until it is used again."""
        with self._lock:
            self.opened.store.forget_pages()

    def close(self) -> None:
        with self._lock:
            self.watch.close()
            self.opened.engine.finish_watching()
            self.opened.close()


def _identity(workspace: Path) -> tuple[int, int]:
    try:
        status = os.stat(workspace, follow_symlinks=False)
    except OSError as error:
        raise WorkspaceMissing(
            f"the workspace {workspace} is not there any more: {error.strerror}",
            hint="give an existing directory",
        ) from None
    return status.st_dev, status.st_ino
