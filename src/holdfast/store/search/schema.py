"""The tables of the search index.

`moments` has a row for each checkpoint and `sayings` one for each message, both numbered as their
sources number them; neither keeps the texts, only where which word stands. `scope` holds no words
but marks: session, kind, tags and states, so that filters are as quick as words. `eras` tells
between which times the rows of a block of numbers lie.
"""

from __future__ import annotations

from holdfast.domain.search_hits import Field

FORMAT = "1"
OUR_MARK = b"sayings USING fts5"
BLOCK_BITS = 12

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

_OPTIONS = (
    "content='', contentless_delete=1, prefix='2 3', tokenize='unicode61 remove_diacritics 2'"
)


def _index(name: str, columns: dict[str, Field]) -> str:
    named = ", ".join((*columns, WHOLE, SCOPE))
    return f"CREATE VIRTUAL TABLE {name} USING fts5({named}, {_OPTIONS});"


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
{_index("moments", CHECKPOINT_COLUMNS)}
{_index("sayings", MESSAGE_COLUMNS)}
INSERT INTO facts VALUES ('format', '{FORMAT}');
"""
