"""Small store files: the restore journal, components' notes, and hints of automatic work.

In an encrypted store each is sealed, with its own name as the context.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.local.layout import AGENT_STATES, EXTERNAL_PATHS, NESTED_REPOSITORIES
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import (
    atomic_write,
    quarantine,
    quarantine_directory,
    read_own_file,
    sync_directory,
)
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.paths import from_text, is_within, to_text

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.store_errors import SyncFailures
    from holdfast.ports.filesystem import Filesystem
    from holdfast.ports.store import AgentStatesBySession


_HINT_BYTES = 64 << 10
_LONGER_BY = 64
"""At least as many bytes as sealing adds."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class StoreNotes:
    """The notes of one store, by file name.

    A hint is a note on which nothing depends. It is replaced whole, but never synced, because
    agents wait for it."""

    def __init__(
        self,
        fs: Filesystem,
        directory: Path,
        sync_failures: SyncFailures,
        cipher: Cipher | None = None,
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._sync_failures = sync_failures
        self._cipher = cipher

    def is_sealed(self) -> bool:
        return self._cipher is not None

    def exists(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._directory, name))

    def read(self, name: str) -> bytes | None:
        """None if there is no such file. Empty if its seal does not match, so that its decoder
        reports it as unusable."""
        with store_trouble(f"reading its {name}"):
            try:
                data = read_own_file(self._directory / name)
            except FileNotFoundError:
                return None
        opened = self.opened(name, data)
        return b"" if opened is None else opened

    def write(self, name: str, data: bytes) -> None:
        """Durable when it returns."""
        path = self._directory / name
        with store_trouble(f"writing its {name}"), self._sync_failures.syncing(path):
            atomic_write(self._fs, os.fsencode(path), self.sealed(name, data))

    def remove(self, name: str) -> None:
        with store_trouble(f"removing its {name}"), contextlib.suppress(FileNotFoundError):
            self._fs.unlink(os.fsencode(self._directory / name))

    def sync_removals(self) -> None:
        with store_trouble("finishing a removal"):
            sync_directory(self._fs, os.fsencode(self._directory))

    def read_hint(self, name: str) -> bytes | None:
        try:
            fd = os.open(os.path.join(self._directory, name), _READ)
            try:
                data = os.read(fd, _HINT_BYTES + _LONGER_BY)
            finally:
                os.close(fd)
        except OSError:
            return None
        return self.opened(name, data)

    def write_hint(self, name: str, data: bytes) -> bool:
        new = os.path.join(self._directory, f".{name}.{threading.get_native_id()}.new")
        sealed = self.sealed(name, data)
        try:
            fd = os.open(new, _REPLACE, 0o600)
            try:
                if os.write(fd, sealed) != len(sealed):
                    raise OSError("the disk is full")
            finally:
                os.close(fd)
            os.replace(new, os.path.join(self._directory, name))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(new)
            return False
        return True

    def sealed(self, name: str, data: bytes) -> bytes:
        return data if self._cipher is None else self._cipher.seal(data, name.encode())

    def opened(self, name: str, data: bytes) -> bytes | None:
        """The reverse of `sealed`; None if the seal does not match."""
        if self._cipher is None:
            return data
        from holdfast.adapters.local.encryption.cipher import NotAuthentic

        try:
            return self._cipher.open(data, name.encode())
        except NotAuthentic:
            return None


class LocalRestoreJournal:
    """See `holdfast.ports.store.RestoreJournal` for the contract of each member."""

    def __init__(self, notes: StoreNotes, layout: StoreLayout) -> None:
        self._notes = notes
        self._layout = layout

    def read(self) -> bytes | None:
        return self._notes.read(self._layout.journal.name)

    def write(self, data: bytes) -> None:
        self._notes.write(self._layout.journal.name, data)

    def remove(self) -> None:
        self._notes.remove(self._layout.journal.name)

    def quarantine(self, occasion: str) -> None:
        with store_trouble("quarantining the journal"):
            quarantine(self._layout.directory, occasion, self._layout.journal)

    def read_note(self) -> bytes | None:
        return self._notes.read(self._layout.unlocked.name)

    def write_note(self, data: bytes) -> None:
        self._notes.write(self._layout.unlocked.name, data)

    def remove_note(self) -> None:
        self._notes.remove(self._layout.unlocked.name)

    def read_report(self) -> bytes | None:
        return self._notes.read(self._layout.recovered.name)

    def write_report(self, data: bytes) -> None:
        self._notes.write(self._layout.recovered.name, data)

    def remove_report(self) -> None:
        self._notes.remove(self._layout.recovered.name)


class Notes(Protocol):
    """Small files of a store by name, as in `StoreNotes`."""

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, data: bytes) -> None: ...


class StoredAgentStates:
    """See `holdfast.ports.store.AgentStates`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def exist(self) -> bool:
        return self._notes.exists(AGENT_STATES)

    def load(self) -> AgentStatesBySession:
        data = self._notes.read(AGENT_STATES)
        if data is None:
            return {}
        try:
            states = json.loads(data)
            for agents in states.values():
                if not all(isinstance(state, dict) for state in agents.values()):
                    raise ValueError("a state is not an object")
        except (ValueError, AttributeError, RecursionError):
            raise StoreDamaged(
                "the agent states in the store are unusable",
                hint="remove the file agent-states from the store; then set the states again, "
                "or restore a checkpoint",
            ) from None
        loaded: AgentStatesBySession = states
        return loaded

    def replace(self, states: AgentStatesBySession) -> None:
        text = json.dumps(states, separators=(",", ":"), sort_keys=True)
        self._notes.write(AGENT_STATES, text.encode())


class StoredExternalPaths:
    """See `holdfast.ports.store.ExternalPaths`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def exist(self) -> bool:
        return self._notes.exists(EXTERNAL_PATHS)

    def load(self) -> list[bytes]:
        try:
            paths = read_paths(self._notes, EXTERNAL_PATHS)
            if not all(path.startswith(b"/") for path in paths):
                raise ValueError("a path is not absolute")
        except ValueError:
            raise StoreDamaged(
                "the list of external files is unusable",
                hint="remove the file external-paths from the store; tools add their files again",
            ) from None
        return paths

    def add(self, paths: Sequence[bytes]) -> None:
        try:
            known = self.load()
        except StoreDamaged:
            known = []
        older = [path for path in known if path not in paths]
        self._keep([*older, *dict.fromkeys(paths)], known)

    def drop(self, paths: Sequence[bytes]) -> None:
        known = self.load()
        self._keep([n for n in known if not any(is_within(n, path) for path in paths)], known)

    def _keep(self, names: list[bytes], known: list[bytes]) -> None:
        from holdfast.domain.external_paths import MOST_NAMES  # late: no save adds a name

        if names != known:
            write_paths(self._notes, EXTERNAL_PATHS, names[-MOST_NAMES:])


class StoredNestedRepositories:
    """See `holdfast.ports.store.NestedRepositories`."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def load(self) -> list[bytes]:
        try:
            return read_paths(self._notes, NESTED_REPOSITORIES)
        except ValueError:
            return []  # at worst, a reference stays and keeps some commits alive

    def add(self, git_directories: Sequence[bytes]) -> None:
        known = self.load()
        all_of_them = sorted({*known, *git_directories})
        if all_of_them != known:
            write_paths(self._notes, NESTED_REPOSITORIES, all_of_them)


class StoredHints:
    """See `holdfast.ports.store.Hints`."""

    def __init__(self, notes: StoreNotes) -> None:
        self._notes = notes

    def read(self, name: str) -> bytes | None:
        return self._notes.read_hint(name)

    def write(self, name: str, data: bytes) -> bool:
        return self._notes.write_hint(name, data)


class StoredNamedPaths:
    """See `holdfast.ports.store.NamedPaths`."""

    def __init__(self, notes: Notes, name: str) -> None:
        self._notes = notes
        self._name = name

    def load(self) -> tuple[bytes, ...]:
        try:
            return tuple(read_paths(self._notes, self._name))
        except ValueError:
            return ()  # tools name them again

    def replace(self, paths: Sequence[bytes]) -> None:
        write_paths(self._notes, self._name, paths)


class StoredPurgeNote:
    """See `holdfast.ports.store.PurgeNote`."""

    def __init__(self, notes: StoreNotes, name: str) -> None:
        self._notes = notes
        self._name = name

    def read(self) -> bytes | None:
        return self._notes.read(self._name)

    def write(self, data: bytes) -> None:
        self._notes.write(self._name, data)

    def remove(self) -> None:
        self._notes.remove(self._name)
        self._notes.sync_removals()


class LocalQuarantine:
    """See `holdfast.ports.store.Quarantine`."""

    def __init__(self, fs: Filesystem, store: Path, notes: StoreNotes) -> None:
        self._fs = fs
        self._store = store
        self._notes = notes

    def new_directory(self, occasion: str) -> Path:
        return quarantine_directory(self._store, occasion)

    def add_note(self, occasion: str, name: str, data: bytes) -> None:
        with store_trouble("quarantining damaged files"):
            path = self.new_directory(occasion) / name
            atomic_write(self._fs, os.fsencode(path), self._notes.sealed(name, data))


def read_paths(notes: Notes, name: str) -> list[bytes]:
    """The paths listed in a note; `ValueError` if it is unusable."""
    data = notes.read(name)
    try:
        return [] if data is None else [from_text(text) for text in json.loads(data)]
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def write_paths(notes: Notes, name: str, paths: Sequence[bytes]) -> None:
    notes.write(name, json.dumps([to_text(path) for path in paths]).encode())
