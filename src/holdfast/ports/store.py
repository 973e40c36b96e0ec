"""A store on this machine: its writer lock, files, restore journal, size, notes and keys.

    OpenStore = WriterLock + StoreFiles + StoreParts, with a RestoreJournal and a SpaceMeter

These are local by design: a save becomes durable here, whatever receives it later. Notes are
durable, private, and sealed where the store is encrypted. Writers hold the store's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.domain.ids import Digest
from holdfast.values.classes import dataclass

if TYPE_CHECKING:
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.event_log import ChangeListener, EventLog
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.story import Story


class WriterLock(Protocol):
    """One writer at a time for a store, across threads and processes."""

    def hold(self, *, wait: bool = ..., looking: bool = ...) -> AbstractContextManager[None]:
        """Be the only writer of the store; `Busy`, naming the holder, after the configured wait
        (or at once without `wait`).

        Re-entrant. On entry, the unfinished work of another process in the store is repaired.
        `StoreReadOnly` where nothing can be written; a reader that is just `looking` is admitted
        there too, and keeps writers of other machines out.
        """

    def let_others_in(self) -> None:
        """Wait, without the lock, as long as another process may need to take it."""


class StoreFiles(Protocol):
    """Files, for proofs that something is gone, for quarantine, and for small notes."""

    @property
    def directory(self) -> Path:
        """Everything of the store is below it."""

    def path_inside_workspace(self) -> bytes | None:
        """The user's data directory as a path of the workspace, if it is inside."""

    def is_sealed(self) -> bool:
        """Whether the store is encrypted, so that nothing may be put there as it is."""

    def problems(self) -> Iterator[str]:
        """What is wrong with the store as a place: its description, what it acknowledged."""

    def files(self) -> Iterator[Path]:
        """Every file of the store, whatever it is, for looking into its bytes."""

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """The decrypted content of one of these files, part by part; nothing where the store is not
        encrypted, because the bytes of the file are its content."""

    def erase_leftovers(self) -> None:
        """Take away temporary files of killed writers; every removal so far is then durable."""

    def search_other_stores(
        self, digests: Collection[Digest]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Workspaces of this user whose stores have any of these objects, and stores that cannot be
        asked: encrypted ones, and those that cannot be read."""

    def quarantine_directory(self, occasion: str) -> Path:
        """A fresh directory for what is taken out of the way."""

    def quarantine_note(self, occasion: str, name: str, data: bytes) -> None:
        """Leave a note about an occasion in a fresh directory of that kind; durable."""

    def read_purge_note(self) -> bytes | None:
        """The record of an unfinished purge, or None."""

    def write_purge_note(self, data: bytes) -> None:
        """Durable when it returns."""

    def remove_purge_note(self) -> None:
        """Durable when it returns."""

    def named_paths(self) -> tuple[bytes, ...]:
        """Ignored files of the workspace that tools named, the oldest first; durable."""

    def set_named_paths(self, paths: Sequence[bytes]) -> None:
        """In place of those that there were; durable when it returns. Called with the lock held."""


class RestoreJournal(Protocol):
    """What a restore notes before it changes anything, so that a crash can be recovered from; and a
    note beside it about permissions. Both are sealed where the store is encrypted, and empty when
    their seal does not match. Called with the store's lock held."""

    def read(self) -> bytes | None:
        """The journal of a restore that has not finished, or None."""

    def write(self, data: bytes) -> None:
        """Durable when it returns (I4)."""

    def remove(self) -> None: ...

    def quarantine(self, occasion: str) -> None:
        """Take a journal that cannot be used out of the way without deleting it."""

    def read_note(self) -> bytes | None:
        """Leftovers of a restore that has not begun its changes, or None."""

    def write_note(self, data: bytes) -> None:
        """Durable when it returns."""

    def remove_note(self) -> None: ...


class SpaceMeter(Protocol):
    """What a store takes on disk, what is left, and giving some of it back."""

    def size_bytes(self) -> int:
        """Everything the store takes on disk: content, catalog, logs, caches."""

    def others_bytes(self, own_bytes: int) -> int:
        """What the other stores of this user take, as of the last minutes; they learn what this
        one takes."""

    def free_bytes(self) -> int:
        """The free space for this user on the disk of the store."""

    def fold_logs(self) -> None:
        """Give back what write-ahead logs take beside their databases, with the lock held; one that
        a process is reading stays as it is."""

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Remove temporary files of killed processes that are older than that; their names."""

    def read_upkeep(self) -> dict[str, int]:
        """What was noted about the last cleanup; may be lost, and is then empty."""

    def note_upkeep(self, **facts: int) -> None:
        """Add to that, or change it."""


AgentStatesBySession = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Session id, agent id, and what the agent gave: an object of JSON."""


class AgentStates(Protocol):
    """What agents reported about themselves through the library last."""

    def exist(self) -> bool:
        """Whether anything was ever given; one system call."""

    def load(self) -> AgentStatesBySession:
        """Everything that was given last; `StoreDamaged` when it cannot be read."""

    def replace(self, states: AgentStatesBySession) -> None:
        """All at once; durable when it returns."""


class ExternalPaths(Protocol):
    """Paths outside the workspace that tools have named, until others take their place."""

    def exist(self) -> bool:
        """Whether any was ever named; one system call."""

    def load(self) -> list[bytes]:
        """Absolute paths, the one that was named first at the beginning; `StoreDamaged` when they
        cannot be read."""

    def add(self, paths: Sequence[bytes]) -> None:
        """Name some, which are then the newest; durable when it returns."""

    def drop(self, paths: Sequence[bytes]) -> None:
        """Take away these and all below them; durable when it returns."""


class NestedRepositories(Protocol):
    """Repositories inside the workspace in which commits are kept alive for checkpoints. They are
    released when the last checkpoint that knew of them is gone."""

    def load(self) -> list[bytes]:
        """Git directories, relative to the workspace; none when the note cannot be used."""

    def add(self, git_directories: Sequence[bytes]) -> None:
        """Note some more; durable when it returns."""


class StoreParts(Protocol):
    """Parts that a plain save does not touch; each is opened when it is first asked for."""

    def has_story(self) -> bool:
        """Whether anything was ever said: one system call, nothing is opened."""

    @property
    def story(self) -> Story:
        """What was said and done around the checkpoints."""

    @property
    def search(self) -> SearchIndex:
        """The index that searches use; the first of them makes it."""

    @property
    def events(self) -> EventLog:
        """The numbered stream of what happened; the first reader makes it."""

    def has_running_tools(self) -> bool:
        """Whether a tool call of an agent was ever noted: one system call, nothing is opened."""

    @property
    def running_tools(self) -> RunningTools: ...

    @property
    def tool_log(self) -> ToolLog: ...

    @property
    def external_paths(self) -> ExternalPaths: ...


KEY_FILE = "key file"
PASSPHRASE = "passphrase"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """What opens an encrypted store: the content of a key file, or a passphrase."""

    kind: str
    data: bytes

    @classmethod
    def passphrase(cls, text: str) -> Secret:
        import unicodedata

        # Typed on another keyboard or system, the same letters may come as other code points.
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


class OpenStore(WriterLock, StoreFiles, StoreParts, Protocol):
    lock_timeout_s: float
    patience_s: float | None
    """How long a holder of the lock is waited for that makes no progress; None: no limit."""

    @property
    def journal(self) -> RestoreJournal: ...

    @property
    def space(self) -> SpaceMeter: ...

    def was_replaced(self) -> bool:
        """Whether another process has exchanged its catalog, as a repair does, or removed it."""

    def forget_pages(self) -> None:
        """Keep no memory for files of the store until it is used again."""

    def open_change_listener(self) -> ChangeListener: ...

    def used_key(self) -> str | None:
        """The id of the key that opened the store; None where the store is not encrypted."""

    def key_slots(self) -> Sequence[KeySlot]:
        """Of an encrypted store: every key that opens it."""

    def add_key(self, secret: Secret) -> None:
        """Let one more secret open this encrypted store."""

    def change_key(self, secret: Secret) -> None:
        """Replace the secret that opened the store."""

    def remove_key(self, slot_id: str) -> None: ...

    def close(self) -> None: ...
