"""The context of an operation: one workspace and its store, assembled by bootstrap.

Errors of the workspace's file system are translated into Holdfast's errors here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import (
    HoldfastError,
    NoSpace,
    Refused,
    WorkspaceRefused,
    WorkspaceTrouble,
)
from holdfast.domain.ids import Digest
from holdfast.domain.settings.schema import Settings
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.ports.catalog import Catalog
from holdfast.ports.filesystem import DIRECTORY_FLAGS, Filesystem
from holdfast.ports.objects import ObjectStore
from holdfast.ports.progress import ProgressRelay
from holdfast.values.classes import dataclass, field

if TYPE_CHECKING:
    from holdfast.domain.ids import WorkspaceId
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.component import Component, Components
    from holdfast.ports.event_log import EventLog
    from holdfast.ports.live_database import LiveDatabases
    from holdfast.ports.objects import PackMaintenance
    from holdfast.ports.repository import WorkRepository
    from holdfast.ports.scan_hints import SecondReader, StatCache
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.store import (
        RestoreJournal,
        SpaceMeter,
        StoreFiles,
        StoreParts,
        StoresWithObjects,
        WriterLock,
    )
    from holdfast.ports.story import Story
    from holdfast.ports.system import Clock, IdSource, Processes


class NoComponents:
    """Captures files and nothing else."""

    def any_for(self, workspace: Path, *, recorded: bool) -> bool:
        return False

    def all(self) -> Sequence[Component]:
        return ()

    def applying(self, workspace: Path) -> Sequence[Component]:
        return ()

    def named(self, names: Container[str]) -> Sequence[Component]:
        return ()

    def missing(self) -> Sequence[str]:
        return ()


def _no_repository() -> WorkRepository:
    raise Refused("git is not available here")


def _no_packs() -> PackMaintenance:
    raise Refused("this store has no packs")


def _free_no_other_store(needed_bytes: int) -> None:
    """For a store that cannot free space in other stores."""


def _search_no_other_store(digests: Collection[Digest]) -> StoresWithObjects:
    return (), ()


@dataclass(frozen=True, slots=True)
class Vault:
    """One workspace, its store, its settings, and the outside world as ports."""

    workspace: Path
    workspace_id: WorkspaceId
    fs: Filesystem
    databases: LiveDatabases
    objects: ObjectStore
    catalog: Catalog
    stat_cache: StatCache
    lock: WriterLock
    journal: RestoreJournal
    space: SpaceMeter
    files: StoreFiles
    parts: StoreParts
    clock: Clock
    ids: IdSource
    processes: Processes
    settings: Settings
    progress: ProgressRelay = field(default_factory=ProgressRelay)
    components: Components = field(default_factory=NoComponents)
    open_repository: Callable[[], WorkRepository] = _no_repository
    open_packs: Callable[[], PackMaintenance] = _no_packs
    second_reader: SecondReader | None = None
    evict_from_other_stores: Callable[[int], None] = _free_no_other_store
    search_other_stores: Callable[[Collection[Digest]], StoresWithObjects] = _search_no_other_store

    @property
    def story(self) -> Story:
        """Opened on first use; `has_story` says whether there is one."""
        return self.parts.story

    @property
    def search(self) -> SearchIndex:
        """The search index of recorded messages; no save touches it."""
        return self.parts.search

    @property
    def events(self) -> EventLog:
        return self.parts.events

    def has_story(self) -> bool:
        return self.parts.has_story()

    @property
    def running_tools(self) -> RunningTools:
        """Agents' running tool calls. Check `parts.has_running_tools` first."""
        return self.parts.running_tools

    @property
    def tool_log(self) -> ToolLog:
        return self.parts.tool_log

    def load_tree(self, digest: Digest) -> Tree:
        return decode_tree(self.objects.read(digest))

    @contextmanager
    def open_root(self) -> Iterator[int]:
        """A handle on the workspace. Everything below is opened relative to it, without following
        links.

        The last component must not be a link either: the path was resolved when the workspace was
        opened, so a link there is new."""
        try:
            fd = self.fs.open(os.fsencode(self.workspace), DIRECTORY_FLAGS)
        except OSError as error:
            raise WorkspaceRefused(
                f"cannot open the workspace {self.workspace}: {error.strerror}",
                hint="check that the directory exists and that you can read it",
            ) from None
        try:
            yield fd
        finally:
            self.fs.close(fd)

    def scan_generation(self, root_fd: int) -> str:
        """The scope in which remembered scans are valid: directory, disk and store content."""
        status = self.fs.fstat(root_fd)
        return f"1:{status.st_dev}:{status.st_ino}:{self.objects.generation()}"


FULL = (errno.ENOSPC, errno.EDQUOT)


def workspace_trouble(workspace: Path, error: OSError) -> HoldfastError:
    if error.errno in FULL:
        return NoSpace(
            f"no space left on the disk of {workspace}", hint="free some disk space and try again"
        )
    return WorkspaceTrouble(
        f"the workspace {workspace} failed: {error.strerror or error}",
        hint="fix the cause and try again; nothing was lost",
    )
