"""A readable catalog, however damaged the store's own is.

    copy → sound and complete: the copy
         → else: page images of the damaged files → verified rows → a new catalog from them

    verified rows → a fresh database beside the old one → checkpoints that only the log names are
    recorded as lost → heads that are gone move to the newest remaining checkpoint

Guarantee: every verified row is in the new catalog, unchanged except for heads; the new catalog has
no problem of its own. It is folded into one file and synced, ready to be put in place.

Everything is done in a scratch directory; the store is only read. In an encrypted catalog, pages
that fail authentication are lost, and rows on the others are kept; the new one is encrypted again.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.adapters.local.catalog.migrations import migrate
from holdfast.adapters.local.catalog.page_images import PageImages, page_images
from holdfast.adapters.local.catalog.rows import (
    SEALED_COLUMNS,
    checksum_of,
    operation_to_row,
    seal_settings,
)
from holdfast.adapters.local.catalog.salvage import Salvaged, salvage_from
from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.catalog.transaction import SqliteTransaction
from holdfast.adapters.local.commit_notes import (
    NOTES_BYTES,
    SLOT_BYTES,
    decode_changes,
    decode_operation,
    notes_are_damaged,
)
from holdfast.adapters.local.sqlite_connection import new_database
from holdfast.adapters.local.store_files import copy_database
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import HoldfastError, NewerStore
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.repair_plan import CatalogLosses
from holdfast.domain.sessions import Session
from holdfast.ports.catalog import NewOperation

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher, StoreKeys
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.store_lock import StoreLock
    from holdfast.ports.system import Clock

_ADDING = ("checkpoint", "restore", "reset", "undo", "redo", "import", "repair")
_GONE = ("delete", "prune", "purge", "lost")
_UNKNOWN_SESSION = SessionId("recovered")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Data that the new catalog lost."""

    lost_checkpoints: tuple[CheckpointId, ...]
    lost_operations: int
    lost_settings: bool
    unreadable: tuple[str, ...]


def rebuild(
    saved: Salvaged,
    path: Path,
    *,
    now_ns: int,
    expected_operations: int = 0,
    cipher: Cipher | None = None,
) -> Rebuilt:
    """Write the new catalog at `path`; `expected_operations` were acknowledged once."""
    with new_database(path, cipher) as db:
        migrate(db)
        with db:
            outcome = _CatalogBuilder(db, saved, now_ns).fill(expected_operations)
    return outcome


class _CatalogBuilder:
    def __init__(self, db: apsw.Connection, saved: Salvaged, now_ns: int) -> None:
        self._db = db
        self._saved = saved
        self._now_ns = now_ns
        self._checkpoints = self._kept_checkpoints()

    def fill(self, expected_operations: int) -> Rebuilt:
        saved = self._saved
        operations = saved.rows["operations"]
        known = {row[1] for row in self._checkpoints.values()}
        logged = {row[4] for row in operations.values() if row[1] in _ADDING and row[4]}
        gone = {row[4] for row in operations.values() if row[1] in _GONE}
        lost = sorted(logged - gone - known)
        self._insert("checkpoints", self._checkpoints.values())
        self._insert("operations", operations.values())
        newest = max((*operations, expected_operations), default=0)
        missing = [number for number in range(1, newest + 1) if number not in operations]
        for number in missing:
            self._operation(number, OperationKind.REPAIR)
        for checkpoint_id in sorted(known - logged):
            self._operation(None, OperationKind.REPAIR, CheckpointId(checkpoint_id))
        for checkpoint_id in lost:
            self._operation(None, OperationKind.LOST, CheckpointId(checkpoint_id))
        self._sessions()
        self._settings()
        return Rebuilt(
            tuple(CheckpointId(identifier) for identifier in lost),
            len(missing),
            not saved.settings_proven,
            tuple(saved.unreadable),
        )

    def _kept_checkpoints(self) -> dict[int, tuple[Any, ...]]:
        """Without deleted checkpoints, and with one row per id and name."""
        gone = {row[4] for row in self._saved.rows["operations"].values() if row[1] in _GONE}
        taken: set[Any] = set()
        kept: dict[int, tuple[Any, ...]] = {}
        for sequence, row in sorted(self._saved.rows["checkpoints"].items()):
            name = (row[2], row[12])
            if row[1] in gone or row[1] in taken or (row[12] is not None and name in taken):
                continue
            taken.update((row[1], name))
            kept[sequence] = row
        return kept

    def _insert(self, table: str, rows: Any) -> None:
        marks = ",".join("?" * (SEALED_COLUMNS[table].count(",") + 1))
        self._db.executemany(
            f"INSERT INTO {table} ({SEALED_COLUMNS[table]}) VALUES ({marks})", rows
        )

    def _operation(
        self, number: int | None, kind: OperationKind, checkpoint: CheckpointId | None = None
    ) -> None:
        sessions = {row[1]: row[2] for row in self._checkpoints.values()}
        session = SessionId(sessions.get(checkpoint) or self._nearest_session(number))
        new = NewOperation(kind, session, self._now_ns, checkpoint=checkpoint)
        if number is None:
            SqliteTransaction(self._db).add_operation(new)
            return
        row = (number, *operation_to_row(new))
        self._insert("operations", [(*row, checksum_of("operations", row))])

    def _nearest_session(self, number: int | None) -> str:
        """The session of a lost entry is unknown; that of the entry before it is the best guess."""
        operations = self._saved.rows["operations"]
        earlier = [n for n in operations if number is None or n < number] or list(operations)
        if earlier:
            return str(operations[max(earlier)][2])
        return str(next((r[2] for r in self._checkpoints.values()), _UNKNOWN_SESSION))

    def _sessions(self) -> None:
        saved = self._saved.rows["sessions"]
        named = {row[2] for row in self._checkpoints.values()}
        named |= {name for (name,) in self._db.execute("SELECT session_id FROM operations")}
        self._insert("sessions", saved.values())
        transaction = SqliteTransaction(self._db)
        for session_id in sorted(named - saved.keys()):
            transaction.add_session(Session(SessionId(session_id), self._now_ns))
        ids = {row[1] for row in self._checkpoints.values()}
        for session_id in sorted(named | saved.keys()):
            row = saved.get(session_id)
            doubtful = row is None or ("sessions", session_id) in self._saved.doubtful
            if doubtful or (row is not None and row[5] is not None and row[5] not in ids):
                transaction.set_head(SessionId(session_id), self._newest_of(session_id))

    def _newest_of(self, session_id: str) -> CheckpointId | None:
        found = [
            (sequence, row[1])
            for sequence, row in self._checkpoints.items()
            if row[2] == session_id and row[4] != Kind.SAFETY.value
        ]
        return CheckpointId(max(found)[1]) if found else None

    def _settings(self) -> None:
        facts = dict(self._saved.facts)
        if not self._saved.settings_proven:
            operations = self._saved.rows["operations"]
            if operations:
                facts["current_session"] = operations[max(operations)][2]
        self._db.executemany("INSERT INTO settings VALUES (?,?)", self._saved.settings.items())
        self._db.executemany("INSERT INTO facts VALUES (?,?)", facts.items())
        # Above every recorded count, so that nothing seems forgotten.
        self._db.execute("UPDATE seals SET changes=?", (self._saved.changes,))
        seal_settings(self._db)


_LOG_BEGINNING = b"\x37\x7f\x06"


class ReadableCatalog:
    """One recovery attempt, with the store's lock held."""

    def __init__(
        self,
        layout: StoreLayout,
        lock: StoreLock,
        clock: Clock,
        scratch: Path,
        keys: StoreKeys | None,
    ) -> None:
        self._layout = layout
        self._lock = lock
        self._clock = clock
        self._scratch = scratch
        self._cipher = None if keys is None else keys.cipher("catalog")

    def readable(self) -> tuple[Path, CatalogLosses | None, tuple[str, ...]]:
        """A readable copy: of the catalog itself, or of what is left of it."""
        copy = self._scratch / "catalog.db"
        problem = self._copy_catalog(copy)
        if problem is None:
            return copy, None, ()
        saved = self._salvage()
        rebuilt = self._scratch / "rebuilt.db"
        notes = self._lock.read_notes(NOTES_BYTES)
        noted = decode_operation(notes[:SLOT_BYTES])
        outcome = rebuild(
            saved,
            rebuilt,
            now_ns=self._clock.now_ns(),
            expected_operations=noted.sequence if noted is not None else 0,
            cipher=self._cipher,
        )
        losses = CatalogLosses(
            problem,
            outcome.lost_checkpoints,
            outcome.lost_operations,
            outcome.lost_settings,
            notes_are_damaged(notes),
        )
        return rebuilt, losses, outcome.unreadable

    def _copy_catalog(self, copy: Path) -> str | None:
        """Copy it, and return what is wrong with it, if anything."""
        source = self._layout.catalog
        if not source.exists():
            return "the file is missing"
        copy_database(source, copy)
        try:
            with contextlib.closing(SqliteCatalog(copy, self._cipher)) as catalog:
                notes = self._lock.read_notes(NOTES_BYTES)
                noted = (decode_operation(notes[:SLOT_BYTES]), decode_changes(notes[SLOT_BYTES:]))
                if notes_are_damaged(notes):
                    return "the record of its last acknowledged change is damaged"
                if not all(catalog.has(note) for note in noted if note is not None):
                    return "its newest acknowledged changes are lost"
                catalog.migrate()
                return next(catalog.check(), None)
        except NewerStore:
            raise
        except (HoldfastError, apsw.Error) as error:
            return str(error)

    def _salvage(self) -> Salvaged:
        """From the catalog or, if nothing is left there, from a file it was swapped with."""
        places = [self._layout.catalog, self._layout.objects / "index.db", self._layout.stat_cache]
        places += sorted(self._layout.directory.glob("set-aside/*/*.db"))
        places += [self._layout.description, self._layout.journal]
        places += sorted((self._layout.objects / "packs").glob("*.pack"))
        best = Salvaged()
        for path in places:
            database = _read(path)
            for log in self._logs(path) if database else ():
                saved = salvage_from(self._pages(database, log))
                if len(saved.rows["operations"]) > len(best.rows["operations"]):
                    best = saved
            if best.rows["operations"]:
                break
        return best

    def _pages(self, database: bytes, log: bytes) -> PageImages:
        if self._cipher is None:
            return page_images(database, log)
        from holdfast.adapters.local.encryption.decrypted_files import sealed_page_images

        return sealed_page_images(database, log, self._cipher)

    def _logs(self, database: Path) -> list[bytes]:
        """Its own log, then any other log file, in case they were swapped."""
        own = _read(database.with_name(database.name + "-wal"))
        others = [self._layout.lock, *self._layout.directory.rglob("*-wal")]
        found = [data for data in map(_read, others) if data[:3] == _LOG_BEGINNING]
        return [own, *(data for data in found if data != own)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
