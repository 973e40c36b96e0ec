"""Which store belongs to which directory: a marker in the workspace, and the path as second best.

A moved workspace is found by its marker, one whose marker was deleted by its path. A copy carries
the marker of its original and gets a store of its own.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from holdfast.domain.digests import digest_of
from holdfast.domain.ids import WorkspaceId
from holdfast.domain.paths import MARKER_DIRECTORY
from holdfast.ports.clock import IdSource
from holdfast.ports.filesystem import Filesystem
from holdfast.store.atomic_write import atomic_write
from holdfast.store.layout import StoreLayout, make_private_directory

_ID = re.compile(r"[0-9a-f]{20}\Z")
MARKER_NAME = "workspace.json"
_SELF_IGNORING = b"# Made by holdfast; not part of the project.\n*\n"


class WorkspaceIdentity:
    """Finds, makes and keeps the tie between a directory and its store."""

    def __init__(self, fs: Filesystem, home: Path, ids: IdSource) -> None:
        self._fs = fs
        self._home = home
        self._ids = ids

    def find(self, workspace: Path) -> StoreLayout | None:
        """The store of a workspace, if it has one; changes nothing."""
        marked = self._read_marker(workspace)
        if marked is not None:
            layout = self.layout(marked)
            if layout.exists() and not self._is_copy(workspace, marked, layout):
                return layout
            if layout.exists():
                return None
        known = self._read_path_record(workspace)
        if known is not None and self.layout(known).exists():
            return self.layout(known)
        return None

    def find_or_create(self, workspace: Path) -> StoreLayout:
        layout = self.find(workspace)
        if layout is None:
            layout = self.layout(WorkspaceId(self._ids.new_id()))
            layout.create(self._fs, workspace)
        self.tie(workspace, layout)
        return layout

    def tie(self, workspace: Path, layout: StoreLayout) -> None:
        """Make marker, path record and store agree."""
        identifier = WorkspaceId(layout.directory.name)
        if self._read_path_record(workspace) != identifier:
            record = self._path_record(workspace)
            make_private_directory(self._fs, record.parent)
            atomic_write(self._fs, os.fsencode(record), identifier.encode())
        if layout.read_description()["workspace"] != workspace:
            layout.describe(self._fs, workspace)
        if self._read_marker(workspace) != identifier:
            self._write_marker(workspace, identifier)

    def layout(self, identifier: WorkspaceId) -> StoreLayout:
        return StoreLayout(self._home / "stores" / identifier)

    def _is_copy(self, workspace: Path, marked: WorkspaceId, layout: StoreLayout) -> bool:
        original: Path = layout.read_description()["workspace"]
        if original == workspace:
            return False
        try:
            same = os.path.samefile(original, workspace)
        except OSError:
            return False  # the original is gone: this one was moved here
        return not same and self._read_marker(original) == marked

    def _path_record(self, workspace: Path) -> Path:
        return self._home / "by-path" / digest_of(os.fsencode(workspace)).hex()[:32]

    def _read_path_record(self, workspace: Path) -> WorkspaceId | None:
        try:
            text = self._path_record(workspace).read_text("ascii")
        except (OSError, ValueError):
            return None
        return WorkspaceId(text) if _ID.match(text) else None

    def _read_marker(self, workspace: Path) -> WorkspaceId | None:
        path = workspace / os.fsdecode(MARKER_DIRECTORY) / MARKER_NAME
        try:
            identifier = json.loads(path.read_bytes())["id"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        valid = isinstance(identifier, str) and _ID.match(identifier)
        return WorkspaceId(identifier) if valid else None

    def _write_marker(self, workspace: Path, identifier: WorkspaceId) -> None:
        """A workspace that cannot be written to is found by its path alone."""
        directory = workspace / os.fsdecode(MARKER_DIRECTORY)
        try:
            directory.mkdir(exist_ok=True)
            ignore = directory / ".gitignore"
            if not ignore.exists():
                atomic_write(self._fs, os.fsencode(ignore), _SELF_IGNORING, mode=0o644)
            data = json.dumps({"id": identifier}).encode()
            atomic_write(self._fs, os.fsencode(directory / MARKER_NAME), data, mode=0o644)
        except OSError:
            return
