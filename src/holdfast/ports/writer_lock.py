"""One writer at a time for a store, across threads and processes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class WriterLock(Protocol):
    def hold(self, *, wait: bool = ..., looking: bool = ...) -> AbstractContextManager[None]:
        """Be the only writer of the store; `Busy`, naming the holder, after the configured wait
        (or at once without `wait`).

        Re-entrant. What another process left unfinished in the store is put right on entry.
        `StoreReadOnly` where nothing can be written; who is just `looking`, and writes nothing, is
        let in there too, and keeps writers out who come from elsewhere.
        """
        ...

    def let_others_in(self) -> None:
        """Wait, without the lock, as long as somebody who wants it may need to take it."""
        ...
