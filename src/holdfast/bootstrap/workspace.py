"""Opening a workspace: the composition root, the only place that names adapters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.identity import WorkspaceIdentity
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.local_store import LocalStore
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import require_own_place
from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.app.open_workspace import GatheredSettings, OpenWorkspace
from holdfast.bootstrap.components import LocalSecondReader, with_parts
from holdfast.bootstrap.keys import chosen_secret, require_encrypted, unlock_store
from holdfast.bootstrap.locations import holdfast_home, require_project
from holdfast.bootstrap.settings import gather_settings
from holdfast.bootstrap.stores import find_store, make_home, make_store, restore_marker
from holdfast.domain.errors import (
    HoldfastError,
    NothingSaved,
)
from holdfast.domain.settings.schema import (
    Settings,
    make_settings,
)
from holdfast.engine.engine import Engine
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.unlock import Unlocked
    from holdfast.domain.ids import Digest
    from holdfast.engine.bundles.importer import ImportOutcome, ImportRequest
    from holdfast.ports.filesystem import Filesystem
    from holdfast.ports.progress import Progress
    from holdfast.ports.store import OpenStore, Secret, StoresWithObjects
    from holdfast.ports.system import Clock

_PLAIN = (
    "Holdfast now protects {}. It is not a project: it has no git repository and no file such "
    "as package.json or pyproject.toml. Repositories inside it are separate workspaces and "
    "are left out."
)

_HOOK_OPENING_S = 2.0
"""How long a hook waits for a lock holder without progress, before it knows the settings."""


class StoreOpener(Protocol):
    def __call__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        workspace: Path,
        clock: Clock,
        *,
        purpose: str,
        unlock: Callable[[StoreLayout], Unlocked] | None = None,
    ) -> OpenStore:
        """Open a store that exists; `unlock` is called for the keys of an encrypted one."""


open_store: StoreOpener = LocalStore
"""The adapter that keeps stores."""


def open_workspace(
    workspace: Path,
    *,
    create: bool,
    force: bool = False,
    file_filter: Callable[[Path], bool] | None = None,
    environment: Mapping[str, str] | None = None,
    purpose: str = "holdfast",
    passive: bool = False,
    recover: bool = True,
    for_hook: bool = False,
    new_store: bool = False,
    protect: bool = False,
    exclude_nested_repositories: bool = False,
    new_secret: Callable[[Path], Secret] | None = None,
    unencrypted: bool = False,
    ask_passphrase: Callable[[], str | None] | None = None,
) -> OpenWorkspace:
    """Open a workspace's store, creating one if `create`. `NotFound` if there is none,
    `StoreMissing` if there was one. `new_store` replaces a missing one. So does `create` if the
    marker came with a clone or copy, and `protect` in any case, for hooks, which cannot ask a
    person.

    `passive` only looks: it waits for nothing and changes nothing, not even to recover an
    interrupted operation or update the workspace's link. Without `recover`, only an interrupted
    restore stays as it is. `for_hook` waits only briefly for a lock holder without progress
    (setting hook_lock_timeout). With `exclude_nested_repositories`, a new store for a directory
    that is not a project leaves out repositories below it (CP-16).

    `new_secret` encrypts the store; called with the workspace, it returns the secret. A store that
    replaces a lost encrypted one is encrypted with an available key, unless `unencrypted`.
    `ask_passphrase` is called if nothing else opens a store that has a passphrase.
    """
    environment = os.environ if environment is None else environment
    home = holdfast_home(environment)
    directory = require_project(workspace, home, force=force, for_agent=protect)
    require_own_place(home)
    fs, clock, ids = LocalFilesystem(), SystemClock(), RandomIds()
    patience_s = _HOOK_OPENING_S if for_hook else None
    identity = WorkspaceIdentity(fs, home, ids, patience_s=patience_s)
    with store_trouble("looking for it"):
        layout, news = find_store(
            identity, directory, new_store=new_store, create=create, protect=protect
        )
        new_store = new_store or bool(news)
    secret: Secret | None = None
    made = layout is None
    if layout is None:
        if not create:
            hint = 'to create one: holdfast checkpoint "why"'
            raise NothingSaved(f"{directory} has no checkpoints yet", hint=hint)
        make_home(fs, home)
        with store_trouble("creating it"):
            if not unencrypted:
                new_secret, said = chosen_secret(identity, directory, environment, new_secret)
                news += said
            layout, secret = make_store(identity, directory, new_secret, or_missing=new_store)
    elif new_secret is not None:
        require_encrypted(layout, directory)

    def unlock(layout: StoreLayout) -> Unlocked:
        return unlock_store(layout, environment, given=secret, ask=ask_passphrase)

    store = open_store(fs, layout, directory, clock, purpose=purpose, unlock=unlock)
    store.patience_s = patience_s
    try:
        if not passive:
            with store_trouble("linking it to its workspace"):
                identity.tie(directory, layout)  # only now: a newer store stays untouched
            store.make_ready()
        excludes = made and exclude_nested_repositories and _exclude_repositories(store, directory)
        if excludes and protect:
            news = (*news, _PLAIN.format(directory))
        opened = _compose(directory, fs, store, clock, environment, file_filter, news)
        if recover and not passive:
            opened.engine.recover_if_free()
        return opened
    except BaseException:
        store.close()
        raise


def _compose(
    directory: Path,
    fs: LocalFilesystem,
    store: OpenStore,
    clock: SystemClock,
    environment: Mapping[str, str],
    file_filter: Callable[[Path], bool] | None,
    news: tuple[str, ...],
) -> OpenWorkspace:
    gathered = gather_settings(store.catalog.settings(), directory, environment)
    settings = make_settings(gathered.values)
    store.lock_timeout_s = settings.lock_timeout
    if store.patience_s is not None:
        store.patience_s = settings.hook_lock_timeout
    vault = _vault(directory, fs, store, clock, settings, environment)
    engine = Engine(vault, file_filter=file_filter)
    composition = _Composition(store, holdfast_home(environment))
    return OpenWorkspace(engine, store, gathered, environment, composition, news=news)


class _Composition:
    """See `holdfast.app.open_workspace.Composition`."""

    def __init__(self, store: OpenStore, home: Path) -> None:
        self._store, self._home = store, home

    def gather_settings(
        self, stored: Mapping[str, str], workspace: Path, environment: Mapping[str, str]
    ) -> GatheredSettings:
        return gather_settings(stored, workspace, environment)

    def vault_for(self, vault: Vault, environment: Mapping[str, str]) -> Vault:
        return with_parts(vault, environment, self._store)

    def restore_marker(self, workspace: Path) -> None:
        restore_marker(workspace, StoreLayout(self._store.directory))

    def is_store_of(self, workspace: Path) -> bool:
        found = WorkspaceIdentity(LocalFilesystem(), self._home, RandomIds()).find(workspace)
        if found is None:
            return not os.path.isdir(workspace)  # checkpoints can be read without the directory
        return found.directory == self._store.directory


def _exclude_repositories(store: OpenStore, directory: Path) -> bool:
    """Returns whether the directory is not a project, so that this applies."""
    from holdfast.domain.paths import shows_project

    if shows_project(os.listdir(os.fsencode(directory))):
        return False
    with store.hold(), store.catalog.transaction() as transaction:
        transaction.set_setting("nested_repositories", json.dumps("auto"))
    return True


def _make_room_elsewhere(
    own: StoreLayout, needed_bytes: int, environment: Mapping[str, str]
) -> None:
    """Free space in the user's other stores, least recently used first, until this much is free in
    total. A store that is in use, encrypted or without its workspace is left alone."""
    from holdfast.adapters.local.all_stores import forget_sizes, idle_stores

    for layout in idle_stores(own):
        with suppress(HoldfastError, OSError):
            if layout.keys.exists() or _free_space_in(layout, needed_bytes, environment):
                continue
            break
    forget_sizes(own.home)


def _search_other_stores(own: StoreLayout, digests: Collection[Digest]) -> StoresWithObjects:
    from holdfast.adapters.local.all_stores import stores_with  # only purges search

    return stores_with(own, digests)


def _free_space_in(layout: StoreLayout, needed_bytes: int, environment: Mapping[str, str]) -> bool:
    """Free space in one store; returns whether more is needed."""
    from holdfast.adapters.local.all_stores import forget_sizes
    from holdfast.engine.retention.eviction import make_room
    from holdfast.engine.save.space_limit import SpaceLimit

    workspace = layout.read_description()["workspace"]
    with open_workspace(
        workspace, create=False, force=True, passive=True, environment=environment
    ) as opened:
        if opened.store.directory != layout.directory:
            return True
        vault = replace(opened.engine.vault, evict_from_other_stores=lambda _: None)
        forget_sizes(layout.home)
        with opened.store.hold(wait=False):
            make_room(vault, needed_bytes)
            return SpaceLimit(vault).budget_left < needed_bytes


def _vault(
    workspace: Path,
    fs: LocalFilesystem,
    store: OpenStore,
    clock: SystemClock,
    settings: Settings,
    environment: Mapping[str, str],
) -> Vault:
    own = StoreLayout(store.directory)
    vault = Vault(
        workspace,
        store.workspace_id,
        fs,
        fs,
        store.objects,
        store.catalog,
        store.stat_cache,
        store,
        store.journal,
        store.space,
        store,
        store,
        clock,
        RandomIds(),
        processes,
        settings,
        open_packs=store.open_packs,
        second_reader=LocalSecondReader(settings, workspace, store),
        evict_from_other_stores=lambda needed: _make_room_elsewhere(own, needed, environment),
        search_other_stores=lambda digests: _search_other_stores(own, digests),
    )
    return with_parts(vault, environment, store)


def new_session_id() -> str:
    """An id for a session that its caller did not name."""
    return f"session-{RandomIds.new_id()[:10]}"


def verify_bundle(request: ImportRequest, progress: Progress) -> ImportOutcome:
    """Verify a bundle before a store is created for it; nothing is written."""
    from holdfast.engine.bundles.importer import verify_for_new_store

    budget_bytes = make_settings({}).budget
    return verify_for_new_store(
        LocalFilesystem(), request, budget_bytes=budget_bytes, progress=progress
    )
