"""Telling whether a restore was left unfinished: cheap, because every operation asks."""

from __future__ import annotations

from holdfast.domain.paths import MARKER_DIRECTORY, STAGING_PREFIX, join
from holdfast.engine.restore.handles import DirectoryHandles
from holdfast.engine.vault import Vault


def needs_recovery(vault: Vault) -> bool:
    """Whether a restore was left unfinished, or is being done by someone else right now."""
    if vault.access.read_journal() is not None or vault.access.read_note() is not None:
        return True
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        return bool(leftovers(vault, handles))


def leftovers(vault: Vault, handles: DirectoryHandles) -> list[bytes]:
    """Staging directories in their usual place."""
    try:
        marker_fd = handles.open(MARKER_DIRECTORY)
    except OSError:
        return []
    names = vault.fs.list_names(marker_fd)
    return [join(MARKER_DIRECTORY, name) for name in names if name.startswith(STAGING_PREFIX)]
