"""The store as a place: its lock, its journal, its size, and where it may not be scanned."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.ids import Digest, WorkspaceId

if TYPE_CHECKING:
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.event_log import EventLog
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.story import Story


class StoreAccess(Protocol):
    @property
    def workspace_id(self) -> WorkspaceId:
        """The id that ties the store to its workspace; a copy of either has another, and so has the
        store that another user keeps of the same workspace. It can be part of a file name."""
        ...

    def exclusive(self, *, wait: bool = ..., looking: bool = ...) -> AbstractContextManager[None]:
        """Be the only writer of the store; `Busy`, naming the holder, after the configured wait
        (or at once without `wait`).

        Re-entrant. What another process left unfinished in the store is put right on entry.
        `StoreReadOnly` where nothing can be written; who is just `looking`, and writes nothing, is
        let in there too, and keeps writers out who come from elsewhere.
        """
        ...

    @property
    def story(self) -> Story:
        """What was said and done around the checkpoints; opened when it is first asked."""
        ...

    @property
    def search(self) -> SearchIndex:
        """The index that searches use; its file is opened, or made, by the first of them."""
        ...

    @property
    def events(self) -> EventLog:
        """The numbered stream of what happened; its file is opened, or made, by who follows it."""
        ...

    def has_running_tools(self) -> bool:
        """Whether a tool call of an agent was ever noted: one look, nothing is opened."""
        ...

    @property
    def running_tools(self) -> RunningTools: ...

    @property
    def tool_log(self) -> ToolLog: ...

    def has_story(self) -> bool:
        """Whether anything was ever said: one look, nothing is opened."""
        ...

    def read_journal(self) -> bytes | None:
        """The journal of a restore that has not finished, or None."""
        ...

    def write_journal(self, data: bytes) -> None:
        """Durable when it returns (I4)."""
        ...

    def remove_journal(self) -> None: ...

    def read_purge_note(self) -> bytes | None:
        """What a removal that has not finished noted down, or None."""
        ...

    def write_purge_note(self, data: bytes) -> None:
        """Durable when it returns."""
        ...

    def remove_purge_note(self) -> None:
        """Durable when it returns."""
        ...

    @property
    def directory(self) -> Path:
        """Where everything of the store lies."""
        ...

    def erase_leftovers(self) -> None:
        """Take away temporary files of killed writers; every removal so far is then durable."""
        ...

    def files(self) -> Iterator[Path]:
        """Every file of the store, whatever it is, for looking into its bytes."""
        ...

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """What one of these files says to whoever has the key of the store, part by part; nothing
        where the store is not encrypted, and its bytes say it themselves."""
        ...

    def read_note(self) -> bytes | None:
        """What a restore that has not begun its changes left to be put right, or None."""
        ...

    def write_note(self, data: bytes) -> None:
        """Durable when it returns."""
        ...

    def remove_note(self) -> None: ...

    def keep_aside(self, occasion: str, name: str, data: bytes) -> None:
        """Leave a note about an occasion beside the store's own data; durable."""
        ...

    def set_journal_aside(self, occasion: str) -> None:
        """Take a journal that cannot be used out of the way without deleting it."""
        ...

    def is_sealed(self) -> bool:
        """Whether the store is encrypted, so that nothing may be put there as it is."""
        ...

    def aside(self, occasion: str) -> Path:
        """A fresh directory for what is taken out of the way."""
        ...

    def fold_logs(self) -> None:
        """Give back what write-ahead logs take beside their databases, with the lock held; one
        that somebody reads stays as it is."""
        ...

    def let_others_in(self) -> None:
        """Wait, without the lock, as long as somebody who wants it may need to take it."""
        ...

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Remove temporary files of killed processes that are older than that; their names."""
        ...

    def problems(self) -> Iterator[str]:
        """What is wrong with the store as a place: its description, what it acknowledged."""
        ...

    def size_bytes(self) -> int:
        """Everything the store takes on disk: content, catalog, logs, caches."""
        ...

    def others_bytes(self, own_bytes: int) -> int:
        """What the other stores of this user take, as of the last minutes; they learn what this
        one takes."""
        ...

    def search_other_stores(
        self, digests: Collection[Digest]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Workspaces of this user whose stores have any of these objects, and stores that cannot be
        asked: encrypted ones, and those that cannot be read."""
        ...

    def read_upkeep(self) -> dict[str, int]:
        """What was noted about the last cleanup; may be lost, and is then empty."""
        ...

    def note_upkeep(self, **facts: int) -> None:
        """Add to that, or change it."""
        ...

    def free_bytes(self) -> int:
        """What the disk of the store has left for this user."""
        ...

    def path_inside_workspace(self) -> bytes | None:
        """The store's own directory as a path of the workspace, if it lies in it."""
        ...

    def named_paths(self) -> tuple[bytes, ...]:
        """Ignored files of the workspace that tools named, the oldest first; durable."""
        ...

    def set_named_paths(self, paths: Sequence[bytes]) -> None:
        """In place of those that there were; durable when it returns. Called with the lock held."""
        ...
