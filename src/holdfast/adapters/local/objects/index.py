"""The position of each object: digest → pack, offset, length, depth. A cache of the packs' content.

Not fsynced on its own: after a power cut it may know less than the packs, but never anything wrong.
So `catch_up` reads every pack from where the index ends. Each row has a checksum, because
collection relies on the index. An index that is damaged, or of an older schema, raises
`IndexDamaged`: the store quarantines it and rebuilds it from the packs.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.adapters.local.sqlite_connection import (
    DATABASE_TROUBLE,
    connect,
    database_trouble,
    fold_log,
    scrub,
    translate,
)
from holdfast.adapters.local.store_errors import SyncFailures
from holdfast.domain.errors import IndexDamaged, StoreDamaged
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.domain.object_records import HEADER_BYTES, LARGEST_OBJECT
from holdfast.values.classes import NamedTuple, dataclass

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher

_SCHEMA = """
CREATE TABLE places (
  digest BLOB PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, depth INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE packs (
  number INTEGER PRIMARY KEY, length INTEGER NOT NULL, seen INTEGER NOT NULL,
  checksum INTEGER NOT NULL);
"""
_TABLES = ["packs", "places"]
_PLACE = "SELECT digest, pack, offset, length, depth, checksum FROM places"
_PLACE_OF = f"{_PLACE} WHERE digest=?"
_ADD_PLACE = "INSERT OR REPLACE INTO places VALUES (?,?,?,?,?,?)"
_ADD_PACK = "INSERT OR REPLACE INTO packs VALUES (?,?,?,?)"
_NUMBERS = struct.Struct("<4q")

_LONGEST_RECORD_BYTES = HEADER_BYTES + DIGEST_BYTES + LARGEST_OBJECT


GONE = -1
"""The length of a missing pack. Its number stays reserved, because the pack may return."""


class Location(NamedTuple):
    """The position of an object's record. A named tuple, because every save creates dozens."""

    pack: int
    offset: int
    length: int
    depth: int


@dataclass(frozen=True, slots=True)
class PackLength:
    """Up to where a pack is known to hold whole records, and up to where it was read."""

    length: int
    seen: int


class PackIndex:
    """The index of one store. All errors are translated to Holdfast errors."""

    def __init__(
        self,
        path: Path,
        cipher: Cipher | None = None,
        sync_failures: SyncFailures | None = None,
        *,
        first_generation: int = 0,
    ) -> None:
        self._path = path
        self._sync_failures = sync_failures
        with self._trouble():
            self._db = connect(path, synchronous="NORMAL", cipher=cipher)
            try:
                tables = "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name"
                names = [name for (name,) in self._db.execute(tables)]
                if not names:
                    self._make_tables(first_generation)
                elif names != _TABLES:
                    raise _impossible_place()
            except BaseException:
                self._db.close()
                raise

    def _make_tables(self, first_generation: int) -> None:
        """Both together, so that no crash leaves only one; their content is still in the packs."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been faster.
            if not self._db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
                self._db.execute(_SCHEMA)
                self._db.execute(f"PRAGMA user_version={first_generation}")
            self._db.execute("COMMIT")
        except apsw.Error:
            self.forget_prepared()
            raise

    def find(self, digest: Digest) -> Location | None:
        row = self._rows(_PLACE_OF, digest)
        return _location(*row[0]) if row else None

    def find_all(self, digests: Iterable[Digest]) -> dict[Digest, Location]:
        with self._trouble():
            rows = self._db.executemany(_PLACE_OF, ((digest,) for digest in digests))
            return {Digest(row[0]): _location(*row) for row in rows}

    def known(self, digests: Iterable[Digest]) -> set[Digest]:
        with_row = "SELECT 1 FROM places WHERE digest=?"
        return {digest for digest in digests if self._rows(with_row, digest)}

    def is_empty(self) -> bool:
        return not self._rows("SELECT 1 FROM places LIMIT 1")

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM places")[0][0])

    def content_bytes(self) -> int:
        distinct = "SELECT DISTINCT pack, offset, length FROM places"
        return int(self._rows(f"SELECT coalesce(sum(length), 0) FROM ({distinct})")[0][0])

    def digests(self, after: bytes = b"", limit: int = -1) -> list[Digest]:
        """In ascending order, after `after`; a negative limit means no limit."""
        query = "SELECT digest FROM places WHERE digest>? ORDER BY digest LIMIT ?"
        return [Digest(digest) for (digest,) in self._rows(query, after, limit)]

    def locations(self) -> Iterator[tuple[Digest, Location]]:
        """In the best order for reading packs; an iterator, because there may be millions."""
        with self._trouble():
            for row in self._db.execute(f"{_PLACE} ORDER BY pack, offset"):
                yield Digest(row[0]), _location(*row)

    def replace_pack(
        self,
        number: int,
        moved: Iterable[tuple[Digest, Location]],
        target: tuple[int, int] | None,
    ) -> None:
        """Forget a pack, except for objects moved to `target`; durable when it returns."""
        with self._durably(), self._db:
            self._db.execute("DELETE FROM places WHERE pack=?", (number,))
            self._db.execute("DELETE FROM packs WHERE number=?", (number,))
            self._db.executemany(_ADD_PLACE, map(_place_row, moved))
            if target is not None:
                self._db.execute(_ADD_PACK, _pack_row(*target))

    def keep_only(self, needed: AbstractSet[Digest]) -> None:
        """Forget every other object, and leave no trace of one in the file or its log."""
        self.forget(digest for digest in self.digests() if digest not in needed)
        with self._trouble():
            scrub(self._db, self._path)

    def forget(self, digests: Iterable[Digest]) -> None:
        """Forget deleted or unreadable objects, so that they can be stored again."""
        with self._trouble(), self._db:
            self._db.executemany(
                "DELETE FROM places WHERE digest=?", ((digest,) for digest in digests)
            )

    def generation(self) -> int:
        return int(self._rows("PRAGMA user_version")[0][0])

    def start_generation(self) -> None:
        """Tell everything that caches digests that some may be gone; durable."""
        with self._durably():
            self._db.execute(f"PRAGMA user_version={self.generation() + 1}")

    def pack_lengths(self) -> dict[int, int]:
        return {number: known.length for number, known in self.packs().items()}

    def ends(self) -> dict[int, int]:
        """The end of the last object of each pack."""
        return dict(self._rows("SELECT pack, max(offset + length) FROM places GROUP BY pack"))

    def packs(self) -> dict[int, PackLength]:
        rows = self._rows("SELECT number, length, seen, checksum FROM packs")
        for row in rows:
            if not all(isinstance(value, int) for value in row) or row != _pack_row(*row[:3]):
                raise _impossible_place()
        return {number: PackLength(length, seen) for number, length, seen, _ in rows}

    def add(
        self,
        objects: Iterable[tuple[Digest, Location]],
        lengths: Iterable[tuple[int, int] | tuple[int, int, int]],
    ) -> None:
        """Add objects whose packs are durable up to `lengths`: number, length and, after a torn
        end, how far the pack was read."""
        self.prepare(objects)
        with self._preparing():
            self._db.executemany(_ADD_PACK, [_pack_row(*known) for known in lengths])
            self._db.execute("COMMIT")
            fold_log(self._db, self._path, self._sync_failures)

    def prepare(self, objects: Iterable[tuple[Digest, Location]]) -> None:
        """Record objects whose packs are not durable yet; invisible to others until `add`."""
        with self._preparing():
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(_ADD_PLACE, map(_place_row, objects))

    def forget_prepared(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def problems(self) -> list[str]:
        try:
            rows = self._db.execute("PRAGMA integrity_check(20)").fetchall()
        except DATABASE_TROUBLE as error:
            return [str(error)]
        return [str(text) for (text,) in rows if text != "ok"]

    def fold_log(self) -> None:
        """Fold the log, however short it is; with the store's lock held."""
        fold_log(self._db, self._path, self._sync_failures, at_bytes=1)

    def forget_pages(self) -> None:
        """Release cached pages, which are quickly read again."""
        self._db.release_memory()

    def close(self) -> None:
        self._db.close()

    def _trouble(self) -> AbstractContextManager[None]:
        return database_trouble(self._path, self._sync_failures, _translate)

    @contextmanager
    def _durably(self) -> Iterator[None]:
        try:
            with self._trouble():
                self._db.execute("PRAGMA synchronous=FULL")
                yield
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    @contextmanager
    def _preparing(self) -> Iterator[None]:
        with self._trouble():
            try:
                yield
            except DATABASE_TROUBLE:
                self.forget_prepared()
                raise

    def _rows(self, query: str, *values: bytes | int) -> list[tuple[Any, ...]]:
        try:  # inlined, because it is called most often
            return self._db.execute(query, values).fetchall()
        except DATABASE_TROUBLE as error:
            raise _translate(error, self._path) from error


def _place_row(item: tuple[Digest, Location]) -> tuple[bytes, int, int, int, int, int]:
    digest, place = item
    numbers = (place.pack, place.offset, place.length, place.depth)
    return (digest, *numbers, crc32(digest, crc32(_NUMBERS.pack(*numbers))))


def _pack_row(number: int, length: int, seen: int | None = None) -> tuple[int, int, int, int]:
    seen = length if seen is None else seen
    return number, length, seen, crc32(_NUMBERS.pack(number, length, seen, 0))


def _location(digest: Any, pack: Any, offset: Any, length: Any, depth: Any, seal: Any) -> Location:
    """A row as a location; a damaged file can hold impossible rows. Inlined, because every save
    reads dozens."""
    if not (
        type(digest) is bytes
        and type(pack) is type(offset) is type(length) is type(depth) is type(seal) is int
        and pack >= 1
        and offset >= 0
        and 0 < length <= _LONGEST_RECORD_BYTES
    ):
        raise _impossible_place()
    if crc32(digest, crc32(_NUMBERS.pack(pack, offset, length, depth))) != seal:
        raise _impossible_place()
    return Location(pack, offset, length, depth)


def _translate(error: apsw.Error | UnicodeDecodeError, path: Path) -> Exception:
    known = translate(error, path)
    if type(known) is StoreDamaged and not isinstance(error, apsw.IOError):
        return IndexDamaged(known.message, hint=known.hint)
    return known


def _impossible_place() -> IndexDamaged:
    return IndexDamaged(
        "the store's index is damaged: it contains impossible positions",
        hint="run: holdfast repair",
    )
