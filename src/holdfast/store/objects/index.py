"""Where each object stands: digest → pack, offset, length, depth. A cache of what packs say.

Not fsynced on its own: after a power cut it may know less than the packs, never something else.
`catch_up` therefore reads every pack from where the index ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.store.objects.records import HEADER_BYTES, LARGEST_OBJECT
from holdfast.store.sqlite_connection import connect, fold_log, scrub, translate
from holdfast.store.suspicion import Suspicion

if TYPE_CHECKING:
    from holdfast.store.encryption.cipher import Cipher

_SCHEMA = """
DROP TABLE IF EXISTS objects;
DROP TABLE IF EXISTS packs;
CREATE TABLE objects (
  digest BLOB PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, depth INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE packs (number INTEGER PRIMARY KEY, length INTEGER NOT NULL);
"""
_TABLES = "SELECT 1 FROM sqlite_schema WHERE name IN ('objects', 'packs')"

_LONGEST_RECORD_BYTES = HEADER_BYTES + DIGEST_BYTES + LARGEST_OBJECT


GONE = -1
"""The length of a pack that is missing: its number stays taken, because it may come back."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where the record of an object stands."""

    pack: int
    offset: int
    length: int
    depth: int


class PackIndex:
    """See the module's sentence; every error leaves as one of the family."""

    def __init__(
        self, path: Path, cipher: Cipher | None = None, suspicion: Suspicion | None = None
    ) -> None:
        self._path = path
        self._suspicion = suspicion
        try:
            self._db = connect(path, synchronous="NORMAL", cipher=cipher)
            if len(self._db.execute(_TABLES).fetchall()) < 2:
                self._make_tables()
        except apsw.Error as error:
            raise translate(error, path) from error

    def _make_tables(self) -> None:
        """Together, so that no crash leaves one of them; what is missing then is in the packs."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been quicker.
            if len(self._db.execute(_TABLES).fetchall()) < 2:
                self._db.execute(_SCHEMA)
            self._db.execute("COMMIT")
        except apsw.Error:
            self.forget_prepared()
            raise

    def find(self, digest: Digest) -> Location | None:
        row = self._rows("SELECT pack, offset, length, depth FROM objects WHERE digest=?", digest)
        return _location(*row[0]) if row else None

    def known(self, digests: Iterable[Digest]) -> set[Digest]:
        with_row = "SELECT 1 FROM objects WHERE digest=?"
        return {digest for digest in digests if self._rows(with_row, digest)}

    def is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM objects LIMIT 1")

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM objects")[0][0])

    def content_bytes(self) -> int:
        distinct = "SELECT DISTINCT pack, offset, length FROM objects"
        return int(self._rows(f"SELECT coalesce(sum(length), 0) FROM ({distinct})")[0][0])

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._rows("SELECT digest FROM objects ORDER BY digest"):
            yield Digest(digest)

    def locations(self) -> Iterator[tuple[Digest, Location]]:
        """In the order in which packs are best read."""
        rows = self._rows(
            "SELECT digest, pack, offset, length, depth FROM objects ORDER BY pack, offset"
        )
        for digest, *place in rows:
            yield Digest(digest), _location(*place)

    def replace_pack(
        self,
        number: int,
        moved: Iterable[tuple[Digest, Location]],
        target: tuple[int, int] | None,
    ) -> None:
        """Forget a pack, except for what was moved to `target`; durable when it returns."""
        rows = ((d, p.pack, p.offset, p.length, p.depth) for d, p in moved)
        try:
            self._db.execute("PRAGMA synchronous=FULL")
            with self._db:
                self._db.execute("DELETE FROM objects WHERE pack=?", (number,))
                self._db.execute("DELETE FROM packs WHERE number=?", (number,))
                self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", rows)
                if target is not None:
                    self._db.execute("INSERT OR REPLACE INTO packs VALUES (?,?)", target)
        except apsw.Error as error:
            raise self._translated(error) from error
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def keep_only(self, needed: AbstractSet[Digest]) -> None:
        """Forget every other object, and leave no trace of one in the file or its log."""
        gone = [(digest,) for digest in self.digests() if digest not in needed]
        try:
            with self._db:
                self._db.executemany("DELETE FROM objects WHERE digest=?", gone)
            scrub(self._db, self._path)
        except apsw.Error as error:
            raise translate(error, self._path) from error

    def generation(self) -> int:
        return int(self._rows("PRAGMA user_version")[0][0])

    def start_generation(self) -> None:
        """Tell everybody who remembers digests that some may be gone; durable."""
        try:
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(f"PRAGMA user_version={self.generation() + 1}")
        except apsw.Error as error:
            raise self._translated(error) from error
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def pack_lengths(self) -> dict[int, int]:
        rows = self._rows("SELECT number, length FROM packs")
        if not all(isinstance(number, int) for row in rows for number in row):
            raise _nonsense()
        return dict(rows)

    def add(
        self, objects: Iterable[tuple[Digest, Location]], lengths: Iterable[tuple[int, int]]
    ) -> None:
        """Take in objects whose packs are durable up to `lengths`."""
        self.prepare(objects)
        try:
            self._db.executemany("INSERT OR REPLACE INTO packs VALUES (?,?)", lengths)
            self._db.execute("COMMIT")
            fold_log(self._db, self._path, self._suspicion)
        except apsw.Error as error:
            self.forget_prepared()
            raise self._translated(error) from error

    def prepare(self, objects: Iterable[tuple[Digest, Location]]) -> None:
        """Note objects whose packs are not durable yet: seen by nobody else until `add`."""
        rows = ((d, p.pack, p.offset, p.length, p.depth) for d, p in objects)
        try:
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", rows)
        except apsw.Error as error:
            self.forget_prepared()
            raise translate(error, self._path) from error

    def forget_prepared(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def problems(self) -> list[str]:
        try:
            rows = self._db.execute("PRAGMA integrity_check(20)").fetchall()
        except apsw.Error as error:
            return [str(error)]
        return [str(text) for (text,) in rows if text != "ok"]

    def close(self) -> None:
        self._db.close()

    def _translated(self, error: apsw.Error) -> Exception:
        if self._suspicion is not None:
            self._suspicion.note_if_sync(error, self._path)
        return translate(error, self._path)

    def _rows(self, query: str, *values: bytes | int) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except UnicodeDecodeError:
            raise _nonsense() from None
        except apsw.Error as error:
            raise translate(error, self._path) from error


def _location(*numbers: Any) -> Location:
    """A row as a place; a damaged file can hold a row that no writer ever made."""
    if not all(isinstance(number, int) for number in numbers):
        raise _nonsense()
    place = Location(*numbers)
    if place.pack < 1 or place.offset < 0 or not 0 < place.length <= _LONGEST_RECORD_BYTES:
        raise _nonsense()
    return place


def _nonsense() -> StoreDamaged:
    return StoreDamaged(
        "the index of the store is damaged: it names places that cannot be",
        hint="run: holdfast check",
    )
