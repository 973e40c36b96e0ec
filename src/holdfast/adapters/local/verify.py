"""Verifying packs, catalog and story; nothing is changed.

    quick: the index is complete, packs exist and have at least their known length
    data:  packs hold only sound records → the index knows each of them → each object's bytes match
           the digest that is its name
    catalog, story: file, schema, rows, and that the rows agree with each other

One function per kind of problem; each yields descriptions. The operation log never forgets, so it
says which checkpoints must exist.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

from holdfast.adapters.local.catalog.migrations import migrate
from holdfast.adapters.local.catalog.rows import SEALED_COLUMNS, is_sealed, unlogged_changes
from holdfast.adapters.local.objects.index import GONE
from holdfast.adapters.local.objects.maintenance import damaged_packs
from holdfast.adapters.local.story.migrations import migrate_story
from holdfast.adapters.local.story.rows import COLUMNS
from holdfast.domain.errors import IndexDamaged, StoreDamaged
from holdfast.domain.wording import count_words
from holdfast.ports.objects import ObjectProblem
from holdfast.ports.progress import NoProgress, Progress

if TYPE_CHECKING:
    from holdfast.adapters.local.objects.object_store import LocalObjectStore
    from holdfast.adapters.local.story.story_file import StoryFile
    from holdfast.domain.ids import Digest

_MOST_PROBLEMS = 20
_LARGEST_SEQUENCE = 1 << 53
_GONE = "('delete', 'prune', 'purge', 'lost')"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


def check_objects(
    store: LocalObjectStore, *, data: bool, progress: Progress
) -> Iterator[ObjectProblem]:
    """Called with the object store's own lock held."""
    try:
        for problem in store.index.problems():
            yield ObjectProblem("index.db", problem, "index")
        yield from _check_lengths(store)
        if data:
            for number, problem in damaged_packs(store, progress).items():
                yield ObjectProblem(f"pack {number}", problem, "I2")
            for digest, problem in unreadable_objects(store, progress):
                yield ObjectProblem(f"object {digest.hex()}", problem, "I2")
    except IndexDamaged as error:
        yield ObjectProblem("index.db", error.message, "index")


def _check_lengths(store: LocalObjectStore) -> Iterator[ObjectProblem]:
    present = set(store.packs.numbers())
    ends = store.index.ends()  # a pack holds objects after damage too
    for number, whole in sorted(store.index.pack_lengths().items()):
        length = whole if whole == GONE else max(whole, ends.get(number, 0))
        if number not in present and length != GONE:
            yield ObjectProblem(f"pack {number}", "the file is missing", "I1")
        elif number in present and store.packs.size_of(number) < length:
            yield ObjectProblem(f"pack {number}", "the file is truncated", "I1")


def unreadable_objects(
    store: LocalObjectStore, progress: Progress | None = None
) -> Iterator[tuple[Digest, str]]:
    """Unreadable objects, each with the reason."""
    progress = progress or NoProgress()
    count = store.index.count()
    for number, (digest, _) in enumerate(store.index.locations()):
        progress.advance("checking objects", number, count)
        try:
            store.read(digest)
        except IndexDamaged:
            raise
        except StoreDamaged as error:
            yield digest, error.message


def catalog_problems(db: apsw.Connection) -> Iterator[str]:
    return _problems(
        _file_is_whole(db),
        _schema_is_ours(db, migrate),
        _rows_are_sealed(db, SEALED_COLUMNS),
        _settings_are_sealed(db),
        _checkpoints_have_operations(db),
        _logged_checkpoints_exist(db),
        _heads_exist(db),
        _sessions_exist(db),
        _log_is_unbroken(db),
    )


def story_problems(file: StoryFile) -> Iterator[str]:
    try:
        if forgotten := file.forgotten():
            yield forgotten
        with file.reading() as db:
            if db is not None:
                yield from _problems(
                    _file_is_whole(db),
                    _schema_is_ours(db, migrate_story),
                    _rows_are_sealed(db, COLUMNS),
                    _no_message_is_missing(db),
                )
    except StoreDamaged as error:
        yield error.message


def _problems(*checks: Iterator[str]) -> Iterator[str]:
    """Each problem once. Unreadable rows are one problem, and end only their own check."""
    found: set[str] = set()
    for check in checks:
        for problem in _or_error(check):
            if problem not in found:
                found.add(problem)
                yield problem


def _or_error(check: Iterator[str]) -> Iterator[str]:
    try:
        yield from check
    except (apsw.Error, ValueError, TypeError) as error:
        yield str(error)


def _file_is_whole(db: apsw.Connection) -> Iterator[str]:
    for (text,) in db.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
        if text != "ok":
            yield str(text)


def _schema_is_ours(
    db: apsw.Connection, migrate: Callable[[apsw.Connection], None]
) -> Iterator[str]:
    if db.execute(_SCHEMA).fetchall() != _schema_made_by(migrate):
        yield "the schema was changed"


@cache
def _schema_made_by(migrate: Callable[[apsw.Connection], None]) -> list[tuple[Any, ...]]:
    """The schema of a new database, which is always the same."""
    with contextlib.closing(apsw.Connection(":memory:")) as new:
        migrate(new)
        return new.execute(_SCHEMA).fetchall()


def _rows_are_sealed(db: apsw.Connection, tables: Mapping[str, str]) -> Iterator[str]:
    for table, columns in tables.items():
        for row in db.execute(f"SELECT {columns} FROM {table}"):
            if not is_sealed(table, row):
                yield f"a row of {table} ({row[0]!a}) does not match its checksum"


def _settings_are_sealed(db: apsw.Connection) -> Iterator[str]:
    unlogged_changes(db)  # a ValueError with the reason if they are not
    yield from ()


def _checkpoints_have_operations(db: apsw.Connection) -> Iterator[str]:
    orphans = (
        "SELECT c.id FROM checkpoints c LEFT JOIN operations o ON o.checkpoint=c.id"
        " WHERE o.sequence IS NULL"
    )
    for (checkpoint_id,) in db.execute(orphans):
        yield f"checkpoint {checkpoint_id} has no operation (I3)"


def _logged_checkpoints_exist(db: apsw.Connection) -> Iterator[str]:
    lost = (
        f"SELECT DISTINCT o.checkpoint FROM operations o WHERE o.checkpoint IS NOT NULL"
        f" AND o.kind NOT IN {_GONE}"
        " AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.id=o.checkpoint)"
        " AND NOT EXISTS (SELECT 1 FROM operations g WHERE g.checkpoint=o.checkpoint"
        f" AND g.kind IN {_GONE})"
    )
    for (checkpoint_id,) in db.execute(lost):
        yield f"checkpoint {checkpoint_id} was never deleted, but is missing (I3)"


def _heads_exist(db: apsw.Connection) -> Iterator[str]:
    heads = (
        "SELECT s.id, s.head FROM sessions s LEFT JOIN checkpoints c ON c.id=s.head"
        " WHERE s.head IS NOT NULL AND c.id IS NULL"
    )
    for session_id, head in db.execute(heads):
        yield f"the HEAD of session {session_id} is checkpoint {head}, which does not exist (I3)"


def _sessions_exist(db: apsw.Connection) -> Iterator[str]:
    for table in ("checkpoints", "operations"):
        lost = f"SELECT DISTINCT session_id FROM {table} EXCEPT SELECT id FROM sessions"
        for (session_id,) in db.execute(lost):
            yield f"{table} refer to the session {session_id!a}, which does not exist (I3)"


def _log_is_unbroken(db: apsw.Connection) -> Iterator[str]:
    ((count, newest),) = db.execute("SELECT count(*), coalesce(max(sequence), 0) FROM operations")
    if count != newest:
        yield f"entries of the operation log are missing: it has {count} of {newest} (I7)"
    for table in ("checkpoints", "operations"):
        query = (
            f"SELECT (SELECT coalesce(max(sequence), 0) FROM {table}),"
            f" (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='{table}')"
        )
        ((used, given),) = db.execute(query)
        if not int(used) <= int(given) <= _LARGEST_SEQUENCE:  # damage can change their type
            yield f"the next sequence number of {table} is unknown (I7)"


def _no_message_is_missing(db: apsw.Connection) -> Iterator[str]:
    query = (
        "SELECT session_id, max(position) + 1 - count(*) FROM messages GROUP BY session_id"
        " HAVING max(position) + 1 <> count(*) ORDER BY session_id"
    )
    for session_id, missing in db.execute(query):
        are = "is" if missing == 1 else "are"
        yield f"{count_words(missing, 'message')} of session {session_id!a} {are} missing"
