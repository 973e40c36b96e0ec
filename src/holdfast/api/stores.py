"""Stores as such, whether or not one can be opened: where they are, and those without workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.local_token import TOKEN_FILE, local_token
from holdfast.bootstrap.locations import holdfast_home
from holdfast.bootstrap.stores import (
    lost_stores,
    recent_workspaces,
    remove_store,
    store_of,
    use_former_store,
)

if TYPE_CHECKING:
    from holdfast.bootstrap.stores import StoreWithoutWorkspace as StoreWithoutWorkspace

__all__ = [
    "TOKEN_FILE",
    "holdfast_home",
    "local_token",
    "lost_stores",
    "recent_workspaces",
    "remove_store",
    "store_directory",
    "use_former_store",
    "workspace_with_store",
]


def store_directory(workspace: Path) -> Path | None:
    """Where the store of exactly this directory is, readable or not."""
    found = store_of(workspace)
    return None if found is None else found.directory


def workspace_with_store(start: Path) -> Path | None:
    """The nearest directory, from `start` upwards, that has a store, readable or not."""
    directory = start.expanduser().resolve()
    candidates = (directory, *directory.parents)
    return next((place for place in candidates if store_of(place) is not None), None)
