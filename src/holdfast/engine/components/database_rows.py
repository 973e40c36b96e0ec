"""Row counts of a SQLite database's tables, computed in memory from the bytes of its file.

Guarantee: nothing is written, no code in the database is run, and the work is bounded. Not
guaranteed: a result. There is none for a damaged database, or if the newest rows may be in a
separate log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import count

from holdfast.domain.restore.plan import RestorePlan, Step
from holdfast.domain.sqlite_files import HEADER, LOG, SUFFIXES
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.wording import count_words, printable
from holdfast.values.classes import dataclass

LARGEST_BYTES = 32_000_000
_MOST_DATABASES = 10
_MOST_TABLES = 200
_MOST_SHOWN = 5
_LOOK_EVERY = 10_000
_MOST_LOOKS = 3_000
_WRITERS = slice(18, 20)
"""Header bytes: 2 if writers use a log, 1 if they use a journal."""
_TABLES = (
    "select name from sqlite_schema where type = 'table' and substr(name, 1, 7) != 'sqlite_'"
    " and sql not like 'create virtual%' order by name limit ?"
)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Row counts by table in a database that a restore rewrites; None if they cannot be counted, or
    if the database does not exist."""

    path: bytes
    now: Mapping[str, int] | None
    then: Mapping[str, int] | None

    @property
    def differences(self) -> list[str]:
        """What the restore does to the rows of each table, as words; empty if it is not known."""
        if self.now is None or self.then is None:
            return []
        found = []
        for table in sorted({*self.now, *self.then}):
            now, then = self.now.get(table), self.then.get(table)
            if now is None:
                found.append(f"recreate {printable(table)} with {_row_words(then)}")
            elif then is None:
                found.append(f"remove {printable(table)}, which has {_row_words(now)}")
            elif now != then:
                found.append(f"{printable(table)} from {_row_words(now)} to {_row_words(then)}")
        more = len(found) - _MOST_SHOWN
        return [*found[:_MOST_SHOWN], *([f"and {count_words(more, 'more table')}"] * (more > 0))]


def _row_words(rows: int | None) -> str:
    return count_words(rows or 0, "row")


def row_counts(database: bytes) -> Mapping[str, int] | None:
    """Row counts by table; None if they cannot be counted."""
    if not database.startswith(HEADER) or len(database) > LARGEST_BYTES:
        return None
    image = bytearray(database)
    image[_WRITERS] = b"\1\1"
    looks = count(1)
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.set_progress_handler(lambda: next(looks) > _MOST_LOOKS, _LOOK_EVERY)
        try:
            opened.deserialize(bytes(image))
            opened.execute("pragma trusted_schema = off")
            names = [str(name) for (name,) in opened.execute(_TABLES, (_MOST_TABLES,))]
            return {name: _rows(opened, name) for name in names}
        except sqlite3.Error:
            return None


def _rows(opened: sqlite3.Connection, table: str) -> int:
    quoted = table.replace('"', '""')
    found = opened.execute(f'select count(*) from "{quoted}"').fetchone()
    return int(found[0])


def changed_rows(
    plan: RestorePlan, contents: Callable[[Step], tuple[bytes | None, bytes | None]]
) -> Iterator[ChangedRows]:
    """For the databases among a plan's files; `contents` gives a step's old and new content."""
    paths = {step.path for step in plan.steps}
    databases = (step for step in plan.steps if _is_database(step, paths))
    for step, _ in zip(databases, range(_MOST_DATABASES), strict=False):
        then, now = contents(step)
        yield ChangedRows(
            step.path,
            None if now is None else row_counts(now),
            None if then is None else row_counts(then),
        )


def _is_database(step: Step, paths: set[bytes]) -> bool:
    """By name and size. Excludes databases whose log the restore also rewrites, because the log
    contains rows."""
    entries = [one for one in (step.before, step.after) if one is not None]
    return (
        step.path.endswith(SUFFIXES)
        and step.path + LOG not in paths
        and all(isinstance(one, FileEntry) and one.size <= LARGEST_BYTES for one in entries)
    )
