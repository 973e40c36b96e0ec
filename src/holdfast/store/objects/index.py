"""Where each object stands: digest → pack, offset, length, depth. A cache of what packs say.

Not fsynced on its own: after a power cut it may know less than the packs, never something else.
`catch_up` therefore reads every pack from where the index ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from holdfast.domain.ids import Digest
from holdfast.store.sqlite_connection import connect, fold_log, translate

_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  digest BLOB PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, depth INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS packs (number INTEGER PRIMARY KEY, length INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Location:
    pack: int
    offset: int
    length: int
    depth: int


class PackIndex:
    """See the module's sentence; every error leaves as one of the family."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = connect(path, synchronous="NORMAL")
            if not self._db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
                self._db.execute(_SCHEMA)
        except apsw.Error as error:
            raise translate(error, path) from error

    def find(self, digest: Digest) -> Location | None:
        row = self._rows("SELECT pack, offset, length, depth FROM objects WHERE digest=?", digest)
        return Location(*row[0]) if row else None

    def known(self, digests: Iterable[Digest]) -> set[Digest]:
        with_row = "SELECT 1 FROM objects WHERE digest=?"
        return {digest for digest in digests if self._rows(with_row, digest)}

    def is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM objects LIMIT 1")

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM objects")[0][0])

    def digests(self) -> Iterator[Digest]:
        for (digest,) in self._db.execute("SELECT digest FROM objects ORDER BY digest"):
            yield Digest(digest)

    def pack_lengths(self) -> dict[int, int]:
        rows = self._rows("SELECT number, length FROM packs")
        return dict(rows)

    def add(
        self, objects: Iterable[tuple[Digest, Location]], lengths: Iterable[tuple[int, int]]
    ) -> None:
        rows = ((d, p.pack, p.offset, p.length, p.depth) for d, p in objects)
        try:
            with self._db:
                self._db.executemany("INSERT OR IGNORE INTO objects VALUES (?,?,?,?,?)", rows)
                self._db.executemany("INSERT OR REPLACE INTO packs VALUES (?,?)", lengths)
            fold_log(self._db, self._path)
        except apsw.Error as error:
            raise translate(error, self._path) from error

    def problems(self) -> list[str]:
        try:
            rows = self._db.execute("PRAGMA integrity_check(20)").fetchall()
        except apsw.Error as error:
            return [str(error)]
        return [str(text) for (text,) in rows if text != "ok"]

    def close(self) -> None:
        self._db.close()

    def _rows(self, query: str, *values: bytes | int) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except apsw.Error as error:
            raise translate(error, self._path) from error
