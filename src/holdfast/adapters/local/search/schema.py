"""The tables of the search index.

`moments` have a row for each checkpoint and `sayings` one for each message, both numbered as their
sources number them; neither keeps the texts, only where which word stands. Each is cut into parts
by number, so that looking at the newest costs the same however much there is: what a query costs
grows with the part, the beginnings of words above all, which are gathered from a whole table.
Behind the words of a column stand the stems of those that have one of their own, marked.
`scope` holds no words but marks: session, kind, tags and states, so that filters are as quick as
words. `eras` tells between which times the rows of a block of numbers lie.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.search.hits import Field

FORMAT = "4"
OUR_MARK = b"CREATE TABLE eras ("
BLOCK_BITS = 12
INDEXED_BEGINNING = 5
"""Letters of a beginning that the index knows like a word; longer ones are put together."""

CHECKPOINT_COLUMNS = {
    "name": Field.NAME,
    "reasoning": Field.REASONING,
    "tags": Field.TAG,
    "ids": Field.ID,
    "tools": Field.TOOL,
    "notes": Field.ANNOTATION,
    "paths": Field.PATH,
}
MESSAGE_COLUMNS = {"content": Field.MESSAGE, "tools": Field.TOOL}
WHOLE = "whole"
"""Names that consist of several words, from all other columns."""

SCOPE = "scope"

WEIGHTS = {
    "name": 10.0,
    "tags": 6.0,
    "notes": 5.0,
    WHOLE: 5.0,
    "ids": 4.0,
    "reasoning": 4.0,
    "content": 2.0,
    "tools": 2.0,
    "paths": 2.0,
}

_BEGINNINGS = " ".join(map(str, range(1, INDEXED_BEGINNING + 1)))
_OPTIONS = (
    f"content='', contentless_delete=1, prefix='{_BEGINNINGS}',"
    " tokenize='unicode61 remove_diacritics 2'"
)


class Place(StrEnum):
    """The table of the rows that an index is about."""

    KEPT = "kept"
    SAID = "said"


_NAMES = {Place.KEPT: "moments", Place.SAID: "sayings"}
_PART_BITS = {Place.KEPT: 15, Place.SAID: 16}
COLUMNS_OF = {Place.KEPT: CHECKPOINT_COLUMNS, Place.SAID: MESSAGE_COLUMNS}


def part_of(place: Place, sequence: int) -> int:
    return sequence >> _PART_BITS[place]


def first_of_part(place: Place, part: int) -> int:
    """The lowest number that a row of it can have."""
    return part << _PART_BITS[place]


def index_of(place: Place, part: int) -> str:
    """The name of the table."""
    return f"{_NAMES[place]}_{part}"


def make_index(place: Place, part: int) -> str:
    """The statement that makes it if it is not there."""
    named = ", ".join((*COLUMNS_OF[place], WHOLE, SCOPE))
    table = index_of(place, part)
    return f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} USING fts5({named}, {_OPTIONS})"


SCHEMA = f"""
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE kept (
  sequence INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session INTEGER NOT NULL,
  at_ns INTEGER NOT NULL,
  message_index INTEGER
);
CREATE INDEX kept_by_message ON kept(session, message_index) WHERE message_index IS NOT NULL;
CREATE TABLE said (
  sequence INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at_ns INTEGER NOT NULL
);
CREATE TABLE eras (
  place TEXT NOT NULL,
  block INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL,
  PRIMARY KEY (place, block)
) WITHOUT ROWID;
INSERT INTO facts VALUES ('format', '{FORMAT}');
"""
