"""A store that is open: its lock, files and parts, and what is done with it as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.ports.store_files import StoreFiles
from holdfast.ports.writer_lock import WriterLock

if TYPE_CHECKING:
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.component_notes import ExternalPaths
    from holdfast.ports.event_log import ChangeListener, EventLog
    from holdfast.ports.restore_journal import RestoreJournal
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.space import SpaceMeter
    from holdfast.ports.story import Story


class StoreParts(Protocol):
    """Parts that a plain save does not touch; each is opened when it is first asked for."""

    def has_story(self) -> bool:
        """Whether anything was ever said: one system call, nothing is opened."""
        ...

    @property
    def story(self) -> Story:
        """What was said and done around the checkpoints."""
        ...

    @property
    def search(self) -> SearchIndex:
        """The index that searches use; the first of them makes it."""
        ...

    @property
    def events(self) -> EventLog:
        """The numbered stream of what happened; the first reader makes it."""
        ...

    def has_running_tools(self) -> bool:
        """Whether a tool call of an agent was ever noted: one system call, nothing is opened."""
        ...

    @property
    def running_tools(self) -> RunningTools: ...

    @property
    def tool_log(self) -> ToolLog: ...

    @property
    def external_paths(self) -> ExternalPaths: ...


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
        ...

    def forget_pages(self) -> None:
        """Keep no memory for files of the store until it is used again."""
        ...

    def open_change_listener(self) -> ChangeListener: ...

    def used_key(self) -> str | None:
        """The id of the key that opened the store; None where the store is not encrypted."""
        ...

    def key_slots(self) -> Sequence[KeySlot]:
        """Of an encrypted store: every key that opens it."""
        ...

    def add_key(self, secret: Any) -> None:
        """Let one more secret open this encrypted store; `secret` comes from `bootstrap.keys`."""
        ...

    def change_key(self, secret: Any) -> None:
        """Put a secret in the place of the one that opened the store."""
        ...

    def remove_key(self, slot_id: str) -> None: ...

    def close(self) -> None: ...
