"""Telling whether a restore was left unfinished: cheap, because every operation asks."""

from __future__ import annotations

import stat

from holdfast.domain.paths import MARKER_DIRECTORY, STAGING_PREFIX, join
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.vault import Vault


def needs_recovery(vault: Vault) -> bool:
    """Whether a restore was left unfinished, or is being done by someone else right now."""
    if vault.journal.read() is not None or vault.journal.read_note() is not None:
        return True
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        return bool(leftovers(vault, handles))


def staging_prefix(vault: Vault) -> bytes:
    """How the names of this store's staging directories begin. One workspace can have several
    stores, each user's own, and what lies in the staging of another may be in use."""
    return STAGING_PREFIX + vault.workspace_id.encode() + b"-"


def leftovers(vault: Vault, handles: DirectoryHandles) -> list[bytes]:
    """Staging directories in their usual place. Anything else by such a name is not ours."""
    where = MARKER_DIRECTORY
    try:
        place_fd = handles.open(where)
    except FileNotFoundError:
        return []
    except OSError:
        where, place_fd = b"", handles.open(b"")  # something is in its place
    prefix = staging_prefix(vault)
    names = [name for name in vault.fs.list_names(place_fd) if name.startswith(prefix)]
    return [join(where, name) for name in names if _is_directory(vault, place_fd, name)]


def _is_directory(vault: Vault, dir_fd: int, name: bytes) -> bool:
    try:
        mode = vault.fs.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(mode)
