"""Databases that a running program has open, whose changes alone are not a step of undo.

    the agent deletes src; the server writes its database → undo → the server writes its database …

A server changes its database between any two commands. If that were a step, each undo would roll
these rows back, and none would get to the change before. So a state that differs from the
workspace only in such databases is passed over. The step before it restores them with everything
else. It is a step, though, if a tool call that began in that state names the database, as in
`sqlite3 shop.db "DROP TABLE orders"`, or if the database itself was created or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.domain.paths import basename, from_text, parent
from holdfast.domain.sqlite_files import SMALLEST_PAGE_BYTES, database_of
from holdfast.domain.trees.entries import Entry, FileEntry
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.undo.causes import Cause
from holdfast.engine.vault import Vault


class DatabasesInUse:
    """`passed_over` are those whose changes were not counted as a step."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[bytes, bool] = {}
        self._counted = False
        self.passed_over: set[bytes] = set()

    def count(self) -> None:
        """From now on, their changes are steps like any other."""
        self._counted = True
        self.passed_over = set()

    def owner_of(self, path: bytes, *states: Entry | None) -> bytes | None:
        """The database in use that a changed file belongs to; `states` are the file's, if known."""
        if self._counted:
            return None
        base = database_of(path)
        if base is not None and self._is_in_use(base):
            return base
        if states and not any(_may_be_database(entry) for entry in states):
            return None
        return path if self._is_in_use(path) else None

    def _is_in_use(self, path: bytes) -> bool:
        if path not in self._known:
            self._known[path] = self._look(path)
        return self._known[path]

    def _look(self, path: bytes) -> bool:
        vault = self._vault
        with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
            try:
                dir_fd = handles.open(parent(path))
            except OSError:
                return False
            return vault.databases.is_database_in_use(basename(path), dir_fd=dir_fd)


def named_in(causes: Iterable[Cause], databases: Iterable[bytes]) -> bool:
    """Whether one of these calls names one of the databases."""
    texts = [from_text(text) for cause in causes for text in _texts(cause)]
    return any(basename(path) in text for path in databases for text in texts)


def _texts(cause: Cause) -> Iterator[str]:
    yield cause.subject
    yield from cause.edits


def _may_be_database(entry: Entry | None) -> bool:
    return isinstance(entry, FileEntry) and entry.size > 0 and entry.size % SMALLEST_PAGE_BYTES == 0
