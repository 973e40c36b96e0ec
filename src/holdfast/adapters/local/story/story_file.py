"""The file of a story: opened on first use, written under its own lock.

    read:   no file → an empty story; another file than before (a repair) → reopened
    write:  lock → acknowledged changes are still there → one transaction, fsynced → noted

Guarantees: written data is durable. A log that lost commits is detected before anything is added to
it. Problems here never affect the catalog. Not guaranteed: that a reader that began before a repair
sees what the repair recovered.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from holdfast.adapters.local.commit_notes import (
    SLOT_BYTES,
    NotedChanges,
    changes_are_damaged,
    decode_changes,
)
from holdfast.adapters.local.sqlite_connection import (
    connect,
    database_trouble,
    fold_log,
    scrub,
)
from holdfast.adapters.local.store_errors import SyncFailures, store_trouble, suspect
from holdfast.adapters.local.store_files import identity_of, quarantine, sync_directory
from holdfast.adapters.local.story.migrations import (
    CHANGES,
    OF_THE_STORY,
    is_migrated,
    migrate_story,
)
from holdfast.adapters.local.story.rows import fact_of, set_fact
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.store_lock import StoreLock
    from holdfast.ports.filesystem import Filesystem

_FORGOT = "the conversation data has lost its newest acknowledged changes"


class StoryFile:
    """One per opened store; thread-safe."""

    def __init__(
        self,
        fs: Filesystem,
        path: Path,
        lock: StoreLock,
        *,
        lock_timeout_s: Callable[[], float],
        patience_s: Callable[[], float | None] = lambda: None,
        cipher: Cipher | None = None,
    ) -> None:
        self.path = path
        self._fs = fs
        self._lock = lock
        self._lock_timeout_s = lock_timeout_s
        self._patience_s = patience_s
        self._cipher = cipher
        self._sync_failures = SyncFailures(fs, path.with_name("story.suspect"))
        self._guard = threading.RLock()
        self._db: apsw.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._migrated = False

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection | None]:
        """None if there is no story."""
        if not self._is_ready():
            with self._locked():  # never with the guard held: writers take them in this order
                pass
        with self._guard, database_trouble(self.path):
            yield self._current()

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Everything done with the connection becomes durable together, or not at all.

        After a failed fsync, taking the lock verifies the file first, or raises.
        """
        with self._locked() as db:
            self._require_acknowledged(db)
            with database_trouble(self.path, self._sync_failures):
                with db:
                    yield db
                    changes = self._changes(db) + 1
                    set_fact(db, SessionId(OF_THE_STORY), CHANGES, str(changes))
                self._lock.note(0, NotedChanges(changes).encode())
                fold_log(db, self.path, self._sync_failures)

    def erase_traces(self) -> None:
        if not self.path.exists():
            return
        with self._locked() as db:
            with store_trouble("removing files that a repair left"):
                rebuilt_beside(self.path).unlink(missing_ok=True)
            with database_trouble(self.path):
                scrub(db, self.path)

    def forgotten(self) -> str | None:
        """A description of acknowledged changes that are lost."""
        notes = self._lock.read_notes(SLOT_BYTES + 1)  # read first: the story is never behind
        if changes_are_damaged(notes):
            return "the record of the last acknowledged conversation change is damaged"
        noted = decode_changes(notes)
        if noted is None or noted.count == 0:
            return None
        with self.reading() as db:
            if db is None:
                return "the store's story.db is missing"
            return None if self._changes(db) >= noted.count else _FORGOT

    def size_bytes(self) -> int:
        total = 0
        for suffix in ("", "-wal"):
            try:
                total += self.path.with_name(self.path.name + suffix).stat().st_size
            except FileNotFoundError:
                continue
        return total

    def close(self) -> None:
        with self._guard:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _locked(self) -> Iterator[apsw.Connection]:
        with self._lock.hold(self._lock_timeout_s(), patience_s=self._patience_s()):
            if self._sync_failures.is_noted():
                self._read_back()
            with self._guard:
                yield self._opened()

    def _current(self) -> apsw.Connection | None:
        """The connection to the current file."""
        present = identity_of(self.path)
        if self._db is not None and present != self._identity:
            self.close()
        if self._db is None and present is not None:
            self._connect()
        return self._db

    def _opened(self) -> apsw.Connection:
        """The connection, created if needed and ready for use; the lock is held."""
        db = self._current()
        if db is None:
            with store_trouble("creating its story.db"):
                self._make_room()
            db = self._connect()
            with store_trouble("creating its story.db"):
                sync_directory(self._fs, os.fsencode(self.path.parent))
        with database_trouble(self.path):
            # Checked each time, because a later version may have migrated it meanwhile.
            if not is_migrated(db):
                migrate_story(db)
            self._migrated = True
        return db

    def _make_room(self) -> None:
        """A log without its database is useless; a rebuilt story takes the place."""
        left = [self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-shm")]
        if any(path.exists() for path in left):
            quarantine(self.path.parent, "story", self.path)
        rebuilt = rebuilt_beside(self.path)
        if rebuilt.exists():
            rebuilt.rename(self.path)
        else:
            self._lock.note(0, NotedChanges(0).encode())

    def _connect(self) -> apsw.Connection:
        with database_trouble(self.path):
            db = connect(self.path, synchronous="FULL", cipher=self._cipher)
        self._db = db
        self._identity = identity_of(self.path)
        self._migrated = False
        return db

    def _is_ready(self) -> bool:
        """Whether there is nothing to read, or all of it is readable."""
        with self._guard:
            db = self._current()
            if db is None:
                return not rebuilt_beside(self.path).exists()
            if not self._migrated:
                with database_trouble(self.path):
                    self._migrated = is_migrated(db)
            return self._migrated

    def _read_back(self) -> None:
        from holdfast.adapters.local.sync_readback import read_back_database  # hardly ever needed

        self.close()
        try:
            if self.path.exists():
                read_back_database(self._fs, self.path, self._cipher)
            self._sync_failures.clear()
        except OSError as error:
            raise suspect({self.path.name}) from error

    def _require_acknowledged(self, db: apsw.Connection) -> None:
        notes = self._lock.read_notes(SLOT_BYTES + 1)
        if len(notes) > SLOT_BYTES:
            raise StoreDamaged(
                "the lock file of story.db was replaced", hint="run: holdfast repair"
            )
        noted = decode_changes(notes)
        if noted is not None and self._changes(db) < noted.count:
            raise StoreDamaged(_FORGOT, hint="run: holdfast repair")

    def _changes(self, db: apsw.Connection) -> int:
        try:
            with database_trouble(self.path):
                return int(fact_of(db, SessionId(OF_THE_STORY), CHANGES) or "")
        except (ValueError, TypeError) as error:
            raise StoreDamaged(
                f"the store's story.db is unusable: {error}", hint="run: holdfast repair"
            ) from error


def rebuilt_beside(path: Path) -> Path:
    """Where a repair leaves a complete story that waits to replace a damaged one."""
    return path.with_name("story.rebuilt.db")
