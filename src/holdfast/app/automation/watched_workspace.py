"""Watched workspaces: opened once, kept open, and saved at a cost that depends on the changes.

Before each use, `is_current` checks whether the workspace must be opened again, because its store,
settings or directory has changed. So every operation gives the same result as in a new process.

    an automatic checkpoint fails → tried again after a minute, then after two, four … sixty

Other triggers continue meanwhile. A reopened workspace keeps the pending retries.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.automation import merges
from holdfast.app.automation.agent_sessions import find_session
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent, EventKind
from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import WorkspaceMissing
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.paths import to_text
from holdfast.domain.sessions import SessionStatus
from holdfast.domain.settings.schema import Settings
from holdfast.domain.triggers import (
    SECOND_NS,
    Situation,
    TriggerRules,
    day_of,
    describe,
    due_trigger,
    enough,
    wait_ns,
)
from holdfast.ports.agent_tools import LONGEST_CALL_NS
from holdfast.ports.watcher import NoWatch, Watcher, WatchStatus, WorkspaceWatch
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.engine.scan.scanner import Scan

_LOOK_UNWATCHED_EVERY_NS = 60 * SECOND_NS
_LONGEST_WAIT_NS = 60 * SECOND_NS
_FIRST_RETRY_NS = 60 * SECOND_NS
_LONGEST_RETRY_NS = 3_600 * SECOND_NS


def trigger_rules(settings: Settings) -> TriggerRules:
    return TriggerRules(
        files=settings.auto_files,
        interval_ns=int(settings.auto_interval * 60 * SECOND_NS),
        end_of_day=time.fromisoformat(settings.end_of_day) if settings.end_of_day else None,
        merges=bool(settings.auto_merge),
    )


class _Retry(NamedTuple):
    """When a failed checkpoint is tried again, and how long after the last try."""

    at_ns: int
    wait_ns: int


class WatchedWorkspace:
    """One workspace, kept open; thread-safe. Automatic checkpoints go to `session`; without one
    there are none."""

    def __init__(
        self,
        opened: OpenWorkspace,
        watcher: Watcher,
        *,
        listener: Callable[[], None] | None = None,
        rules: TriggerRules | None = None,
    ) -> None:
        """`opened` is closed with this; `rules` override the settings."""
        self._lock = threading.RLock()
        self.session: SessionId | None = None
        self.opened = self._for_caller = opened
        vault = opened.engine.vault
        self._clock = vault.clock
        self.workspace = vault.workspace
        self.rules = rules or trigger_rules(vault.settings)
        self._identity = _identity(self.workspace)
        self.watch: WorkspaceWatch = (
            NoWatch("watching is turned off (setting watch)")
            if vault.settings.watch == "off"
            else watcher.open(os.fsencode(self.workspace), listener=listener)
        )
        self.opened.engine.use_watch(self.watch)
        self.last_used_ns = self._interval_ns = self._looked_ns = self._clock.monotonic_ns()
        self._branch_looked_ns, self._merge_under_way = self.last_used_ns, False
        self._looked_at = self._tool_until_ns = 0
        local = datetime.fromtimestamp(self._clock.now_ns() / 1e9).astimezone()
        end = self.rules.end_of_day
        # If opened in the evening, that day's end is already past.
        self._ended_day = day_of(local) if end is not None and local.time() >= end else None
        self._retries: dict[Kind, _Retry] = {}

    def take_over(self, former: WatchedWorkspace) -> None:
        """Continue for a workspace that was open before this one: its session, and the checkpoints
        that failed."""
        self.session = former.session
        self._ended_day, self._retries = former._ended_day, former._retries

    def is_current(self) -> bool:
        """Whether opening it again would give the same workspace, store and settings."""
        if _identity(self.workspace) != self._identity:
            return False
        return self.opened.is_current()

    def save(self, session: SessionId, intent: SnapshotIntent, *, kind: Kind) -> SaveOutcome:
        # Meanwhile, others wait for this workspace, such as the hook that reports a tool's end.
        with self._lock:
            outcome = self._for_caller.engine.for_hooks().save(session, intent, kind=kind)
            self._interval_ns = self.last_used_ns = self._clock.monotonic_ns()
            self._looked_at = 0
            return outcome

    @contextmanager
    def use_for_event(self, environment: Mapping[str, str]) -> Iterator[OpenWorkspace]:
        """For a hook event of a program with this environment; it counts as a save. Automatic
        checkpoints use the environment of the last caller. They write no marker, because the
        workspace may be in the middle of being deleted."""
        self.opened.restore_marker()
        with self._lock:
            store, settings = self.opened.store, self.opened.engine.vault.settings
            self._for_caller = self.opened.for_caller(environment)
            store.patience_s = settings.hook_lock_timeout
            try:
                yield self._for_caller
            finally:
                store.patience_s = None
                self._interval_ns = self.last_used_ns = self._clock.monotonic_ns()
                self._looked_at = 0

    def note_event(self, event: AgentEvent) -> SessionId | None:
        """An agent's event was handled here. Returns the session if the agent is now working in it;
        automatic checkpoints then go there. A tool has its own checkpoints before and after, so its
        changes cause no others until it ends."""
        runs = event.kind is EventKind.BEFORE_TOOL
        self._tool_until_ns = self._clock.monotonic_ns() + LONGEST_CALL_NS if runs else 0
        session = find_session(self.opened, event)
        if session is not None and event.begins:
            self.session = session.id
            return session.id
        if event.kind is EventKind.SESSION_END and session and session.id == self.session:
            self.session = None  # otherwise another agent is still working here
        return None

    def end_sessions(self, sessions: Sequence[SessionId]) -> None:
        """End those that are still active; `Busy` if another process is writing."""
        vault = self.opened.engine.vault
        with vault.lock.hold(wait=False):
            for name in sessions:
                session = vault.catalog.session(name)
                if session is not None and session.status is SessionStatus.ACTIVE:
                    with vault.catalog.transaction() as transaction:
                        transaction.set_session_status(name, SessionStatus.ENDED)
                if self.session == name:
                    self.session = None

    @property
    def is_cleanup_due(self) -> bool:
        return self.opened.engine.is_cleanup_due()

    @property
    def save_times_ns(self) -> list[int]:
        """How long the last saves here took."""
        return list(self.opened.engine.save_times_ns)

    def status(self) -> WatchStatus:
        return self.watch.status()

    def wait_ns(self, local: datetime) -> int | None:
        """How long until a trigger can become due without further changes."""
        if self.session is None:
            return None
        now = self._situation(local)
        waits = [max(retry.at_ns - now.now_ns, 0) for retry in self._retries.values()]
        due = wait_ns(self.rules, now)
        if due is not None:
            waits.append(due)
        if not waits:
            return None
        wait = max(min(waits), self._tool_until_ns - now.now_ns)
        # The monotonic clock stops while a computer sleeps; the day does not.
        return wait if self.rules.end_of_day is None else min(wait, _LONGEST_WAIT_NS)

    def consider(self, local: datetime) -> SaveOutcome | None:
        """Make the checkpoint that is due, if there are enough changes, or one that failed."""
        with self._lock:
            now = self._situation(local)
            if self.session is None or now.now_ns < self._tool_until_ns:
                return None
            kind = due_trigger(self.rules, now) or self._due_retry(now.now_ns)
            if kind is Kind.MERGE:
                with self._retried_if_it_fails(kind):
                    kept = self.keep_merge(self.session)
                if kept is not None:
                    return kept
                now = self._situation(local)
                others = replace(self.rules, merges=False)
                kind = due_trigger(others, now) or self._due_retry(now.now_ns)
            if kind is None:
                return None
            self._looked_ns, self._looked_at = now.now_ns, now.touched
            if kind is Kind.END_OF_DAY:
                self._ended_day = day_of(local)
            if kind is Kind.INTERVAL:
                self._interval_ns = now.now_ns
            with self._retried_if_it_fails(kind):
                return self._save_if_changed(self.session, kind)

    def _due_retry(self, now_ns: int) -> Kind | None:
        due = (kind for kind, retry in self._retries.items() if retry.at_ns <= now_ns)
        return next(due, None)

    @contextmanager
    def _retried_if_it_fails(self, kind: Kind) -> Iterator[None]:
        """Waits grow, because the cause may last, such as a full disk."""
        before = self._retries.pop(kind, None)
        try:
            yield
        except Exception:
            wait_ns = _FIRST_RETRY_NS if before is None else 2 * before.wait_ns
            wait_ns = min(wait_ns, _LONGEST_RETRY_NS)
            self._retries[kind] = _Retry(self._clock.monotonic_ns() + wait_ns, wait_ns)
            raise

    def look(self) -> Scan | None:
        """Scan the current workspace, storing nothing. None if in doubt: a full scan is needed
        then, which a client can do itself."""
        with self._lock:
            return None if self.watch.status().doubt else self.opened.engine.scan()

    def begin(self, session: SessionId) -> SaveOutcome | None:
        """From now on, automatic checkpoints go to this session; unsaved changes are saved
        immediately."""
        with self._lock:
            self.session = session
            self._for_caller.engine.recover(required=False)  # raises if no save is possible
            if self._last(session, Kind.INITIAL) is None:
                made = self.save(session, make_intent("Start of the watch"), kind=Kind.INITIAL)
                return self.keep_merge(session) or made
            return self.keep_merge(session) or self._save_if_changed(session, Kind.INTERVAL)

    def has_checkpoint(self, session: SessionId) -> bool:
        with self._lock:
            return self._last(session, Kind.INITIAL) is not None

    def attach(self, session: SessionId) -> None:
        """From now on, automatic checkpoints go to this session; nothing is saved yet, except a
        merge."""
        with self._lock:
            self.session = session
            self._for_caller.engine.recover(required=False)  # raises if no save is possible
            self._for_caller.engine.scan()
            self.keep_merge(session)

    def finish(self) -> SaveOutcome | None:
        """Save the changes since the last checkpoint, as at the end of an interval."""
        with self._lock:
            if self.session is None or not self.rules.interval_ns:
                return None
            return self._save_if_changed(self.session, Kind.INTERVAL)

    def keep_merge(self, session: SessionId) -> SaveOutcome | None:
        """Make a checkpoint if a branch was merged into the main one, and note its position."""
        with self._lock:
            now_ns = self._branch_looked_ns = self._clock.monotonic_ns()
            look = merges.keep_merge(self._for_caller, session)
            self._merge_under_way = look.under_way
            if look.kept is not None:
                self._interval_ns = self.last_used_ns = now_ns
                self._looked_at = 0
            return look.kept

    def _save_if_changed(self, session: SessionId, kind: Kind) -> SaveOutcome | None:
        engine = self._for_caller.engine
        before = self._last(session, kind)
        scan = engine.scan()
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
            # Not all changes are reported, so assume regularly that something may have happened.
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
        """Release memory for store files until the next use."""
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
            f"the workspace {workspace} no longer exists: {error.strerror}",
            hint="use an existing directory",
        ) from None
    return status.st_dev, status.st_ino
