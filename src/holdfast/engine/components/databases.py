"""The databases in a checkpoint, for its summary: SQLite files and PostgreSQL databases.

SQLite files are found by name, nearest to the top first, and confirmed by their first bytes. Only
some directories are searched, so that the summary of a large workspace costs a few milliseconds.
Directories are remembered by their digest for the life of the process, because checkpoints share
most of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text, join, to_text
from holdfast.domain.sqlite_files import HEADER, LOG, SUFFIXES
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.wording import count_words, printable, size_words
from holdfast.engine.components.manifests import state_of
from holdfast.engine.scan.databases import SUMMARY_DIRECTORIES
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass, replace

_MOST_FILES = 20
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class SavedDatabase:
    """`size_bytes` is set for files; `tables` and `rows` for server databases, and for files whose
    rows were counted."""

    type: str
    name: str
    size_bytes: int | None = None
    tables: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        if self.size_bytes is not None:
            return f"{printable(self.name)} (SQLite, {size_words(self.size_bytes)})"
        tables, rows = count_words(self.tables or 0, "table"), count_words(self.rows or 0, "row")
        return f"{printable(self.name)} (PostgreSQL, {tables}, {rows})"


def saved_databases(
    vault: Vault, checkpoint: Checkpoint, *, with_files: bool = True
) -> list[SavedDatabase]:
    """Without unreadable ones: the checkpoint itself is not checked here. Not `with_files`: the
    scan has found no SQLite files."""
    try:
        files = list(_sqlite_files(vault, checkpoint)) if with_files else []
        server = state_of(vault.objects, checkpoint, "postgres")
    except StoreDamaged:
        return []
    return files + ([] if server is None else list(_server_databases(server)))


def counted_databases(vault: Vault, checkpoint: Checkpoint) -> list[SavedDatabase]:
    """The same with row counts of SQLite files. Reads each file, so use it for one checkpoint."""
    found = saved_databases(vault, checkpoint)
    return [_counted(vault, checkpoint, one) if one.type == "sqlite" else one for one in found]


def _counted(vault: Vault, checkpoint: Checkpoint, one: SavedDatabase) -> SavedDatabase:
    from holdfast.engine.components.database_rows import LARGEST_BYTES, row_counts

    path = from_text(one.name)
    entry = entry_at(vault.load_tree, checkpoint.tree, path)
    log = entry_at(vault.load_tree, checkpoint.tree, path + LOG)
    if not isinstance(entry, FileEntry) or entry.size > LARGEST_BYTES:
        return one
    if isinstance(log, FileEntry) and log.size > 0:
        return one  # the newest rows are in the log
    try:
        rows = row_counts(b"".join(read_content(vault.objects, entry)))
    except StoreDamaged:
        return one
    return one if rows is None else replace(one, tables=len(rows), rows=sum(rows.values()))


@dataclass(frozen=True, slots=True)
class _Directory:
    """The relevant entries of a directory, in order: subdirectories, and possible databases."""

    directories: tuple[DirectoryEntry, ...]
    files: tuple[FileEntry, ...]


_remembered: dict[Digest, _Directory] = {}


def _directory(vault: Vault, digest: Digest) -> _Directory:
    known = _remembered.get(digest)
    if known is None:
        tree = vault.load_tree(digest)
        named = (tree.entry(name) for name in sorted(tree.rows) if name.endswith(SUFFIXES))
        files = tuple(one for one in named if isinstance(one, FileEntry))
        known = _Directory(tree.directories, files)
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[digest] = known
    return known


def _sqlite_files(vault: Vault, checkpoint: Checkpoint) -> Iterator[SavedDatabase]:
    waiting = deque([(b"", checkpoint.tree)])
    directories = files = 0
    while waiting and directories < SUMMARY_DIRECTORIES:
        directories += 1
        above, digest = waiting.popleft()
        found = _directory(vault, digest)
        waiting.extend((join(above, one.name), one.digest) for one in found.directories)
        for entry in found.files[: _MOST_FILES - files]:
            files += 1
            if next(read_content(vault.objects, entry), b"").startswith(HEADER):
                path = join(above, entry.name)
                yield SavedDatabase("sqlite", to_text(path), size_bytes=entry.size)


def _server_databases(state: ComponentState) -> Iterator[SavedDatabase]:
    for row in state.facts.get("databases", ()):
        yield SavedDatabase(
            "postgres", str(row["database"]), tables=int(row["tables"]), rows=int(row["rows"])
        )
