"""Databases of the workspace that other programs have open: read, paused and written as they allow.

The files are those of SQLite. Every name is relative to `dir_fd` (I6).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.domain.sqlite_files import DatabaseJob, Written


class LiveDatabases(Protocol):
    def hold_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """While it is held, a SQLite database is not rewritten, and its log not begun anew. False
        when that cannot be had. Closing a handle of the database may end it."""

    def pause_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """For the block nobody begins a transaction of a SQLite database with a rollback journal;
        False when one does not end. True for any other file."""

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        """Bring a live SQLite database to another state so that whoever uses it sees the old one or
        the new one; after a crash at any point, too. `PerhapsWritten` means one of the two, any
        other `OSError` the old one."""
