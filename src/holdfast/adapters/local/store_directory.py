"""A store as a directory: its lock, files and size, and the parts that are opened on demand.

Needs none of the databases, so that it also serves a store that cannot be opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.layout import RUNNING_TOOLS, StoreLayout
from holdfast.adapters.local.store_errors import SyncFailures, store_trouble
from holdfast.adapters.local.store_files import sync_directory
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.store_notes import (
    LocalQuarantine,
    LocalRestoreJournal,
    StoredAgentStates,
    StoredExternalPaths,
    StoredHints,
    StoredNamedPaths,
    StoredNestedRepositories,
    StoredPurgeNote,
    StoreNotes,
)
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import WorkspaceId
from holdfast.ports.filesystem import Filesystem

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher, StoreKeys
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.event_log import ChangeListener, EventLog
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.store import (
        AgentStates,
        ExternalPaths,
        Hints,
        NamedPaths,
        NestedRepositories,
        PurgeNote,
        Quarantine,
    )
    from holdfast.ports.story import Story
    from holdfast.ports.system import Clock


class LocalSpaceMeter:
    """See `holdfast.ports.store.SpaceMeter` for the contract of each member."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        notes: StoreNotes,
        fold_logs: Callable[[], None],
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._notes = notes
        self._fold_logs = fold_logs

    def size_bytes(self) -> int:
        return size_below(self._layout.directory)

    def others_bytes(self, own_bytes: int) -> int:
        from holdfast.adapters.local.all_stores import other_stores_bytes

        return other_stores_bytes(self._layout, own_bytes)

    def free_bytes(self) -> int:
        return self._fs.free_bytes(os.fsencode(self._layout.directory))

    def fold_logs(self) -> None:
        self._fold_logs()

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Half-written files of `atomic_write`, and the scratch directory of a killed repair."""
        import shutil  # late: it imports half a dozen modules, and saves do not need it

        removed = []
        for path in (*self._layout.directory.glob(".*.new"), self._layout.directory / "repairing"):
            try:
                if path.lstat().st_mtime_ns >= older_than_ns:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except FileNotFoundError:
                continue
            removed.append(path.name)
        return tuple(removed)

    def read_upkeep(self) -> dict[str, int]:
        try:
            noted = json.loads(self._notes.read(self._layout.upkeep.name) or b"{}")
        except (ValueError, RecursionError):
            return {}
        facts = noted.items() if isinstance(noted, dict) else ()
        return {key: fact for key, fact in facts if type(fact) is int}

    def note_upkeep(self, **facts: int) -> None:
        data = json.dumps({**self.read_upkeep(), **facts}).encode()
        self._notes.write(self._layout.upkeep.name, data)


def size_below(directory: Path) -> int:
    total = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    total += size_below(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # a log file that SQLite has just deleted
    return total


class StorePlace:
    """A `holdfast.ports.store.WriterLock`, `holdfast.ports.store.StoreFiles` and
    `holdfast.ports.store.StoreParts`; see there for the contract of each member. `journal` and
    `space` are separate ports."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        clock: Clock,
        lock: StoreLock,
        keys: StoreKeys | None = None,
    ) -> None:
        """`keys` are the keys of an encrypted store."""
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._clock = clock
        self._lock = lock
        self._keys = keys
        self._sync_failures = SyncFailures(fs, layout.suspect)
        cipher = self._cipher("journal")
        self.notes = StoreNotes(fs, layout.directory, self._sync_failures, cipher)
        self.journal = LocalRestoreJournal(self.notes, layout)
        self.space = LocalSpaceMeter(fs, layout, self.notes, self._fold_logs)
        self._story: Story | None = None
        self._search: SearchIndex | None = None
        self._events: EventLog | None = None
        self.lock_timeout_s = 30.0
        self.patience_s: float | None = None
        """How long to wait for a lock holder that makes no progress; None means no limit."""

    @contextmanager
    def hold(self, *, wait: bool = True, read_only: bool = False) -> Iterator[None]:
        timeout_s = self.lock_timeout_s if wait else 0.0
        with self._lock.hold(timeout_s, read_only=read_only, patience_s=self.patience_s):
            yield

    @property
    def story(self) -> Story:
        if self._story is None:
            from holdfast.adapters.local.story.sqlite import open_story  # most saves need none

            self._story = open_story(
                self._fs,
                self._layout,
                self._clock,
                lambda: self.lock_timeout_s,
                patience_s=lambda: self.patience_s,
                cipher=self._cipher("story"),
            )
        return self._story

    def has_story(self) -> bool:
        return os.path.exists(self._layout.story)

    @property
    def search(self) -> SearchIndex:
        if self._search is None:
            from holdfast.adapters.local.search.sqlite import open_search_index  # no save needs it

            self._search = open_search_index(self._layout, self._cipher("search index"))
        return self._search

    @property
    def events(self) -> EventLog:
        if self._events is None:
            from holdfast.adapters.local.event_log import open_event_log  # no save needs it

            self._events = open_event_log(self._layout, self._cipher("events"))
        return self._events

    def open_change_listener(self) -> ChangeListener:
        from holdfast.adapters.local.event_log import open_change_listener

        return open_change_listener(self._layout)

    def close(self) -> None:
        for part in (self._story, self._search, self._events):
            if part is not None:
                part.close()

    def _cipher(self, role: str) -> Cipher | None:
        return None if self._keys is None else self._keys.cipher(role)

    def has_running_tools(self) -> bool:
        return os.path.isdir(self._layout.directory / RUNNING_TOOLS)

    @property
    def running_tools(self) -> RunningTools:
        from holdfast.adapters.local.agent_tools import LocalRunningTools  # most saves meet none

        return LocalRunningTools(self._layout.directory, self.notes)

    @property
    def tool_log(self) -> ToolLog:
        from holdfast.adapters.local.agent_tools import LocalToolLog  # no save needs it

        return LocalToolLog(self._layout.directory, self.notes)

    @property
    def hints(self) -> Hints:
        return StoredHints(self.notes)

    @property
    def named_paths(self) -> NamedPaths:
        return StoredNamedPaths(self.notes, self._layout.named_paths.name)

    @property
    def external_paths(self) -> ExternalPaths:
        return StoredExternalPaths(self.notes)

    @property
    def agent_states(self) -> AgentStates:
        return StoredAgentStates(self.notes)

    @property
    def nested_repositories(self) -> NestedRepositories:
        return StoredNestedRepositories(self.notes)

    @property
    def purge_note(self) -> PurgeNote:
        return StoredPurgeNote(self.notes, self._layout.purge_note.name)

    @property
    def quarantine(self) -> Quarantine:
        return LocalQuarantine(self._fs, self._layout.directory, self.notes)

    @property
    def directory(self) -> Path:
        return self._layout.directory

    @property
    def workspace_id(self) -> WorkspaceId:
        return WorkspaceId(self._layout.directory.name)

    def yield_lock(self) -> None:
        self._lock.yield_lock()

    def problems(self) -> Iterator[str]:
        try:
            self._layout.read_description()
        except StoreDamaged as error:
            yield error.message

    def erase_leftovers(self) -> None:
        with store_trouble("removing temporary files"):
            for path in self._layout.directory.glob(".*.new"):
                self._fs.unlink(os.fsencode(path))
            sync_directory(self._fs, os.fsencode(self._layout.directory))

    def files(self) -> Iterator[Path]:
        for directory, _, names in os.walk(self._layout.directory):
            yield from (Path(directory, name) for name in sorted(names))

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """Without a key, nothing can be opened."""
        return iter(())

    def is_sealed(self) -> bool:
        return self.notes.is_sealed()

    def _fold_logs(self) -> None:
        """Without an open database there is no log to fold."""

    def path_inside_workspace(self) -> bytes | None:
        try:
            return os.fsencode(self._layout.home.relative_to(self._workspace))
        except ValueError:
            return None
