"""A workspace as a whole: its sessions, settings, history, upkeep and events.

>>> from holdfast import Workspace
>>> with Workspace(Path("my-project")) as workspace:
...     for event in workspace.events(follow=True):
...         print(event.number, event.type, event.checkpoint)

Everything that is not one session's is reached from here, by topic: `workspace.sessions`, … A topic
is a small object over the same open store. Its module is imported when the topic is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.stores import find_workspace as find_workspace
from holdfast.bootstrap.workspace import open_workspace as _open
from holdfast.engine.edits.open_activities import inside
from holdfast.ports.progress import NoProgress as NoProgress

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from holdfast.api.confirmations import Confirmations
    from holdfast.api.contents import Contents
    from holdfast.api.conversation import AgentStates, Conversation
    from holdfast.api.diffs import Diffs
    from holdfast.api.edits import Edits
    from holdfast.api.events import EventFeed
    from holdfast.api.exchange import Acceptances, Bundles
    from holdfast.api.health import Health
    from holdfast.api.history import History
    from holdfast.api.restores import Restores
    from holdfast.api.sessions import Rounds, Sessions
    from holdfast.api.settings import WorkspaceSettings
    from holdfast.api.stores import Keys, Secret
    from holdfast.api.upkeep import Upkeep
    from holdfast.app.automation.watched_workspace import WatchedWorkspace
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.app.open_workspace import SettingProblem as SettingProblem
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.events import Event
    from holdfast.domain.ids import SessionId
    from holdfast.domain.intent import SnapshotIntent
    from holdfast.domain.outcomes import RecoveredRestore, SaveOutcome
    from holdfast.domain.triggers import TriggerRules
    from holdfast.ports.progress import Progress as Progress
    from holdfast.ports.progress import TransferProgress as TransferProgress
    from holdfast.ports.watcher import Watcher

    class OpenOptions(TypedDict, total=False):
        """How to open a workspace; bootstrap's `open_workspace` explains each option."""

        force: bool
        file_filter: Callable[[Path], bool] | None
        environment: Mapping[str, str] | None
        purpose: str
        passive: bool
        recover: bool
        new_store: bool
        protect: bool
        exclude_nested_repositories: bool
        new_secret: Callable[[Path], Secret] | None
        unencrypted: bool
        ask_passphrase: Callable[[], str | None] | None


class Workspace:
    """An open workspace; thread-safe. Raises `NotFound` if nothing was ever saved."""

    _feed: EventFeed | None = None
    _is_closed = False

    def __init__(self, workspace: str | PathLike[str]) -> None:
        from holdfast.api import arguments

        place = Path(arguments.path("workspace", workspace))
        self._opened = _open(place, create=False, purpose="holdfast workspace")

    @classmethod
    def of(cls, opened: OpenWorkspace) -> Workspace:
        """Wrap a workspace that is already open. Closing this closes that workspace too."""
        made = cls.__new__(cls)
        made._opened = opened
        return made

    @property
    def path(self) -> Path:
        return self._opened.engine.vault.workspace

    @property
    def store_directory(self) -> Path:
        return self._opened.store.directory

    @property
    def news(self) -> tuple[str, ...]:
        """What opening the workspace has to report, such as a new store in place of a missing
        one."""
        return self._opened.news

    def is_current(self) -> bool:
        """Whether opening the workspace again would give the same store and settings."""
        return self._opened.is_current()

    @property
    def recovered(self) -> RecoveredRestore | None:
        """The interrupted restore that was finished or rolled back on opening, if there was one."""
        return self._opened.engine.recovery

    @property
    def has_recoveries(self) -> bool:
        """Whether `take_recoveries` would return any."""
        return self._opened.engine.vault.journal.read_report() is not None

    def take_recoveries(self) -> tuple[RecoveredRestore, ...]:
        """Interrupted restores that any process has finished or rolled back since the last call,
        oldest first. The caller reports them to the user."""
        if not self.has_recoveries:
            return ()
        from holdfast.engine.restore.recovery_report import take_report

        return take_report(self._opened.engine.vault)

    @property
    def is_encrypted(self) -> bool:
        return self._opened.store.is_sealed()

    @property
    def has_unfinished_purge(self) -> bool:
        return self._opened.store.purge_note.read() is not None

    def former_store(self) -> tuple[Path, bool] | None:
        """The store that was missing when the current one was created, and whether it is back."""
        from holdfast.bootstrap.stores import former_store

        found = former_store(self.path, self._opened.environment)
        return None if found is None else (found.directory, found.exists())

    @property
    def setting_problems(self) -> tuple[SettingProblem, ...]:
        """Invalid settings."""
        return self._opened.setting_problems

    @property
    def agent_states(self) -> AgentStates:
        from holdfast.api.conversation import AgentStates

        return AgentStates(self._opened)

    @property
    def contents(self) -> Contents:
        from holdfast.api.contents import Contents

        return Contents(self._opened)

    @property
    def conversation(self) -> Conversation:
        from holdfast.api.conversation import Conversation

        return Conversation(self._opened)

    @property
    def diffs(self) -> Diffs:
        from holdfast.api.diffs import Diffs

        return Diffs(self._opened)

    @property
    def edits(self) -> Edits:
        from holdfast.api.edits import Edits

        return Edits(self._opened)

    @property
    def git(self) -> Acceptances:
        from holdfast.api.exchange import Acceptances

        return Acceptances(self._opened)

    @property
    def health(self) -> Health:
        from holdfast.api.health import Health

        return Health(self._opened)

    @property
    def history(self) -> History:
        from holdfast.api.history import History

        return History(self._opened)

    @property
    def sessions(self) -> Sessions:
        from holdfast.api.sessions import Sessions

        return Sessions(self._opened)

    @property
    def restores(self) -> Restores:
        from holdfast.api.restores import Restores

        return Restores(self._opened)

    @property
    def rounds(self) -> Rounds:
        from holdfast.api.sessions import Rounds

        return Rounds(self._opened)

    @property
    def settings(self) -> WorkspaceSettings:
        from holdfast.api.settings import WorkspaceSettings

        return WorkspaceSettings(self._opened)

    @property
    def keys(self) -> Keys:
        from holdfast.api.stores import Keys

        return Keys(self._opened)

    @property
    def upkeep(self) -> Upkeep:
        from holdfast.api.upkeep import Upkeep

        return Upkeep(self._opened)

    @property
    def bundles(self) -> Bundles:
        from holdfast.api.exchange import Bundles

        return Bundles(self._opened)

    def save(
        self,
        session_id: SessionId,
        intent: SnapshotIntent,
        *,
        reuse: bool = False,
        record_environment: bool = False,
    ) -> SaveOutcome:
        """Save the workspace; the checkpoint is durable when this returns.

        With `reuse`, returns HEAD if it is less than a minute old and nothing has changed since.
        With `record_environment`, records tool versions and variable names, unless the setting of
        that name is `never`."""
        engine = self._opened.engine
        return engine.save(
            session_id,
            intent,
            reuse=reuse,
            record_environment=record_environment,
            inside=inside(engine.vault),
        )

    def resolve(self, scope: SessionId | None, reference: str | None) -> Checkpoint:
        """The checkpoint that a reference names, in one session or, for None, in all. Without a
        reference, the one before HEAD."""
        return self._opened.engine.resolve(scope, reference)

    def head(self, scope: SessionId | None = None) -> Checkpoint | None:
        """The current checkpoint of the workspace, or of one session."""
        from holdfast.engine.history.history import head_checkpoint

        return head_checkpoint(self._opened.engine.vault, scope)

    def leaves_out(self, directory: bytes) -> bool:
        """Whether a save would now leave the directory out; False if that is unknown."""
        from holdfast.engine.save.workspace_tree import capture_policy
        from holdfast.engine.scan.ignore_check import leaves_out

        vault = self._opened.engine.vault
        try:
            with vault.open_root() as root_fd:
                return leaves_out(vault.fs, capture_policy(vault), root_fd, directory)
        except OSError:
            return False

    def new_confirmations(self) -> Confirmations:
        """Tokens for previews that a client confirms."""
        from holdfast.api.confirmations import Confirmations

        vault = self._opened.engine.vault
        return Confirmations(vault.clock.monotonic_ns, vault.ids.new_id)

    def new_call_id(self) -> str:
        """An id for a tool call that has none."""
        return self._opened.engine.vault.ids.new_id()

    def report_progress(self, listener: TransferProgress) -> AbstractContextManager[None]:
        """Within the block, report the progress of long work to this listener."""
        return self._opened.engine.vault.progress.reporting_to(listener)

    def watch(
        self, watcher: Watcher, *, listener: Callable[[], None], rules: TriggerRules
    ) -> WatchedWorkspace:
        """Make automatic checkpoints by these rules. `listener` is called when files have changed.
        Closing the result also closes this workspace."""
        from holdfast.app.automation.watched_workspace import WatchedWorkspace

        return WatchedWorkspace(self._opened, watcher, listener=listener, rules=rules)

    def events(
        self, after: int = 0, *, follow: bool = False, timeout_s: float | None = None
    ) -> Iterator[Event]:
        """Every event in the workspace, from any process, oldest first: checkpoints, restores,
        undos, approvals, resets, messages, edits, annotations, deletions, and changes of settings
        and status. Settings and status report the value found at reading; intermediate values can
        be missing.

        `after` is the number of the last event that you have. With `follow`, continue with new
        events until none has happened for `timeout_s`, or until the workspace is closed."""
        if self._is_closed:
            from holdfast.domain.errors import UsageError

            raise UsageError("the workspace is closed", hint="open it again")
        if self._feed is None:
            from holdfast.api.events import EventFeed

            self._feed = EventFeed(self._opened)
        return self._feed.events(after, follow=follow, timeout_s=timeout_s)

    def newest_event(self) -> int:
        """The number of the newest event; 0 if there is none yet."""
        from holdfast.engine.history.events import record_events

        vault = self._opened.engine.vault
        record_events(vault)
        return vault.events.newest()

    def close(self) -> None:
        self._is_closed = True
        if self._feed is not None:
            self._feed.close()
        self._opened.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_workspace(path: Path, *, create: bool, **options: Unpack[OpenOptions]) -> Workspace:
    """Open a workspace's store; with `create`, create it if it is missing."""
    return Workspace.of(_open(path, create=create, **options))
