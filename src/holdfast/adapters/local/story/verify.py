"""Verifying a story: file, schema, rows, and that no message is missing. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw

from holdfast.adapters.local.catalog.rows import is_sealed
from holdfast.adapters.local.catalog.verify import (
    SCHEMA,
    file_is_whole,
    found_problems,
    schema_made_by,
)
from holdfast.adapters.local.story.migrations import migrate_story
from holdfast.adapters.local.story.rows import COLUMNS
from holdfast.adapters.local.story.story_file import StoryFile
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.wording import count_words


def problems(file: StoryFile) -> Iterator[str]:
    try:
        if forgotten := file.forgotten():
            yield forgotten
        with file.reading() as db:
            if db is not None:
                yield from found_problems(db, CHECKS)
    except StoreDamaged as error:
        yield error.message


def schema_is_ours(db: apsw.Connection) -> Iterator[str]:
    if db.execute(SCHEMA).fetchall() != schema_made_by(migrate_story):
        yield "the schema is not the one that Holdfast made"


def rows_match_their_checksums(db: apsw.Connection) -> Iterator[str]:
    for table, columns in COLUMNS.items():
        for row in db.execute(f"SELECT {columns} FROM {table}"):
            if not is_sealed(table, row):
                yield f"a row of {table} ({row[0]!a}) does not match its checksum"


def no_message_is_missing(db: apsw.Connection) -> Iterator[str]:
    query = (
        "SELECT session_id, max(position) + 1 - count(*) FROM messages GROUP BY session_id"
        " HAVING max(position) + 1 <> count(*) ORDER BY session_id"
    )
    for session_id, missing in db.execute(query):
        are = "is" if missing == 1 else "are"
        yield f"{count_words(missing, 'message')} of session {session_id!a} {are} missing"


CHECKS: tuple[Callable[[apsw.Connection], Iterator[str]], ...] = (
    file_is_whole,
    schema_is_ours,
    rows_match_their_checksums,
    no_message_is_missing,
)
