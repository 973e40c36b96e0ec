"""A store as a directory: its lock, its journal, its size, and room for what is set aside.

Needs none of the databases, so that it also serves a store that cannot be opened.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.atomic_write import atomic_write, sync_directory
from holdfast.adapters.local.layout import RUNNING_TOOLS, StoreLayout
from holdfast.adapters.local.private_files import read_own_file
from holdfast.adapters.local.quarantine import quarantine, quarantine_directory
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.sync_failures import SyncFailures
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest, WorkspaceId
from holdfast.domain.paths import from_text, to_text
from holdfast.ports.filesystem import Filesystem

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.event_log import ChangeListener, EventLog
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.story import Story


class StorePlace:
    """See `holdfast.ports.store_access.StoreAccess` for the contract of each member."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        lock: StoreLock,
        sync_failures: SyncFailures,
        note_cipher: Cipher | None = None,
        *,
        open_story: Callable[[], Story],
        cipher_for: Callable[[str], Cipher] | None = None,
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._workspace = workspace
        self._lock = lock
        self._sync_failures = sync_failures
        self._note_cipher = note_cipher
        self._open_story = open_story
        self._story: Story | None = None
        self._cipher_for = cipher_for
        self._search: SearchIndex | None = None
        self._events: EventLog | None = None
        self.lock_timeout_s = 30.0

    @contextmanager
    def exclusive(self, *, wait: bool = True, looking: bool = False) -> Iterator[None]:
        with self._lock.hold(self.lock_timeout_s if wait else 0.0, looking=looking):
            yield

    @property
    def story(self) -> Story:
        if self._story is None:
            self._story = self._open_story()
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
        from holdfast.adapters.local.change_listener import open_change_listener

        return open_change_listener(self._layout)

    def close_events(self) -> None:
        if self._events is not None:
            self._events.close()

    def _cipher(self, purpose: str) -> Cipher | None:
        return None if self._cipher_for is None else self._cipher_for(purpose)

    def close_search(self) -> None:
        if self._search is not None:
            self._search.close()

    def close_story(self) -> None:
        if self._story is not None:
            self._story.close()

    def has_running_tools(self) -> bool:
        return os.path.isdir(self._layout.directory / RUNNING_TOOLS)

    @property
    def running_tools(self) -> RunningTools:
        from holdfast.adapters.local.running_tools import LocalRunningTools  # most saves meet none

        return LocalRunningTools(self._layout.directory)

    @property
    def tool_log(self) -> ToolLog:
        from holdfast.adapters.local.tool_log import LocalToolLog  # no save needs it

        return LocalToolLog(self._layout.directory)

    @property
    def directory(self) -> Path:
        return self._layout.directory

    @property
    def workspace_id(self) -> WorkspaceId:
        return WorkspaceId(self._layout.directory.name)

    def let_others_in(self) -> None:
        self._lock.let_others_in()

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Half-written files of `atomic_write`, and the workbench of a repair that was killed."""
        import shutil  # late: it brings half a dozen modules, and saves do not need it

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

    def problems(self) -> Iterator[str]:
        try:
            self._layout.read_description()
        except StoreDamaged as error:
            yield error.message

    def read_journal(self) -> bytes | None:
        return self._read(self._layout.journal)

    def write_journal(self, data: bytes) -> None:
        self._write(self._layout.journal, data)

    def remove_journal(self) -> None:
        self._remove(self._layout.journal)

    def read_note(self) -> bytes | None:
        return self._read(self._layout.unlocked)

    def write_note(self, data: bytes) -> None:
        self._write(self._layout.unlocked, data)

    def remove_note(self) -> None:
        self._remove(self._layout.unlocked)

    def read_purge_note(self) -> bytes | None:
        return self._read(self._layout.purge_note)

    def write_purge_note(self, data: bytes) -> None:
        self._write(self._layout.purge_note, data)

    def remove_purge_note(self) -> None:
        self._remove(self._layout.purge_note)
        with store_trouble("finishing a removal"):
            sync_directory(self._fs, os.fsencode(self._layout.directory))

    def has_agent_states(self) -> bool:
        return os.path.lexists(self._layout.agent_states)

    def read_agent_states(self) -> bytes | None:
        return self._read(self._layout.agent_states)

    def write_agent_states(self, data: bytes) -> None:
        self._write(self._layout.agent_states, data)

    def has_external_paths(self) -> bool:
        return os.path.lexists(self._layout.external_paths)

    def read_external_paths(self) -> bytes | None:
        return self._read(self._layout.external_paths)

    def write_external_paths(self, data: bytes) -> None:
        self._write(self._layout.external_paths, data)

    def named_paths(self) -> tuple[bytes, ...]:
        if not os.path.lexists(self._layout.named_paths):
            return ()
        data = self._read(self._layout.named_paths) or b"[]"
        try:
            return tuple(from_text(text) for text in json.loads(data))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return ()  # tools name them again

    def set_named_paths(self, paths: Sequence[bytes]) -> None:
        data = json.dumps([to_text(path) for path in paths])
        self._write(self._layout.named_paths, data.encode())

    def read_nested_repositories(self) -> bytes | None:
        return self._read(self._layout.nested_repositories)

    def write_nested_repositories(self, data: bytes) -> None:
        self._write(self._layout.nested_repositories, data)

    def _read(self, path: Path) -> bytes | None:
        """One of the small files that say what is under way; they name paths and digests, so in
        an encrypted store each is sealed, with its own name as the context."""
        with store_trouble(f"reading its {path.name}"):
            try:
                data = read_own_file(path)
            except FileNotFoundError:
                return None
        if self._note_cipher is None:
            return data
        from holdfast.adapters.local.encryption.cipher import NotAuthentic

        try:
            return self._note_cipher.open(data, path.name.encode())
        except NotAuthentic:
            return b""  # whoever decodes it says that it cannot be used

    def _write(self, path: Path, data: bytes) -> None:
        if self._note_cipher is not None:
            data = self._note_cipher.seal(data, path.name.encode())
        with store_trouble(f"writing its {path.name}"), self._sync_failures.syncing(path):
            atomic_write(self._fs, os.fsencode(path), data)

    def _remove(self, path: Path) -> None:
        with store_trouble(f"removing its {path.name}"), contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(path))

    def erase_leftovers(self) -> None:
        with store_trouble("removing temporary files"):
            for path in self._layout.directory.glob(".*.new"):
                self._fs.unlink(os.fsencode(path))
            sync_directory(self._fs, os.fsencode(self._layout.directory))

    def files(self) -> Iterator[Path]:
        for directory, _, names in os.walk(self._layout.directory):
            yield from (Path(directory, name) for name in sorted(names))

    def opened_parts(self, path: Path) -> Iterator[bytes]:
        """Whoever has no key opens nothing."""
        return iter(())

    def keep_aside(self, occasion: str, name: str, data: bytes) -> None:
        if self._note_cipher is not None:
            data = self._note_cipher.seal(data, name.encode())
        with store_trouble("setting something aside"):
            atomic_write(self._fs, os.fsencode(self.aside(occasion) / name), data)

    def set_journal_aside(self, occasion: str) -> None:
        with store_trouble("setting the journal aside"):
            quarantine(self._layout.directory, occasion, self._layout.journal)

    def is_sealed(self) -> bool:
        return self._note_cipher is not None

    def aside(self, occasion: str) -> Path:
        return quarantine_directory(self._layout.directory, occasion)

    def fold_logs(self) -> None:
        """Whoever has no database open has none to fold."""

    def size_bytes(self) -> int:
        return size_below(self._layout.directory)

    def others_bytes(self, own_bytes: int) -> int:
        from holdfast.adapters.local.all_stores import other_stores_bytes

        return other_stores_bytes(self._layout, own_bytes)

    def search_other_stores(
        self, digests: Collection[Digest]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        from holdfast.adapters.local.all_stores import stores_with

        return stores_with(self._layout, digests)

    def read_upkeep(self) -> dict[str, int]:
        import json

        try:
            noted = json.loads(self._read(self._layout.upkeep) or b"{}")
        except (ValueError, RecursionError):
            return {}
        facts = noted.items() if isinstance(noted, dict) else ()
        return {key: fact for key, fact in facts if type(fact) is int}

    def note_upkeep(self, **facts: int) -> None:
        import json

        data = json.dumps({**self.read_upkeep(), **facts}).encode()
        self._write(self._layout.upkeep, data)

    def free_bytes(self) -> int:
        return self._fs.free_bytes(os.fsencode(self._layout.directory))

    def path_inside_workspace(self) -> bytes | None:
        try:
            return os.fsencode(self._layout.home.relative_to(self._workspace))
        except ValueError:
            return None


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
                continue  # a log file that SQLite has just removed
    return total
