"""Stores: finding or creating a workspace's store, linking the two, and listing all of a user's."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.identity import MARKER_NAME, WorkspaceIdentity
from holdfast.adapters.local.layout import StoreLayout, make_private_directory
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_errors import store_trouble, translate_os_error
from holdfast.adapters.local.store_files import read_own_file, require_own_place
from holdfast.adapters.local.system import RandomIds, random_bytes
from holdfast.bootstrap.locations import holdfast_home, is_refused_as_workspace, refusal_reason
from holdfast.domain.errors import (
    HoldfastError,
    NoSpace,
    NotFound,
    Refused,
    StoreMissing,
    WorkspaceRefused,
)

if TYPE_CHECKING:
    from holdfast.adapters.local.all_stores import StoreWithoutWorkspace as StoreWithoutWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.ports.store import Secret

_FROM_ELSEWHERE = (
    "Holdfast created a new store for {}. Its marker .holdfast/workspace.json names a store "
    "that is not on this machine. The marker may have come with a clone or a copy."
)


_LOST = (
    "Holdfast created a new store for {}, because the old one is missing. Earlier checkpoints "
    "are not available."
)
TOKEN_FILE = "mcp-token"
_TOKEN_BYTES = 32
_LARGEST_FILE = 1000
_OTHERS = 0o077


def store_of(workspace: Path, environment: Mapping[str, str] | None = None) -> StoreLayout | None:
    """The store that belongs to a directory, in whatever state it is."""
    home = holdfast_home(os.environ if environment is None else environment)
    return WorkspaceIdentity(LocalFilesystem(), home, RandomIds()).locate(workspace)


def nearest_workspace(start: Path, *, or_lost: bool = False) -> Path | None:
    """The nearest directory, from `start` upwards, that has a store, as git finds a repository. If
    a marker names a store that does not exist, raises `StoreMissing` or, with `or_lost`, returns
    its directory.

    A directory above that is refused as a workspace, such as the home directory, is skipped.
    """
    home = holdfast_home(os.environ)
    require_own_place(home)
    identity = WorkspaceIdentity(LocalFilesystem(), home, RandomIds())
    try:
        directory = start.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    if not directory.is_dir():
        return None
    store_home = Path(os.path.realpath(home))
    with store_trouble("looking for it"):
        for above in (directory, *directory.parents):
            if above != directory and refusal_reason(above, store_home) is not None:
                continue
            try:
                if identity.find(above) is not None:
                    return above
            except StoreMissing:
                if not or_lost:
                    raise
                return above
    return None


def former_store(workspace: Path, environment: Mapping[str, str]) -> StoreLayout | None:
    """The store that was missing when this workspace's current one was created."""
    home = holdfast_home(environment)
    identity = WorkspaceIdentity(LocalFilesystem(), home, RandomIds())
    layout = identity.locate(workspace)
    return None if layout is None else identity.former(layout)


def restore_marker(workspace: Path, layout: StoreLayout) -> None:
    """Rewrite the marker if it is gone: `git clean -fdx` removes it."""
    if os.path.lexists(workspace / ".holdfast" / MARKER_NAME):
        return
    with store_trouble("linking it to its workspace"):
        WorkspaceIdentity(LocalFilesystem(), layout.home, RandomIds()).tie(workspace, layout)


def use_former_store(workspace: Path, environment: Mapping[str, str]) -> StoreLayout:
    """Link a workspace to the store again that was missing when its current one was created."""
    former = former_store(workspace, environment)
    if former is None or not former.exists():
        raise NotFound(
            f"{workspace} has no other store"
            if former is None
            else f"{former.directory} is missing",
            hint="show which store it uses: holdfast status",
        )
    with store_trouble("linking it to its workspace"):
        WorkspaceIdentity(LocalFilesystem(), former.home, RandomIds()).tie(workspace, former)
    return former


def find_store(
    identity: WorkspaceIdentity, directory: Path, *, new_store: bool, create: bool, protect: bool
) -> tuple[StoreLayout | None, tuple[str, ...]]:
    """The store, and messages if a new one has to be created in place of a missing one."""
    try:
        return identity.find(directory, or_missing=new_store), ()
    except StoreMissing as missing:
        if not create or (missing.was_here and not protect):
            raise
        return None, ((_LOST if missing.was_here else _FROM_ELSEWHERE).format(directory),)


def make_store(
    identity: WorkspaceIdentity,
    directory: Path,
    new_secret: Callable[[Path], Secret] | None,
    *,
    or_missing: bool,
) -> tuple[StoreLayout, Secret | None]:
    if new_secret is None:
        if identity.is_copy_of_encrypted(directory):
            raise Refused(
                f"{directory} is a copy of a workspace whose store is encrypted",
                hint=(
                    "create its store first: holdfast init --encrypt; or remove .holdfast from "
                    "the copy for a store without encryption"
                ),
            )
        return identity.find_or_create(directory, or_missing=or_missing), None
    from holdfast.adapters.local.encryption.cipher import StoreKeys
    from holdfast.adapters.local.encryption.key_slots import encode_key_slots, first_slots

    secret = new_secret(directory)
    slots = encode_key_slots(first_slots(StoreKeys.new(), secret))
    layout = identity.find_or_create(directory, key_slots=slots, or_missing=or_missing)
    return layout, secret


def make_home(fs: LocalFilesystem, home: Path) -> None:
    try:
        make_private_directory(fs, home)
    except OSError as error:
        if isinstance(full := translate_os_error(error, "creating it"), NoSpace):
            raise full from error
        raise WorkspaceRefused(
            f"cannot create the store's directory {home}: {error.strerror}",
            hint="set HOLDFAST_HOME to a directory that you can write to",
        ) from None


def find_workspace(directory: Path, *, create: bool, force: bool = False) -> Path | None:
    """The workspace that a directory belongs to, with or without a store. None for a directory that
    is refused as a workspace, such as the home directory, unless `force` or `create`. With
    `create`, `WorkspaceRefused` if it contains repositories and is not a project."""
    known = nearest_workspace(directory, or_lost=create)
    if known is not None and known == directory:
        return known
    # Late: most commands run in a directory with a store.
    from holdfast.bootstrap.workspace_choice import own_project, project_top, require_choosable

    if known is not None:
        return own_project(known, directory) or known
    resolved = directory.expanduser().resolve()
    top = project_top(resolved)
    if top is None and not force:
        if create:
            require_choosable(directory)
        elif is_refused_as_workspace(resolved):
            return None
    return top or directory


def lost_stores() -> list[StoreWithoutWorkspace]:
    """The user's stores whose workspace is not where it was last seen, the largest first."""
    from holdfast.adapters.local.all_stores import stores_without_workspace

    return stores_without_workspace(holdfast_home(os.environ))


def recent_workspaces() -> list[tuple[Path, int]]:
    """The user's workspaces with the time of their last activity, the latest first."""
    from holdfast.adapters.local.all_stores import recent_workspaces

    return recent_workspaces(holdfast_home(os.environ))


def remove_store(store: StoreWithoutWorkspace) -> None:
    """Delete a store with everything in it; refused if its workspace exists again."""
    from holdfast.adapters.local.all_stores import remove

    remove(LocalFilesystem(), store)


def unknown_session(session_id: SessionId, known: Sequence[SessionId]) -> NotFound:
    """The error for a session that a workspace does not have. It names the workspace that has it,
    or this one's sessions."""
    from difflib import get_close_matches  # late: it is slow to load

    places = _workspaces_with(session_id)
    if places:
        where = " and ".join(places)
        return NotFound(
            f"the session {session_id!r} belongs to another workspace: {where}",
            hint=f"use it there: -C {places[0]}",
        )
    message = f"unknown session: {session_id!r}"
    close = get_close_matches(session_id, known, 3)
    if close:
        return NotFound(message, hint=f"did you mean: {', '.join(close)}")
    return NotFound(message, hint=f"known sessions: {', '.join(known[-10:])}" if known else None)


def _workspaces_with(session_id: SessionId) -> list[str]:
    """Workspaces of this user with such a session; encrypted and damaged stores are skipped."""
    from holdfast.adapters.local.catalog.sqlite import SqliteCatalog

    found: list[str] = []
    stores = holdfast_home(os.environ) / "stores"
    for directory in sorted(stores.iterdir()) if stores.is_dir() else ():
        layout = StoreLayout(directory)
        with contextlib.suppress(HoldfastError, OSError):
            described = layout.read_description()
            if described["encrypted"] or not layout.catalog.exists():
                continue
            with contextlib.closing(SqliteCatalog(layout.catalog)) as catalog:
                if catalog.is_migrated() and catalog.session(session_id) is not None:
                    found.append(str(described["workspace"]))
    return found


def local_token(home: Path) -> tuple[str, Path]:
    """The access token of local servers, and its file, which is created if missing or empty.

    The token stays the same, so that a client is configured once; delete the file to get a new one.
    Guarantee: a file that others can read, a symbolic link, or another user's file is refused. The
    file appears with its content, so other processes never see it empty.
    """
    path = home / TOKEN_FILE
    hint = f"remove it and start again: rm {path}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        while not (token := _read_token(path, hint)):
            _put_token(path, hint)
        return token, path
    except OSError as error:
        raise Refused(f"cannot use the token file {path}: {error.strerror}", hint=hint) from None


def _put_token(path: Path, hint: str) -> None:
    """Create the file, or replace an empty one. The token of a faster process stays."""
    temporary = path.with_name(f".{path.name}.{random_bytes(8).hex()}.new")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(new_token().encode() + b"\n")
            file.flush()
            sync_to_disk(fd)
        try:
            os.link(temporary, path)
        except FileExistsError:
            if not _read_token(path, hint):
                temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def new_token() -> str:
    """A random text that cannot be guessed."""
    return random_bytes(_TOKEN_BYTES).hex()


def _read_token(path: Path, hint: str) -> str:
    """Empty if the file is missing or has no content."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & _OTHERS:
        raise Refused(f"other users can access the token file {path}", hint=hint)
    token = read_own_file(path, _LARGEST_FILE).decode("ascii", "replace").strip()
    if 0 < len(token) < _TOKEN_BYTES:
        raise Refused(f"the token in the token file {path} is too short", hint=hint)
    return token
