"""The directories around the files of an edit: which were there before it, and which go with it.

    start:  of a file that is not there yet, the nearest directory that is; what HEAD does not know
            of it is noted in the safety checkpoint
    abort:  upwards from each file, as long as the checkpoint has no such directory: remove it

Guarantee: a directory is removed only when it is empty and was not there before the edit; the
system refuses to remove one that somebody has filled, however late.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.paths import basename, is_within, parent
from holdfast.domain.trees.entries import MODE_MASK, DirectoryEntry, Entry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import EMPTY_TREE, encode_tree
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault


def existing_directories(
    vault: Vault, head: Checkpoint, entries: Mapping[bytes, Entry | None]
) -> dict[bytes, DirectoryEntry]:
    """Directories that are there though HEAD has none such, for files that are not; durable."""
    found: dict[bytes, DirectoryEntry] = {}
    absent = [path for path, entry in entries.items() if entry is None]
    if not absent:
        return found
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in absent:
            above = parent(path)
            while above and (mode := _mode(vault, handles, above)) is None:
                above = parent(above)
            if above and mode is not None and entry_at(vault.load_tree, head.tree, above) is None:
                digest = digest_of(encode_tree(EMPTY_TREE))
                found[above] = DirectoryEntry(basename(above), mode, digest, 0, 0)
    known = [*found, *(path for path, entry in entries.items() if entry is not None)]
    innermost = {
        place: entry
        for place, entry in found.items()
        if not any(other != place and is_within(other, place) for other in known)
    }
    if innermost:
        _keep_empty_tree(vault)
    return innermost


def remove_emptied(vault: Vault, before: Checkpoint, paths: Iterable[bytes]) -> None:
    """Directories that an edit made and that nothing is in any more."""
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in paths:
            above = parent(path)
            while above and entry_at(vault.load_tree, before.tree, above) is None:
                try:
                    vault.fs.rmdir(basename(above), dir_fd=handles.open(parent(above)))
                except FileNotFoundError:
                    pass  # another file of the edit was in it, too
                except OSError:
                    break  # somebody has filled it, or it is not a directory any more
                above = parent(above)


def _mode(vault: Vault, handles: DirectoryHandles, path: bytes) -> int | None:
    """Of a directory; None where there is none."""
    try:
        area = handles.open(parent(path))
        status = vault.fs.stat(basename(path), dir_fd=area, follow_symlinks=False)
    except OSError:
        return None
    return status.st_mode & MODE_MASK if stat.S_ISDIR(status.st_mode) else None


def _keep_empty_tree(vault: Vault) -> None:
    writer = vault.objects.writer()
    try:
        data = encode_tree(EMPTY_TREE)
        writer.add(digest_of(data), data)
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
