"""Which store belongs to which directory: by a marker in the workspace, or else by its path.

A moved workspace is found by its marker, and one whose marker was deleted by its path. A copy has
the marker of its original and gets its own store. A marker whose store is missing is an error, not
a new workspace, because its checkpoints may just be out of reach. A new store that is created
anyway records which one it replaces. Processes that open a new workspace at the same time agree on
one store. The content of a workspace is not trusted: it is read through handles, never through a
link, and only a little of it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.layout import StoreLayout, make_private_directory
from holdfast.adapters.local.store_errors import MISSING_HINT
from holdfast.adapters.local.store_files import atomic_write, atomic_write_in, read_own_file
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import StoreDamaged, StoreMissing, WorkspaceRefused
from holdfast.domain.ids import WorkspaceId
from holdfast.domain.paths import MARKER_DIRECTORY
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import Filesystem
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.ports.system import IdSource

_ID = re.compile(r"[0-9a-f]{20}\Z")
MARKER_NAME = "workspace.json"
_IGNORE_FILE = b".gitignore"
_SELF_IGNORING = b"# Made by holdfast; not part of the project.\n*\n"
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MARKER_BYTES = 4096
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR)
_MARKER_DIRECTORY_MODE = 0o775
_LOCK_TIMEOUT_S = 30.0
_REMOVAL_NS = 10 * 1_000_000_000
_ENCRYPTED = "encrypted"


class Tie(NamedTuple):
    """The link to a store in a marker or a path record. Encryption is recorded there too, so that a
    lost encrypted store is not replaced by an unencrypted one."""

    id: WorkspaceId
    encrypted: bool


class LostEncryption(NamedTuple):
    """An encrypted store that is missing. Only the user's own record proves that it was here; a
    marker may have come with a clone."""

    directory: Path
    was_here: bool


class WorkspaceIdentity:
    """Finds, creates and maintains the link between a directory and its store."""

    def __init__(
        self,
        fs: Filesystem,
        home: Path,
        ids: IdSource,
        *,
        patience_s: float | None = None,
    ) -> None:
        self._fs = fs
        self._home = home
        self._ids = ids
        self._patience_s = patience_s
        self._clock = SystemClock()
        self._lock = StoreLock(home / "lock", self._clock, purpose="finding a store")

    def _held(self) -> AbstractContextManager[None]:
        return self._lock.hold(_LOCK_TIMEOUT_S, patience_s=self._patience_s)

    def find(self, workspace: Path, *, or_missing: bool = False) -> StoreLayout | None:
        """The store of a workspace, if it has one; changes nothing. `StoreMissing` if it had one
        that is missing, unless `or_missing`."""
        marked = self._read_marker(workspace)
        if marked is not None:
            layout = self.layout(marked)
            _refuse_half_a_store(layout)
            if layout.exists() and not self._is_copy(workspace, marked, layout):
                return layout
            if layout.exists():
                return None
        known = self._read_path_record(workspace)
        if known is not None and marked is None:
            _refuse_half_a_store(self.layout(known))
        if known is not None and self.layout(known).exists():
            layout = self.layout(known)
            # A workspace that has moved away leaves its record behind, but not its store.
            if layout.read_description()["workspace"] == workspace:
                return layout
        if marked is not None and not or_missing:
            raise self._missing(workspace, marked)
        return None

    def _missing(self, workspace: Path, marked: WorkspaceId) -> StoreMissing:
        where = self.layout(marked).directory
        if self._read_path_record(workspace) == marked:
            return StoreMissing(
                f"the store of {workspace} is missing: {where}",
                hint=MISSING_HINT,
            )
        return StoreMissing(
            f"the store that {workspace} names does not exist: {where}",
            hint="if HOLDFAST_HOME has changed, set it back; if the directory was copied from "
            "another machine or the store was deleted, start a new one: holdfast init --new-store",
            was_here=False,
        )

    def locate(self, workspace: Path) -> StoreLayout | None:
        """The directory of a workspace's store, in whatever state it is; changes nothing."""
        for identifier in (self._read_marker(workspace), self._read_path_record(workspace)):
            # Not `Path.is_dir`, which raises without permission.
            if identifier is not None and os.path.isdir(self.layout(identifier).directory):
                return self.layout(identifier)
        return None

    def find_or_create(
        self, workspace: Path, *, key_slots: bytes | None = None, or_missing: bool = False
    ) -> StoreLayout:
        """`or_missing`: create a new store in place of a missing one. With `key_slots`, a new store
        is encrypted."""
        layout = self.find(workspace, or_missing=or_missing)
        if layout is None:
            make_private_directory(self._fs, self._home)
            with self._held(), _refuse_obstacles():
                # Another process may have been faster.
                layout = self.find(workspace, or_missing=or_missing)
                if layout is None:
                    layout = self.layout(WorkspaceId(self._ids.new_id()))
                    layout.create(self._fs, workspace, key_slots=key_slots)
                    self._note_former(workspace, layout)
                self.tie(workspace, layout)
        self.tie(workspace, layout)
        return layout

    def _note_former(self, workspace: Path, layout: StoreLayout) -> None:
        marked = self._read_marker(workspace)
        if marked is not None and not self.layout(marked).exists():
            atomic_write(self._fs, os.fsencode(layout.former), marked.encode())

    def former(self, layout: StoreLayout) -> StoreLayout | None:
        """The missing store that this one replaced."""
        if not os.path.lexists(layout.former):
            return None
        text = read_own_file(layout.former).decode("ascii", "replace")
        return self.layout(WorkspaceId(text)) if _ID.match(text) else None

    def is_copy_of_encrypted(self, workspace: Path) -> bool:
        """Whether the directory has the marker of a workspace whose store is encrypted."""
        marked = self._read_marker(workspace)
        if marked is None or not self.layout(marked).exists():
            return False
        return bool(self.layout(marked).read_description()["encrypted"])

    def lost_encrypted(self, workspace: Path) -> LostEncryption | None:
        """Whether the directory had an encrypted store that is missing now."""
        for tie, was_here in ((self._path_tie(workspace), True), (self._marked(workspace), False)):
            if tie is not None and tie.encrypted and not self.layout(tie.id).exists():
                return LostEncryption(self.layout(tie.id).directory, was_here)
        return None

    def tie(self, workspace: Path, layout: StoreLayout) -> None:
        """Make marker, path record and store agree, if the store can be written."""
        if self._is_tied(workspace, layout) or not self._lock.takes_writes():
            return
        with self._held(), _refuse_obstacles():
            described = layout.read_description()
            if described["workspace"] != workspace:
                layout.describe(self._fs, workspace)
            tie = Tie(WorkspaceId(layout.directory.name), described["encrypted"])
            known = self._path_tie(workspace) == tie
            if not known:
                record = self._path_record(workspace)
                make_private_directory(self._fs, record.parent)
                text = f"{tie.id} {_ENCRYPTED}" if tie.encrypted else tie.id
                atomic_write(self._fs, os.fsencode(record), text.encode())
            if self._marked(workspace) != tie and not (known and self._is_being_removed(workspace)):
                self._write_marker(workspace, tie)

    def _is_being_removed(self, workspace: Path) -> bool:
        """Whether the marker has just been deleted, and its directory not yet. `git clean -fdx`
        deletes that next, and fails if there is a new marker in it. The path record is enough until
        later."""
        try:
            with self._marker_directory(workspace) as directory:
                if not set(self._fs.list_names(directory)) <= {_IGNORE_FILE}:
                    return False  # a marker, or what a killed save left of one
                changed_ns = self._fs.fstat(directory).st_mtime_ns
        except OSError:
            return False
        return 0 <= self._clock.now_ns() - changed_ns < _REMOVAL_NS

    def _is_tied(self, workspace: Path, layout: StoreLayout) -> bool:
        described = layout.read_description()
        tie = Tie(WorkspaceId(layout.directory.name), described["encrypted"])
        return (
            described["workspace"] == workspace
            and self._path_tie(workspace) == tie
            and self._marked(workspace) == tie
        )

    def layout(self, identifier: WorkspaceId) -> StoreLayout:
        return StoreLayout(self._home / "stores" / identifier)

    def _is_copy(self, workspace: Path, marked: WorkspaceId, layout: StoreLayout) -> bool:
        original: Path = layout.read_description()["workspace"]
        if original == workspace:
            return False
        try:
            same = os.path.samefile(original, workspace)
        except OSError:
            return False  # the original is gone, so this one was moved here
        return not same and self._read_marker(original) == marked

    def _path_record(self, workspace: Path) -> Path:
        return self._home / "by-path" / digest_of(os.fsencode(workspace)).hex()[:32]

    def _read_path_record(self, workspace: Path) -> WorkspaceId | None:
        tie = self._path_tie(workspace)
        return None if tie is None else tie.id

    def _path_tie(self, workspace: Path) -> Tie | None:
        try:
            text = read_own_file(self._path_record(workspace)).decode("ascii")
        except OSError as error:
            if error.errno not in (*_NOT_THERE, errno.EINVAL):
                raise
            return None
        except ValueError:
            return None
        identifier, _, word = text.partition(" ")
        return Tie(WorkspaceId(identifier), word == _ENCRYPTED) if _ID.match(identifier) else None

    @contextmanager
    def _marker_directory(self, workspace: Path) -> Iterator[int]:
        path = os.fsencode(workspace) + b"/" + MARKER_DIRECTORY
        fd = self._fs.open(path, _DIRECTORY_FLAGS)
        try:
            yield fd
        finally:
            self._fs.close(fd)

    def _read_marker(self, workspace: Path) -> WorkspaceId | None:
        tie = self._marked(workspace)
        return None if tie is None else tie.id

    def _marked(self, workspace: Path) -> Tie | None:
        try:
            with self._marker_directory(workspace) as directory:
                fd = self._fs.open(MARKER_NAME.encode(), _FILE_FLAGS, dir_fd=directory)
                try:
                    regular = stat.S_ISREG(self._fs.fstat(fd).st_mode)
                    data = self._fs.read(fd, _MARKER_BYTES + 1) if regular else b""
                finally:
                    self._fs.close(fd)
            marker = json.loads(data) if len(data) <= _MARKER_BYTES else {}
            identifier, encrypted = marker["id"], marker.get(_ENCRYPTED) is True
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise  # a temporary error must not look like a workspace without a store
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if not isinstance(identifier, str) or not _ID.match(identifier):
            return None
        return Tie(WorkspaceId(identifier), encrypted)

    def _write_marker(self, workspace: Path, tie: Tie) -> None:
        """A workspace that cannot be written is found by its path alone."""
        data = json.dumps({"id": tie.id, **({_ENCRYPTED: True} if tie.encrypted else {})}).encode()
        try:
            self._make_marker_directory(workspace)
            with self._marker_directory(workspace) as directory:
                if _IGNORE_FILE not in self._fs.list_names(directory):
                    atomic_write_in(self._fs, directory, _IGNORE_FILE, _SELF_IGNORING, mode=0o644)
                atomic_write_in(self._fs, directory, MARKER_NAME.encode(), data, mode=0o644)
        except OSError:
            return

    def _make_marker_directory(self, workspace: Path) -> None:
        """It contains staged content, so other users must not be able to replace it, whatever the
        umask. If root creates it, it belongs to the owner of the workspace, who has to use it
        too."""
        path = os.fsencode(workspace) + b"/" + MARKER_DIRECTORY
        try:
            self._fs.mkdir(path, _MARKER_DIRECTORY_MODE)
        except FileExistsError:
            return
        if self._fs.may_chown():
            owner = self._fs.stat(os.fsencode(workspace))
            with self._marker_directory(workspace) as directory:
                self._fs.fchown(directory, owner.st_uid, owner.st_gid)


@contextmanager
def _refuse_obstacles() -> Iterator[None]:
    """The path of a Holdfast file or directory may be occupied by another kind of file."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        where = os.fsdecode(error.filename2 or error.filename or b"?")
        raise WorkspaceRefused(
            f"something blocks the store's {where}: {error.strerror}",
            hint="move it away, or set HOLDFAST_HOME to another directory",
        ) from None


def _refuse_half_a_store(layout: StoreLayout) -> None:
    """A new store beside one that lost its description would hide everything in it."""
    packs = layout.objects / "packs"
    holds_something = layout.catalog.exists() or (packs.is_dir() and any(packs.iterdir()))
    if holds_something and not layout.exists():
        raise StoreDamaged(
            f"the store {layout.directory} has lost its {layout.description.name}",
            hint="its checkpoints are still there; run: holdfast repair",
        )
