"""The stat cache, in a separate SQLite file that may be lost at any time.

Each row has a checksum, because a wrong row could make a changed file look unchanged. On a
read-only file system, an unusable file is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.adapters.local.sqlite_connection import connect, fold_log, translate
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import discard_derived, unlink_database
from holdfast.domain.errors import StoreDamaged, StoreReadOnly
from holdfast.domain.trees.objects import digest_of

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher

_CHECKSUM_BYTES = 8
_OUR_TABLE = b"directories (path BLOB"
_KEEP = "INSERT OR REPLACE INTO directories VALUES (?,?)"
_FORGET = "DELETE FROM directories WHERE path=? OR (path>? AND path<?)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS generation (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS directories (path BLOB PRIMARY KEY, entry BLOB NOT NULL) WITHOUT ROWID;
"""


class SqliteStatCache:
    """A damaged file is deleted and recreated, because it only saves time."""

    def __init__(self, path: Path, cipher: Cipher | None = None) -> None:
        self._path = path
        self._cipher = cipher
        try:
            self._db = self._open()
        except (apsw.BusyError, apsw.LockedError) as error:
            raise translate(error, path) from error  # in use, not damaged
        except (apsw.Error, StoreDamaged, StoreReadOnly):
            self._recreate()

    def load(self, generation: str) -> dict[bytes, bytes]:
        try:
            if self._db.execute("SELECT name FROM generation").fetchall() != [(generation,)]:
                return {}
            rows: list[tuple[Any, ...]] = self._db.execute(
                "SELECT path, entry FROM directories"
            ).fetchall()
            return {
                path: entry[_CHECKSUM_BYTES:]
                for path, entry in rows
                if _checksum(path, entry[_CHECKSUM_BYTES:]) == entry[:_CHECKSUM_BYTES]
            }
        except (apsw.BusyError, apsw.LockedError):
            return {}
        except (apsw.Error, UnicodeDecodeError, TypeError):  # damaged bytes can change their type
            self._db.close()
            self._recreate()
            return {}

    def update(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        try:
            self._write(generation, changed)
        except (apsw.FullError, apsw.IOError, apsw.BusyError, apsw.ReadOnlyError):
            return  # the next scan reads more; a finished save must not fail
        except (apsw.Error, UnicodeDecodeError):
            self._db.close()
            self._recreate()

    def _write(self, generation: str, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        with self._db:
            if self._db.execute("SELECT name FROM generation").fetchall() != [(generation,)]:
                self._db.execute("DELETE FROM directories; DELETE FROM generation")
                self._db.execute("INSERT INTO generation VALUES (?)", (generation,))
            for path, entry in changed:
                if entry is None and not path:
                    self._db.execute("DELETE FROM directories")
                elif entry is None:
                    # Everything below a directory sorts between "directory/" and "directory0".
                    ends = (path, path + b"/", path + b"0")
                    self._db.execute(_FORGET, ends)
                else:
                    self._db.execute(_KEEP, (path, _checksum(path, entry) + entry))
        fold_log(self._db, self._path)

    def _open(self) -> apsw.Connection:
        db = connect(self._path, synchronous="OFF", cipher=self._cipher)
        if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
            db.execute(_SCHEMA)
        return db

    def _recreate(self) -> None:
        try:
            with store_trouble("recreating its stat cache"):
                discard_derived(self._path, "stat-cache", our_mark=_OUR_TABLE)
            self._db = self._open()
        except StoreReadOnly:
            self._db = apsw.Connection(":memory:")
            self._db.execute(_SCHEMA)
        except apsw.Error as error:
            raise translate(error, self._path) from error

    def erase(self) -> None:
        try:
            self._db.close()
            unlink_database(self._path)
            self._db = self._open()
        except apsw.Error as error:
            raise translate(error, self._path) from error

    def fold_log(self) -> None:
        fold_log(self._db, self._path, at_bytes=1)

    def forget_pages(self) -> None:
        """Release cached pages, which are quickly read again."""
        self._db.release_memory()

    def close(self) -> None:
        self._db.close()


def _checksum(path: bytes, entry: bytes) -> bytes:
    return digest_of(b"%d:%s%s" % (len(path), path, entry))[:_CHECKSUM_BYTES]
