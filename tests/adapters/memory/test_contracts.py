"""The memory adapters keep the contracts of their ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.adapters.memory.catalog import MemoryCatalog
from holdfast.adapters.memory.objects import MemoryObjectStore, MemoryPackMaintenance
from holdfast.adapters.memory.search import MemorySearchIndex
from holdfast.adapters.memory.store import (
    MemoryEventLog,
    MemoryRunningTools,
    MemoryStatCache,
    MemoryStore,
    MemoryStoreState,
    MemoryToolLog,
)
from holdfast.adapters.memory.story import MemoryStory
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.agent_tools import RunningTools, ToolLog
from holdfast.ports.catalog import Catalog
from holdfast.ports.event_log import EventLog
from holdfast.ports.objects import ObjectStore, PackMaintenance
from holdfast.ports.scan_hints import StatCache
from holdfast.ports.search import SearchIndex
from holdfast.ports.store import (
    AgentStates,
    ExternalPaths,
    Hints,
    NamedPaths,
    NestedRepositories,
    OpenStore,
    PurgeNote,
    Quarantine,
    RestoreJournal,
    SpaceMeter,
    StoreParts,
)
from holdfast.ports.story import Story
from holdfast.testing.agent_tools_contract import RunningToolsContract, ToolLogContract
from holdfast.testing.catalog_contract import CatalogContract
from holdfast.testing.change_listener_contract import ChangeListenerContract
from holdfast.testing.derived_contracts import EventLogContract, SearchIndexContract
from holdfast.testing.object_store_contract import ObjectStoreContract
from holdfast.testing.store_contracts import (
    AgentStatesContract,
    ExternalPathsContract,
    HintsContract,
    NamedPathsContract,
    NestedRepositoriesContract,
    PackMaintenanceContract,
    PurgeNoteContract,
    QuarantineContract,
    RestoreJournalContract,
    SpaceMeterContract,
    StoreFilesContract,
    WriterLockContract,
)
from holdfast.testing.story_contract import StoryContract
from holdfast.testing.system_contracts import StatCacheContract


@pytest.mark.requirement("ST-1")
class TestMemoryObjectStore(ObjectStoreContract):
    def open_store(self, place: Path) -> ObjectStore:
        return MemoryObjectStore()


@pytest.mark.requirement("ST-5")
class TestMemoryPackMaintenance(PackMaintenanceContract[MemoryObjectStore]):
    def open_store(self, place: Path) -> MemoryObjectStore:
        return MemoryObjectStore()

    def maintenance_of(self, store: MemoryObjectStore) -> PackMaintenance:
        return MemoryPackMaintenance(store)


@pytest.mark.requirement("CP-8")
class TestMemoryCatalog(CatalogContract):
    def open_catalog(self, place: Path) -> Catalog:
        return MemoryCatalog()


@pytest.mark.requirement("SE-2", "SE-7")
class TestMemoryStory(StoryContract):
    def open_story(self, place: Path) -> Story:
        return MemoryStory()


@pytest.mark.requirement("SE-8")
class TestMemorySearchIndex(SearchIndexContract):
    def open_index(self, directory: Path) -> SearchIndex:
        return MemorySearchIndex()


@pytest.mark.requirement("SE-9")
class TestMemoryEventLog(EventLogContract):
    def open_log(self, directory: Path) -> EventLog:
        return MemoryEventLog()


@pytest.mark.requirement("RL-5")
class TestMemoryStatCache(StatCacheContract):
    def open_cache(self, directory: Path) -> StatCache:
        return MemoryStatCache()


class _Store:
    """The same store each time a directory is given."""

    _states: ClassVar[dict[Path, MemoryStoreState]] = {}

    @contextmanager
    def opened(self, directory: Path) -> Iterator[MemoryStore]:
        self._state = self._states.setdefault(directory, MemoryStoreState())
        yield MemoryStore(self._state, directory)

    @contextmanager
    def open_store(self, directory: Path) -> Iterator[OpenStore]:
        with self.opened(directory) as store:
            yield store

    open_lock = opened
    open_files = opened

    @contextmanager
    def open_journal(self, directory: Path) -> Iterator[RestoreJournal]:
        with self.opened(directory) as store:
            yield store.journal

    @contextmanager
    def open_meter(self, directory: Path) -> Iterator[SpaceMeter]:
        with self.opened(directory) as store:
            yield store.space

    def fill(self, meter: SpaceMeter, size_bytes: int) -> None:
        writer = self._state.objects.writer()
        writer.add(digest_of(bytes(size_bytes)), bytes(size_bytes))
        writer.commit()


@pytest.mark.requirement("ST-3")
class TestMemoryWriterLock(_Store, WriterLockContract):
    pass


@pytest.mark.requirement("ST-3")
class TestMemoryRestoreJournal(_Store, RestoreJournalContract):
    pass


@pytest.mark.requirement("ST-3")
class TestMemorySpaceMeter(_Store, SpaceMeterContract):
    pass


@pytest.mark.requirement("ST-3")
class TestMemoryNotes(
    AgentStatesContract,
    ExternalPathsContract,
    HintsContract,
    NamedPathsContract,
    NestedRepositoriesContract,
    PurgeNoteContract,
    QuarantineContract,
):
    _states: ClassVar[dict[Path, MemoryStoreState]] = {}

    def parts(self, directory: Path) -> StoreParts:
        return MemoryStore(self._states.setdefault(directory, MemoryStoreState()), directory)

    def open_states(self, directory: Path) -> AgentStates:
        return self.parts(directory).agent_states

    def open_paths(self, directory: Path) -> ExternalPaths:
        return self.parts(directory).external_paths

    def open_hints(self, directory: Path) -> Hints:
        return self.parts(directory).hints

    def open_named(self, directory: Path) -> NamedPaths:
        return self.parts(directory).named_paths

    def open_note(self, directory: Path) -> PurgeNote:
        return self.parts(directory).purge_note

    def open_quarantine(self, directory: Path) -> Quarantine:
        return self.parts(directory).quarantine

    def open_repositories(self, directory: Path) -> NestedRepositories:
        return self.parts(directory).nested_repositories


@pytest.mark.requirement("SE-9")
class TestMemoryChangeListener(_Store, ChangeListenerContract):
    pass


@pytest.mark.requirement("ST-3")
class TestMemoryStoreFiles(_Store, StoreFilesContract):
    pass


@pytest.mark.requirement("SE-12")
class TestMemoryRunningTools(RunningToolsContract):
    stranger, own = "stranger", "own"
    _tools: ClassVar[dict[Path, MemoryRunningTools]] = {}

    def open_tools(self, store: Path) -> RunningTools:
        made = MemoryRunningTools(lambda owner: owner == self.stranger)
        return self._tools.setdefault(store, made)


@pytest.mark.requirement("SE-12")
class TestMemoryToolLog(ToolLogContract):
    _logs: ClassVar[dict[Path, MemoryToolLog]] = {}

    def open_log(self, store: Path) -> ToolLog:
        return self._logs.setdefault(store, MemoryToolLog())
