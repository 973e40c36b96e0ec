"""SQLite databases of the workspace that other programs have open: read, paused and written under
SQLite's locks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.domain.sqlite_files import DatabaseJob, Written


class LiveDatabases(Protocol):
    """Every name is relative to `dir_fd` (I6)."""

    def hold_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """While held, a SQLite database is not rewritten, and its log is not restarted. False if
        that is not possible. Closing a handle of the database may end the hold."""

    def pause_database(self, name: bytes, *, dir_fd: int) -> AbstractContextManager[bool]:
        """Within the block, no process begins a transaction on a SQLite database with a rollback
        journal; False if a running one does not end. True for any other file."""

    def is_database_in_use(self, name: bytes, *, dir_fd: int) -> bool:
        """Whether a SQLite database is open elsewhere right now. Where the system does not tell,
        its shared memory does. False for any other file."""

    def overwrite_database(self, job: DatabaseJob, *, dir_fd: int, area_fd: int) -> Written:
        """Replace the content of a live SQLite database. Its users see the old state or the new
        one, even after a crash. `PerhapsWritten` means one of the two, any other `OSError` the old
        one."""
