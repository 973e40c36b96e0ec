"""Stores, open or not: their location, the directories they protect (CP-16), and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.keys import key_file_secret, passphrase_file_secret, passphrase_secret
from holdfast.bootstrap.locations import holdfast_home, require_project, why_no_project
from holdfast.bootstrap.stores import (
    TOKEN_FILE,
    local_token,
    lost_stores,
    nearest_workspace,
    new_token,
    recent_workspaces,
    remove_store,
    store_of,
    use_former_store,
)
from holdfast.bootstrap.workspace_choice import (
    holds_repositories,
    is_left_out,
    is_project,
    repository_top,
    workspace_around,
    workspace_for,
)
from holdfast.domain.errors import Refused
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.bootstrap.stores import StoreWithoutWorkspace as StoreWithoutWorkspace
    from holdfast.ports.store import KeySlot, StoreKeys
    from holdfast.ports.store import Secret as Secret

__all__ = [
    "TOKEN_FILE",
    "Keys",
    "KnownWorkspace",
    "holdfast_home",
    "holds_repositories",
    "is_left_out",
    "is_project",
    "key_file_secret",
    "known_workspaces",
    "local_token",
    "lost_stores",
    "nearest_workspace",
    "new_token",
    "passphrase_file_secret",
    "passphrase_secret",
    "recent_workspaces",
    "remove_store",
    "repository_top",
    "require_project",
    "store_directory",
    "use_former_store",
    "why_no_project",
    "workspace_around",
    "workspace_for",
    "workspace_with_store",
]


def store_directory(workspace: Path) -> Path | None:
    """The store of exactly this directory, even if it is unreadable."""
    found = store_of(workspace)
    return None if found is None else found.directory


def workspace_with_store(start: Path) -> Path | None:
    """The nearest directory, from `start` upwards, that has a store, even an unreadable one."""
    directory = start.expanduser().resolve()
    candidates = (directory, *directory.parents)
    return next((place for place in candidates if store_of(place) is not None), None)


class KnownWorkspace(NamedTuple):
    """A workspace of this user. `id` is the name of its store, which never changes."""

    id: str
    path: Path
    last_activity_ns: int


def known_workspaces() -> list[KnownWorkspace]:
    """The user's existing workspaces, most recently active first."""
    found = [(path, at_ns, store_of(path)) for path, at_ns in recent_workspaces()]
    return [
        KnownWorkspace(store.directory.name, path, at_ns)
        for path, at_ns, store in found
        if store is not None
    ]


class Keys:
    """Keys of an open, encrypted workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._keys = opened.store.keys

    @property
    def used(self) -> str | None:
        """The id of the key that opened the store; None if the store is not encrypted."""
        return None if self._keys is None else self._keys.used

    def all(self) -> Sequence[KeySlot]:
        return self._required().all()

    def add(self, secret: Secret) -> None:
        self._required().add(secret)

    def change(self, secret: Secret) -> None:
        """Replace the key that opened the store."""
        self._required().change(secret)

    def remove(self, key_id: str) -> None:
        self._required().remove(key_id)

    def _required(self) -> StoreKeys:
        if self._keys is None:
            raise Refused("the store is not encrypted and has no keys")
        return self._keys
