"""A store on this machine: its writer lock, files, restore journal, size, notes and keys.

    OpenStore = WriterLock + StoreFiles + StoreParts, with a RestoreJournal, a SpaceMeter and, if
    encrypted, StoreKeys

These are local by design: a save becomes durable here, wherever it is copied later. Notes are
durable, private, and encrypted in encrypted stores. Writers hold the store's lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from holdfast.domain.ids import WorkspaceId
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.catalog import Catalog
    from holdfast.ports.event_log import ChangeListener, EventLog
    from holdfast.ports.objects import ObjectStore, PackMaintenance
    from holdfast.ports.scan_hints import StatCache
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.story import Story


class WriterLock(Protocol):
    """One writer at a time for a store, across threads and processes."""

    def hold(self, *, wait: bool = ..., read_only: bool = ...) -> AbstractContextManager[None]:
        """Be the only writer of the store; `Busy`, naming the holder, after the configured wait (or
        immediately without `wait`).

        Re-entrant. On entry, another process's unfinished work in the store is repaired.
        `StoreReadOnly` if nothing can be written; a `read_only` holder is admitted there too, and
        keeps writers on other machines out.
        """

    def yield_lock(self) -> None:
        """Wait, without the lock, while another process may need it."""


class StoreFiles(Protocol):
    """The files of a store, and where they are."""

    @property
    def directory(self) -> Path:
        """The directory that contains the whole store."""

    def path_inside_workspace(self) -> bytes | None:
        """The user's data directory as a workspace path, if it is inside the workspace."""

    def is_sealed(self) -> bool:
        """Whether the store is encrypted, so that nothing may be written unencrypted."""

    def problems(self) -> Iterator[str]:
        """Problems with the store as a place: its description, and acknowledged changes."""

    def files(self) -> Iterator[Path]:
        """Every file of the store, to search its bytes."""

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """The decrypted content of one of these files, part by part; nothing if the store is not
        encrypted, because the file's bytes are its content."""

    def erase_leftovers(self) -> None:
        """Remove temporary files of killed writers. All removals so far are then durable."""


class Quarantine(Protocol):
    """Where damaged files are kept, for people to look into."""

    def new_directory(self, occasion: str) -> Path: ...

    def add_note(self, occasion: str, name: str, data: bytes) -> None:
        """Write a note into a new directory of that kind; durable."""


class PurgeNote(Protocol):
    """The record of an unfinished purge, so that it can be finished after a crash."""

    def read(self) -> bytes | None: ...

    def write(self, data: bytes) -> None:
        """Durable when it returns."""

    def remove(self) -> None:
        """Durable when it returns."""


class NamedPaths(Protocol):
    """Ignored files of the workspace that tools named."""

    def load(self) -> tuple[bytes, ...]:
        """Oldest first; empty if the list is unusable."""

    def replace(self, paths: Sequence[bytes]) -> None:
        """Durable when this returns. Called with the lock held."""


class Hints(Protocol):
    """Small files of automatic work, by name. Nothing depends on them."""

    def read(self, name: str) -> bytes | None:
        """None if it is missing or unusable."""

    def write(self, name: str, data: bytes) -> bool:
        """Replace a hint as a whole, encrypted in encrypted stores. It is not synced, because
        agents wait for it. Returns whether that worked, and never raises `OSError`."""


StoresWithObjects: TypeAlias = tuple[tuple[Path, ...], tuple[Path, ...]]
"""This user's workspaces whose stores have any of some objects, and stores that cannot be searched
because they are encrypted or unreadable."""


class RestoreJournal(Protocol):
    """What a restore records before it changes anything, so that it can be recovered after a crash;
    a note about permissions; and a report about recoveries that no user has seen yet.

    All are encrypted in encrypted stores, and read as empty if they fail authentication. Called
    with the store's lock held, except that the report may be read without it."""

    def read(self) -> bytes | None:
        """The journal of an unfinished restore, or None."""

    def write(self, data: bytes) -> None:
        """Durable when it returns (I4)."""

    def remove(self) -> None: ...

    def quarantine(self, occasion: str) -> None:
        """Move an unusable journal away without deleting it."""

    def read_note(self) -> bytes | None:
        """The note of a restore that has not begun its changes, or None."""

    def write_note(self, data: bytes) -> None:
        """Durable when it returns."""

    def remove_note(self) -> None: ...

    def read_report(self) -> bytes | None:
        """The report about recoveries, or None; one system call if there is none."""

    def write_report(self, data: bytes) -> None:
        """Durable when it returns."""

    def remove_report(self) -> None: ...


class SpaceMeter(Protocol):
    """The size of a store, the free space, and ways to free some."""

    def size_bytes(self) -> int:
        """The total size of the store on disk: content, catalog, logs, caches."""

    def others_bytes(self, own_bytes: int) -> int:
        """The size of this user's other stores, a few minutes old at most. It also publishes this
        store's size."""

    def free_bytes(self) -> int:
        """The free space for this user on the store's disk."""

    def fold_logs(self) -> None:
        """Free the space of write-ahead logs, with the lock held. A log that another process is
        reading stays."""

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Remove temporary files of killed processes that are older than this. Returns their
        names."""

    def read_upkeep(self) -> dict[str, int]:
        """The note about the last cleanup and the last check; empty if it was lost."""

    def note_upkeep(self, **facts: int) -> None:
        """Add to the note, or change it."""


AgentStatesBySession = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Session id, agent id, and the agent's state: a JSON object."""


class AgentStates(Protocol):
    """The last states that agents set through the Python API."""

    def exist(self) -> bool:
        """Whether any was ever set; one system call."""

    def load(self) -> AgentStatesBySession:
        """All last states; `StoreDamaged` if unreadable."""

    def replace(self, states: AgentStatesBySession) -> None:
        """Replace all states; durable when this returns."""


class ExternalPaths(Protocol):
    """Paths outside the workspace that tools have named, up to a limit."""

    def exist(self) -> bool:
        """Whether any was ever named; one system call."""

    def load(self) -> list[bytes]:
        """Absolute paths, least recently named first; `StoreDamaged` if unreadable."""

    def add(self, paths: Sequence[bytes]) -> None:
        """Add paths as the newest; durable when this returns."""

    def drop(self, paths: Sequence[bytes]) -> None:
        """Remove these and everything below; durable when this returns."""


class NestedRepositories(Protocol):
    """Repositories inside the workspace in which commits are kept alive for checkpoints.

    They are released when the last checkpoint that refers to them is gone."""

    def load(self) -> list[bytes]:
        """Git directories, relative to the workspace; empty if the note is unusable."""

    def add(self, git_directories: Sequence[bytes]) -> None:
        """Add repositories; durable when this returns."""


class StoreParts(Protocol):
    """Parts that are opened on first use; a plain save uses hardly any."""

    def has_story(self) -> bool:
        """Whether there is a story: one system call, nothing is opened."""

    @property
    def story(self) -> Story:
        """Messages, annotations and edits."""

    @property
    def search(self) -> SearchIndex:
        """The search index; the first search creates it."""

    @property
    def events(self) -> EventLog:
        """The event stream; the first reader creates it."""

    def has_running_tools(self) -> bool:
        """Whether any tool call was ever noted: one system call, nothing is opened."""

    @property
    def running_tools(self) -> RunningTools: ...

    @property
    def tool_log(self) -> ToolLog: ...

    @property
    def hints(self) -> Hints: ...

    @property
    def named_paths(self) -> NamedPaths: ...

    @property
    def external_paths(self) -> ExternalPaths: ...

    @property
    def agent_states(self) -> AgentStates: ...

    @property
    def nested_repositories(self) -> NestedRepositories: ...

    @property
    def purge_note(self) -> PurgeNote: ...

    @property
    def quarantine(self) -> Quarantine: ...


KEY_FILE = "key file"
PASSPHRASE = "passphrase"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """The secret that opens an encrypted store: the content of a key file, or a passphrase."""

    kind: str
    data: bytes

    @classmethod
    def passphrase(cls, text: str) -> Secret:
        import unicodedata

        # The same letters may have other code points on another keyboard or system.
        return cls(
            PASSPHRASE, unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")
        )

    @classmethod
    def key_file(cls, content: bytes) -> Secret:
        return cls(KEY_FILE, content)


class KeySlot(Protocol):
    """A key that opens an encrypted store: a passphrase or a key file."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> str: ...


class StoreKeys(Protocol):
    """The keys of an encrypted store."""

    @property
    def used(self) -> str:
        """The id of the key that opened the store."""

    def all(self) -> Sequence[KeySlot]: ...

    def add(self, secret: Secret) -> None:
        """Add a secret that opens the store."""

    def change(self, secret: Secret) -> None:
        """Replace the secret that opened the store."""

    def remove(self, slot_id: str) -> None: ...


class OpenStore(WriterLock, StoreFiles, StoreParts, Protocol):
    """A store with its catalog and objects open."""

    lock_timeout_s: float
    patience_s: float | None
    """How long to wait for a lock holder that makes no progress; None means no limit."""

    @property
    def workspace_id(self) -> WorkspaceId: ...

    @property
    def objects(self) -> ObjectStore: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def stat_cache(self) -> StatCache: ...

    @property
    def journal(self) -> RestoreJournal: ...

    @property
    def space(self) -> SpaceMeter: ...

    @property
    def keys(self) -> StoreKeys | None:
        """None if the store is not encrypted."""

    def open_packs(self) -> PackMaintenance: ...

    def make_ready(self) -> None:
        """Complete a store that is new, of an older format, or was interrupted. `objects` may be
        another one afterwards."""

    def was_replaced(self) -> bool:
        """Whether another process has replaced the catalog, as a repair does, or deleted it."""

    def forget_pages(self) -> None:
        """Release memory for store files until the store is used again."""

    def open_change_listener(self) -> ChangeListener: ...

    def close(self) -> None: ...
