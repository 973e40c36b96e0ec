"""The paths of a store's parts, and its format.

$HOLDFAST_HOME/
  lock                          one process at a time links a workspace to its store
  by-path/<digest of path>      the id of the workspace last seen there
  stores/<workspace id>/
    store.json                  format version, the workspace's last path, whether it is encrypted
    keys.json, keys-copy.json   encrypted stores: the store's key, wrapped once per secret
    lock                        one writer at a time
    catalog.db                  sessions, checkpoints, operations, settings
    objects/index.db            where each object is (rebuildable)
    objects/packs/*.pack        content
    story.db, story.lock        messages, annotations, edits; created with the first of them
    stat-cache.db               speeds up scans (may be lost)
    search.db, search.lock      the search index (may be lost), and the lock of its writers
    events.db, events.lock      numbered events (may be lost), and the lock of their writers
    hook-events                 digests of recently handled hook events (may be lost)
    tool-log, tool-log.1        when agents' tools began and ended (may be lost)
    main-branches               the commits of main branches at the last check (may be lost)
    upkeep                      the last cleanup and the last check, and their results (may be lost)
    running-tools/              a file for each running tool of an agent (may be lost)
    agent-states                the last states that agents set through the Python API
    external-paths              files outside the workspace that tools have named
    nested-repositories         nested repositories in which commits are kept alive
    former-store                the id of the missing store that this one replaced
    journal                     only while a restore runs
    unlocked                    only while a restore has changed permissions to access files
    recovered                   interrupted restores that were recovered, until a command reports it
    story.rebuilt.db            only while a repair replaces story.db
    story.suspect               only after a failed fsync of story.db
    suspect                     only after a failed fsync, until its files are verified
    purge                       only while content is being purged
    set-aside/                  files quarantined by a repair; never read
    repair                      only while a repair replaces the catalog
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from holdfast.adapters.local.store_files import atomic_write, read_own_file, sync_directory
from holdfast.domain.errors import NewerStore, StoreDamaged, WorkspaceRefused
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import DIRECTORY_MODE, Filesystem
from holdfast.values.classes import dataclass

RUNNING_TOOLS = "running-tools"
TOOL_LOG = "tool-log"
AGENT_STATES = "agent-states"
EXTERNAL_PATHS = "external-paths"
NESTED_REPOSITORIES = "nested-repositories"
FORMAT = 2
"""The newest format that this version reads. Unencrypted stores keep the first format, so that
versions from before encryption can read them."""

_PLAIN_FORMAT = 1
_ENCRYPTED_FORMAT = 2
_OTHERS = 0o077


class _Below:
    """A path in the store, by its name in the store's directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: StoreLayout, owner: type[StoreLayout]) -> Path:
        return layout.directory / self._name


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The paths of one store."""

    directory: Path

    description = _Below("store.json")
    keys = _Below("keys.json")
    keys_copy = _Below("keys-copy.json")
    lock = _Below("lock")
    catalog = _Below("catalog.db")
    objects = _Below("objects")
    story = _Below("story.db")
    story_lock = _Below("story.lock")
    stat_cache = _Below("stat-cache.db")
    search = _Below("search.db")
    search_lock = _Below("search.lock")
    events = _Below("events.db")
    events_lock = _Below("events.lock")
    named_paths = _Below("named-paths")
    former = _Below("former-store")
    upkeep = _Below("upkeep")
    journal = _Below("journal")
    unlocked = _Below("unlocked")
    recovered = _Below("recovered")
    suspect = _Below("suspect")
    purge_note = _Below("purge")

    @property
    def home(self) -> Path:
        return self.directory.parent.parent

    def exists(self) -> bool:
        return self.description.exists()

    def create(self, fs: Filesystem, workspace: Path, *, key_slots: bytes | None = None) -> None:
        """Private from the start; writing the description last makes it a store. With `key_slots`,
        it is encrypted."""
        for path in (self.directory, self.objects, self.objects / "packs"):
            make_private_directory(fs, path)
        if key_slots is not None:
            for path in (self.keys, self.keys_copy):
                atomic_write(fs, os.fsencode(path), key_slots)
        self.describe(fs, workspace)

    def describe(self, fs: Filesystem, workspace: Path) -> None:
        encrypted = self.keys.exists() or self.keys_copy.exists()
        data: dict[str, Any] = {
            "format": _ENCRYPTED_FORMAT if encrypted else _PLAIN_FORMAT,
            "workspace": os.fsencode(workspace).hex(),
        }
        if encrypted:
            data["encrypted"] = True
        data["checksum"] = _checksum(data)
        atomic_write(fs, os.fsencode(self.description), json.dumps(data).encode())

    def read_description(self) -> dict[str, Any]:
        """Refuses a store of another format or owner without changing anything."""
        status = self.require_own()
        try:
            described = json.loads(read_own_file(self.description))
            version = described["format"]
            if type(version) is not int or version < 1:
                raise ValueError("it has no format")
            if version > FORMAT:  # checked first, because a later format may change the rest
                raise NewerStore(
                    f"the store has format {version}; this version of Holdfast reads up to "
                    f"{FORMAT}",
                    hint="upgrade Holdfast; the store was not changed",
                )
            if described.get("checksum") not in (None, _checksum(described)):
                raise ValueError("its checksum does not match")
            workspace = bytes.fromhex(described["workspace"])
            if b"\0" in workspace:
                raise ValueError("it has no workspace path")
            encrypted = version >= _ENCRYPTED_FORMAT
            if encrypted is not described.get("encrypted", False):
                raise ValueError("it does not record whether the store is encrypted")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise StoreDamaged(
                f"cannot read {self.description}", hint="run: holdfast repair"
            ) from None
        if status.st_mode & _OTHERS:
            self.directory.chmod(DIRECTORY_MODE)
        return {
            "format": version,
            "workspace": Path(os.fsdecode(workspace)),
            "encrypted": encrypted,
        }

    def require_own(self) -> os.stat_result:
        """Refuse another user's store."""
        status = self.directory.stat()
        if status.st_uid != os.geteuid():
            raise WorkspaceRefused(
                f"the store {self.directory} belongs to another user (uid {status.st_uid})",
                hint="set HOLDFAST_HOME to a directory of your own",
            )
        return status

    def description_is_sealed(self) -> bool:
        """Whether the description is as Holdfast wrote it; every version seals it the same way."""
        try:
            described = json.loads(self.description.read_bytes())
            return bool(described.get("checksum") in (None, _checksum(described)))
        except (OSError, ValueError, AttributeError, RecursionError):
            return False


def _checksum(described: dict[str, Any]) -> str:
    text = f"{described.get('format')!a} {described.get('workspace')!a}"
    return digest_of(text.encode()).hex()[:16]


def make_private_directory(fs: Filesystem, path: Path) -> None:
    """Create it with all missing parents, each private and its name durable."""
    if path.is_dir():
        return
    make_private_directory(fs, path.parent)
    try:
        fs.mkdir(os.fsencode(path), DIRECTORY_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    sync_directory(fs, os.fsencode(path.parent))
