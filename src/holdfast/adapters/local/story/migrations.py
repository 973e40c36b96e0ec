"""The story's schema as a list of named steps; each commits together with its record."""

from __future__ import annotations

import apsw

from holdfast.adapters.local.catalog.migrations import (
    Migration,
    applied_migrations,
    migrate,
    require_known,
)
from holdfast.adapters.local.story.rows import INSERT, sealed
from holdfast.adapters.local.system import RandomIds

GENERATION, CHANGES = "generation", "changes"
OF_THE_STORY = ""
"""The session id of facts about the story itself."""


def _begin(db: apsw.Connection) -> None:
    for name, value in ((GENERATION, RandomIds.new_id()), (CHANGES, "0")):
        db.execute(INSERT["facts"], sealed("facts", (OF_THE_STORY, name, value)))


STORY_MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "0001-messages-annotations-activities",
        """
        CREATE TABLE messages (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          session_id TEXT NOT NULL,
          position INTEGER NOT NULL,
          role TEXT NOT NULL,
          content TEXT NOT NULL,
          at_ns INTEGER NOT NULL,
          tool_calls TEXT NOT NULL,
          source_key TEXT,
          checksum BLOB NOT NULL
        );
        CREATE UNIQUE INDEX message_places ON messages(session_id, position);
        CREATE UNIQUE INDEX message_sources ON messages(session_id, source_key)
          WHERE source_key IS NOT NULL;
        CREATE TABLE annotations (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          session_id TEXT NOT NULL,
          checkpoint TEXT NOT NULL,
          number INTEGER NOT NULL,
          revision INTEGER NOT NULL,
          text TEXT NOT NULL,
          author TEXT,
          at_ns INTEGER NOT NULL,
          checksum BLOB NOT NULL
        );
        CREATE UNIQUE INDEX annotation_places
          ON annotations(session_id, checkpoint, number, revision);
        CREATE INDEX annotation_checkpoints ON annotations(checkpoint);
        CREATE TABLE activities (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          session_id TEXT NOT NULL,
          kind TEXT NOT NULL,
          reason TEXT NOT NULL,
          checkpoint TEXT NOT NULL,
          started_at_ns INTEGER NOT NULL,
          owner TEXT NOT NULL,
          paths TEXT NOT NULL,
          message_index INTEGER,
          status TEXT NOT NULL,
          ended_at_ns INTEGER,
          outcome TEXT,
          diff BLOB,
          checksum BLOB NOT NULL
        );
        CREATE INDEX activity_history ON activities(session_id, number);
        CREATE INDEX activity_checkpoints ON activities(checkpoint);
        CREATE INDEX open_activities ON activities(number) WHERE status='open';
        CREATE TABLE rollbacks (
          sequence INTEGER PRIMARY KEY AUTOINCREMENT,
          session_id TEXT NOT NULL,
          operation INTEGER NOT NULL,
          record INTEGER NOT NULL,
          through INTEGER NOT NULL,
          before TEXT NOT NULL,
          after TEXT NOT NULL,
          checksum BLOB NOT NULL
        );
        CREATE UNIQUE INDEX rollback_history ON rollbacks(session_id, operation);
        CREATE TABLE facts (
          session_id TEXT NOT NULL,
          name TEXT NOT NULL,
          value TEXT NOT NULL,
          checksum BLOB NOT NULL,
          PRIMARY KEY (session_id, name)
        ) WITHOUT ROWID;
        """,
        fill=_begin,
    ),
)


def is_migrated(db: apsw.Connection) -> bool:
    """`NewerStore` if a later version wrote it."""
    applied = applied_migrations(db)
    require_known(applied, STORY_MIGRATIONS, "story")
    return len(applied) == len(STORY_MIGRATIONS)


def migrate_story(db: apsw.Connection) -> None:
    migrate(db, STORY_MIGRATIONS)
