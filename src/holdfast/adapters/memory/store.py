"""A store in memory, with its event log, stat cache and tool calls.

Its directory holds only quarantined files, so that an engine runs on it with the real file system
for the workspace. Every `MemoryStore` with the same `MemoryStoreState` opens the same store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from pathlib import Path

from holdfast.adapters.memory.catalog import MemoryCatalog
from holdfast.adapters.memory.objects import MemoryObjectStore
from holdfast.adapters.memory.search import MemorySearchIndex
from holdfast.adapters.memory.story import MemoryStory
from holdfast.domain.errors import Busy
from holdfast.domain.events import Event, NewEvent
from holdfast.domain.external_paths import MOST_NAMES
from holdfast.domain.ids import WorkspaceId
from holdfast.domain.paths import is_within
from holdfast.ports.agent_tools import (
    LONGEST_CALL_NS,
    LoggedCall,
    RunningTool,
    id_digest,
    name_digest,
)
from holdfast.ports.event_log import ChangeListener, EventCursors
from holdfast.ports.objects import PackMaintenance
from holdfast.ports.store import AgentStatesBySession

_BEGINS_ABOVE = 1
_EVENT = attrgetter("type", "at_ns", "session_id", "checkpoint", "about")


class MemoryEventLog:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._keys: set[str] = set()
        self._cursors = EventCursors()
        self._lock = threading.RLock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield

    def cursors(self) -> EventCursors:
        return self._cursors

    def ingest(self, new: Sequence[NewEvent], cursors: EventCursors) -> None:
        for one in new:
            if one.key not in self._keys:
                self._keys.add(one.key)
                self._events.append(Event(self.newest() + 1, *_EVENT(one)))
        self._cursors = cursors

    def after(self, number: int, limit: int) -> Sequence[Event]:
        return [event for event in self._events if event.number > number][:limit]

    def newest(self) -> int:
        return self._events[-1].number if self._events else _BEGINS_ABOVE

    def close(self) -> None:
        return None


class MemoryStatCache:
    """See `holdfast.ports.scan_hints`."""

    def __init__(self) -> None:
        self._generation: str | None = None
        self._entries: dict[bytes, bytes] = {}

    def load(self, generation: str) -> dict[bytes, bytes]:
        return dict(self._entries) if generation == self._generation else {}

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        if generation != self._generation:
            self._generation, self._entries = generation, {}
        for path, entry in changed:
            if entry is not None:
                self._entries[path] = entry
                continue
            below = path + b"/" if path else b""
            for known in [k for k in self._entries if k == path or k.startswith(below)]:
                del self._entries[known]

    def erase(self) -> None:
        self._generation, self._entries = None, {}

    def close(self) -> None:
        return None


class MemoryRunningTools:
    """`is_other` says whether an owner is alive and this process does not belong to it."""

    def __init__(self, is_other: Callable[[str], bool] = bool) -> None:
        self._running: dict[str, RunningTool] = {}
        self._is_other = is_other

    def begin(self, key: str, *, owner: str, session: str, tool: str, now_ns: int) -> None:
        self._running[key] = RunningTool(key, now_ns, owner, session, tool, False)

    def end(self, key: str) -> None:
        self._running.pop(key, None)

    def end_all_of(self, session: str) -> None:
        for key in [key for key, call in self._running.items() if call.session == session]:
            del self._running[key]

    def is_empty(self) -> bool:
        return not self._running

    def give_up(self, key: str) -> None:
        if key in self._running:
            self._running[key] = self._running[key]._replace(waited=True)

    def of_others(self, now_ns: int) -> list[RunningTool]:
        return [
            call
            for call in self._running.values()
            if 0 <= now_ns - call.since_ns < LONGEST_CALL_NS and self._is_other(call.owner)
        ]


class MemoryToolLog:
    def __init__(self) -> None:
        self._calls: list[LoggedCall] = []
        self._open: dict[str, tuple[int, str]] = {}
        self._looks: list[tuple[int, str]] = []

    def begin(
        self,
        key: str,
        session_key: str,
        *,
        now_ns: int,
        session_id: str,
        tool: str,
        at: str,
        names: Iterable[bytes] | None,
    ) -> None:
        self._open[key] = len(self._calls), session_key
        named = None if names is None else tuple(map(name_digest, names))
        session = id_digest(session_id.encode())
        self._calls.append(LoggedCall(session, tool, at, now_ns, None, named))

    def end(self, key: str, now_ns: int) -> None:
        if key in self._open:
            self._close(key, now_ns, is_reported=True)

    def end_all_of(self, session_key: str, now_ns: int) -> None:
        for key in [key for key, (_, session) in self._open.items() if session == session_key]:
            self._close(key, now_ns, is_reported=False)

    def unchanged(self, at: str, now_ns: int) -> None:
        self._looks.append((now_ns, at))

    def looks(self) -> list[tuple[int, str]]:
        return list(self._looks)

    def calls(self) -> list[LoggedCall]:
        return list(self._calls)

    def _close(self, key: str, now_ns: int, *, is_reported: bool) -> None:
        place, _ = self._open.pop(key)
        ended = self._calls[place]._replace(ended_ns=now_ns, is_end_reported=is_reported)
        self._calls[place] = ended


_FREE_BYTES = 1 << 40
_JOURNAL, _JOURNAL_NOTE, _RECOVERED, _PURGE_NOTE = "journal", "unlocked", "recovered", "purge"


class MemoryNotes:
    """Small texts by name."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    def exists(self, name: str) -> bool:
        return name in self._texts

    def read(self, name: str) -> bytes | None:
        return self._texts.get(name)

    def write(self, name: str, data: bytes) -> None:
        self._texts[name] = data

    def remove(self, name: str) -> None:
        self._texts.pop(name, None)


class MemoryRestoreJournal:
    """See `holdfast.ports.store.RestoreJournal`."""

    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes

    def read(self) -> bytes | None:
        return self._notes.read(_JOURNAL)

    def write(self, data: bytes) -> None:
        self._notes.write(_JOURNAL, data)

    def remove(self) -> None:
        self._notes.remove(_JOURNAL)

    def quarantine(self, occasion: str) -> None:
        self._notes.write(f"{occasion}/{_JOURNAL}", self._notes.read(_JOURNAL) or b"")
        self.remove()

    def read_note(self) -> bytes | None:
        return self._notes.read(_JOURNAL_NOTE)

    def write_note(self, data: bytes) -> None:
        self._notes.write(_JOURNAL_NOTE, data)

    def remove_note(self) -> None:
        self._notes.remove(_JOURNAL_NOTE)

    def read_report(self) -> bytes | None:
        return self._notes.read(_RECOVERED)

    def write_report(self, data: bytes) -> None:
        self._notes.write(_RECOVERED, data)

    def remove_report(self) -> None:
        self._notes.remove(_RECOVERED)


class MemoryExternalPaths:
    """See `holdfast.ports.store.ExternalPaths`."""

    def __init__(self) -> None:
        self._paths: list[bytes] = []

    def exist(self) -> bool:
        return bool(self._paths)

    def load(self) -> list[bytes]:
        return list(self._paths)

    def add(self, paths: Sequence[bytes]) -> None:
        older = [path for path in self._paths if path not in paths]
        self._paths = [*older, *dict.fromkeys(paths)][-MOST_NAMES:]

    def drop(self, paths: Sequence[bytes]) -> None:
        self._paths = [n for n in self._paths if not any(is_within(n, path) for path in paths)]


class MemoryAgentStates:
    """See `holdfast.ports.store.AgentStates`."""

    def __init__(self) -> None:
        self._states: AgentStatesBySession | None = None

    def exist(self) -> bool:
        return self._states is not None

    def load(self) -> AgentStatesBySession:
        return deepcopy(self._states) if self._states is not None else {}

    def replace(self, states: AgentStatesBySession) -> None:
        self._states = deepcopy(states)


class MemoryNestedRepositories:
    """See `holdfast.ports.store.NestedRepositories`."""

    def __init__(self) -> None:
        self._directories: set[bytes] = set()

    def load(self) -> list[bytes]:
        return sorted(self._directories)

    def add(self, git_directories: Sequence[bytes]) -> None:
        self._directories.update(git_directories)


_LOOK_S = 0.02


class MemoryChangeListener:
    """Compares versions often; see `holdfast.ports.event_log.ChangeListener`."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self._seen = look()
        self._stopped = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        while not self._stopped.is_set() and self._look() == self._seen:
            if timeout_s <= 0:
                return False
            self._stopped.wait(min(_LOOK_S, timeout_s))
            timeout_s -= _LOOK_S
        self._seen = self._look()
        return True

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        return None


class MemoryPurgeNote:
    """See `holdfast.ports.store.PurgeNote`."""

    def __init__(self, notes: MemoryNotes) -> None:
        self._notes = notes

    def read(self) -> bytes | None:
        return self._notes.read(_PURGE_NOTE)

    def write(self, data: bytes) -> None:
        self._notes.write(_PURGE_NOTE, data)

    def remove(self) -> None:
        self._notes.remove(_PURGE_NOTE)


class MemoryNamedPaths:
    """See `holdfast.ports.store.NamedPaths`."""

    def __init__(self) -> None:
        self._paths: tuple[bytes, ...] = ()

    def load(self) -> tuple[bytes, ...]:
        return self._paths

    def replace(self, paths: Sequence[bytes]) -> None:
        self._paths = tuple(paths)


class MemoryHints:
    """See `holdfast.ports.store.Hints`."""

    def __init__(self) -> None:
        self._hints: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self._hints.get(name)

    def write(self, name: str, data: bytes) -> bool:
        self._hints[name] = data
        return True


class DirectoryQuarantine:
    """See `holdfast.ports.store.Quarantine`."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def new_directory(self, occasion: str) -> Path:
        places = (self._store / "quarantine" / f"{occasion}-{n}" for n in count(1))
        path = next(place for place in places if not place.exists())
        path.mkdir(parents=True)
        return path

    def add_note(self, occasion: str, name: str, data: bytes) -> None:
        (self.new_directory(occasion) / name).write_bytes(data)


@dataclass(slots=True)
class MemoryStoreState:
    """Everything that stays when a store is closed and opened again."""

    objects: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    catalog: MemoryCatalog = field(default_factory=MemoryCatalog)
    story: MemoryStory = field(default_factory=MemoryStory)
    search: MemorySearchIndex = field(default_factory=MemorySearchIndex)
    events: MemoryEventLog = field(default_factory=MemoryEventLog)
    stat_cache: MemoryStatCache = field(default_factory=MemoryStatCache)
    running_tools: MemoryRunningTools = field(default_factory=MemoryRunningTools)
    tool_log: MemoryToolLog = field(default_factory=MemoryToolLog)
    notes: MemoryNotes = field(default_factory=MemoryNotes)
    external_paths: MemoryExternalPaths = field(default_factory=MemoryExternalPaths)
    agent_states: MemoryAgentStates = field(default_factory=MemoryAgentStates)
    nested_repositories: MemoryNestedRepositories = field(default_factory=MemoryNestedRepositories)
    named_paths: MemoryNamedPaths = field(default_factory=MemoryNamedPaths)
    hints: MemoryHints = field(default_factory=MemoryHints)
    upkeep: dict[str, int] = field(default_factory=dict)
    released: threading.Condition = field(default_factory=threading.Condition)
    holder: tuple[int, int] | None = None
    depth: int = 0


class MemorySpaceMeter:
    """See `holdfast.ports.store.SpaceMeter`."""

    def __init__(self, state: MemoryStoreState) -> None:
        self._state = state

    def size_bytes(self) -> int:
        return self._state.objects.size_bytes() + self._state.story.size_bytes()

    def others_bytes(self, own_bytes: int) -> int:
        return 0

    def free_bytes(self) -> int:
        return _FREE_BYTES

    def fold_logs(self) -> None:
        return None

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        return ()

    def read_upkeep(self) -> dict[str, int]:
        return dict(self._state.upkeep)

    def note_upkeep(self, **facts: int) -> None:
        self._state.upkeep |= facts


class MemoryStore:
    """See `holdfast.ports.store.OpenStore` for the contract of each member."""

    keys = None

    def __init__(self, state: MemoryStoreState, directory: Path) -> None:
        self._state = state
        self.directory = directory
        self.workspace_id = WorkspaceId(directory.name)
        self.objects = state.objects
        self.catalog = state.catalog
        self.stat_cache = state.stat_cache
        self.story = state.story
        self.search = state.search
        self.events = state.events
        self.running_tools = state.running_tools
        self.tool_log = state.tool_log
        self.named_paths = state.named_paths
        self.hints = state.hints
        self.external_paths = state.external_paths
        self.agent_states = state.agent_states
        self.nested_repositories = state.nested_repositories
        self.purge_note = MemoryPurgeNote(state.notes)
        self.quarantine = DirectoryQuarantine(directory)
        self.journal = MemoryRestoreJournal(state.notes)
        self.space = MemorySpaceMeter(state)
        self.lock_timeout_s = 30.0
        self.patience_s: float | None = None

    @contextmanager
    def hold(self, *, wait: bool = True, read_only: bool = False) -> Iterator[None]:
        """The lock belongs to this opened store and to the thread that took it."""
        state, me = self._state, (id(self), threading.get_ident())
        with state.released:
            if state.holder != me:
                timeout_s = self.lock_timeout_s if wait else 0.0
                if not state.released.wait_for(lambda: state.holder is None, timeout_s):
                    raise Busy("the store is in use by another thread", hint="try again")
                state.holder = me
            state.depth += 1
        try:
            yield
        finally:
            with state.released:
                state.depth -= 1
                if state.depth == 0:
                    state.holder = None
                    state.released.notify_all()

    def yield_lock(self) -> None:
        return None

    def has_story(self) -> bool:
        return not self.story.is_empty()

    def has_running_tools(self) -> bool:
        return not self.running_tools.is_empty()

    def path_inside_workspace(self) -> bytes | None:
        return None

    def is_sealed(self) -> bool:
        return False

    def problems(self) -> Iterator[str]:
        yield from ()

    def files(self) -> Iterator[Path]:
        yield from (path for path in self.directory.rglob("*") if path.is_file())

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        yield from ()

    def erase_leftovers(self) -> None:
        return None

    def open_packs(self) -> PackMaintenance:
        return self.objects.maintenance()

    def open_change_listener(self) -> ChangeListener:
        return MemoryChangeListener(lambda: (self.catalog.version(), self.story.version()))

    def make_ready(self) -> None:
        return None

    def was_replaced(self) -> bool:
        return False

    def forget_pages(self) -> None:
        return None

    def close(self) -> None:
        return None
