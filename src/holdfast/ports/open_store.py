"""A store that is open: its lock, files and parts, and what is done with it as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.ports.store_files import StoreFiles
from holdfast.ports.store_parts import StoreParts
from holdfast.ports.writer_lock import WriterLock

if TYPE_CHECKING:
    from holdfast.ports.event_log import ChangeListener
    from holdfast.ports.restore_journal import RestoreJournal
    from holdfast.ports.space import SpaceMeter


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
