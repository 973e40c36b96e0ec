"""The files of an edit: found by any name that a tool uses, captured, and their directories.

    paths:        each with the links that lead to it, and with its other names in the workspace;
                  relative paths start at the workspace, and are refused if they mean another file
                  in the program's current directory
    directories:  for a missing file, the nearest existing directory; if HEAD does not have it, the
                  safety checkpoint records it
    abort:        upwards from each file, remove directories that the checkpoint does not have

Guarantee: a directory is removed only if it is empty and did not exist before the edit. The system
refuses to remove one that was filled meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from os import fsencode
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import Refused, UsageError
from holdfast.domain.paths import MARKER_DIRECTORY, basename, from_text, is_within, parent, to_text
from holdfast.domain.trees.entries import (
    MODE_MASK,
    DirectoryEntry,
    Entry,
    FileEntry,
    SymlinkEntry,
    storable_ns,
)
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import EMPTY_TREE, encode_tree
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.restore.plan import require_paths
from holdfast.engine.scan.file_capture import FileCapture, is_sparse
from holdfast.engine.stored_objects import entry_at, list_files, loader_for, object_batch
from holdfast.engine.vault import Vault

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_MOST_LINKS = 40


def edited_paths(vault: Vault, paths: Iterable[str | Path]) -> tuple[bytes, ...]:
    """Workspace paths, from any form in which a tool names them."""
    if isinstance(paths, (str, Path)):
        raise UsageError(
            "paths must be a list, but one path was given", hint=f"use [{str(paths)!r}]"
        )
    found: list[bytes] = []
    relative: list[Path] = []
    for path in paths:
        if not str(path):
            raise UsageError("a path of the edit is empty", hint="name the files that it changes")
        given = Path(path)
        if given.is_absolute():
            try:
                given = given.relative_to(vault.workspace)
            except ValueError:
                raise UsageError(
                    f"{path} is outside the workspace {vault.workspace}",
                    hint="only files in the workspace can be restored",
                ) from None
        else:
            relative.append(given)
        found.append(from_text(str(given)))
    if not found:
        raise UsageError("an edit needs at least one path", hint="name the files to be edited")
    safe = require_paths(found)
    for given in relative:
        _require_one_meaning(vault.workspace, given)
    safe = tuple(dict.fromkeys(each for path in safe for each in _through_links(vault, path)))
    own_data = (MARKER_DIRECTORY, vault.files.path_inside_workspace())
    for place in safe:
        if any(own is not None and is_within(place, own) for own in own_data):
            raise UsageError(
                f"{to_text(place)} is Holdfast's own data", hint="name files of the workspace"
            )
    return safe


def _require_one_meaning(workspace: Path, path: Path) -> None:
    """A program that opens the same relative path may reach another file, and change it
    unguarded."""
    try:
        here = Path(os.path.realpath(os.curdir))
    except OSError:  # that directory is gone, so nothing can be opened from there
        return
    if here == workspace:
        return
    meant, opened = workspace / path, Path(os.path.normpath(here / path))
    could_be = lexists(opened) or (opened.is_relative_to(workspace) and opened.parent.is_dir())
    if could_be and (opened.is_relative_to(workspace) or not lexists(meant)):
        raise UsageError(
            f"{path} is ambiguous: in the workspace it is {meant}, but in the current directory it "
            f"is {opened}",
            hint="use the absolute path of the file",
        )


def _through_links(vault: Vault, path: bytes) -> tuple[bytes, ...]:
    """The file that writing to a path would reach, and each link on the way, because all of them
    may be changed."""
    root = os.path.realpath(fsencode(vault.workspace))
    links: list[bytes] = []
    at, waiting = root, path.split(b"/")
    while waiting:
        place = os.path.join(at, waiting.pop(0))
        if not os.path.islink(place):
            at = os.path.normpath(place)  # removes `..`: the path no longer contains links
            continue
        if len(links) == _MOST_LINKS:
            raise Refused(
                f"cannot save {to_text(path)} before the edit: it is a circular link",
                hint="use the file itself",
            )
        links.append(place)
        waiting = [*os.readlink(place).split(b"/"), *waiting]
        at = b"/" if not waiting[0] else at
    if not is_within(at, root):
        raise Refused(
            f"cannot save {to_text(path)} before the edit: it is a link to {to_text(at)}, "
            "outside the workspace",
            hint="copy that file first, or work in the workspace that contains it",
        )
    found = [*(link for link in links if is_within(link, root)), at]
    return require_paths(os.path.relpath(place, root) for place in dict.fromkeys(found))


def names_of_one_file(engine: Engine, paths: tuple[bytes, ...]) -> dict[bytes, bytes]:
    """All workspace names of those files that have several, with the group of each. Writing to one
    name changes all."""
    root = fsencode(engine.vault.workspace)
    if not any(_has_names(root + b"/" + path) for path in paths):
        return {}
    scan = engine.scan()
    files = dict(list_files(loader_for(engine.vault, scan), scan.tree))
    groups = {files[path].link for path in paths if path in files}
    return {path: file.link for path, file in files.items() if file.link and file.link in groups}


def _has_names(place: bytes) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def capture_files(
    vault: Vault, paths: Iterable[bytes], groups: Mapping[bytes, bytes]
) -> dict[bytes, Entry | None]:
    with (
        object_batch(vault.objects) as writer,
        vault.open_root() as root_fd,
        DirectoryHandles(vault.fs, root_fd) as handles,
    ):
        capture = FileCapture(vault.fs, writer, vault.clock.now_ns())
        return {path: _entry(vault, handles, capture, path, groups.get(path)) for path in paths}


def _entry(
    vault: Vault,
    handles: DirectoryHandles,
    capture: FileCapture,
    path: bytes,
    group: bytes | None,
) -> FileEntry | SymlinkEntry | None:
    """The current entry of a path; None if nothing exists there."""
    name = basename(path)
    try:
        area = handles.open(parent(path))
        status = vault.fs.stat(name, dir_fd=area, follow_symlinks=False)
    except OSError as error:
        if error.errno in NO_DIRECTORY and not _leads_through_a_file(vault, path):
            return None
        raise Refused(
            f"cannot save {to_text(path)} before the edit: {error.strerror}",
            hint="use the file itself",
        ) from error
    if stat.S_ISLNK(status.st_mode):
        target = vault.fs.readlink(name, dir_fd=area)
        return SymlinkEntry(name, target, storable_ns(status.st_mtime_ns))
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise Refused(
            f"{to_text(path)} is {what}, but edits need files",
            hint="name the files in it, or guard the whole workspace with an attempt",
        )
    try:
        read = capture.capture(area, name, status.st_size, None)
    except OSError as error:
        raise Refused(
            f"cannot save {to_text(path)} before the edit: {error.strerror}",
            hint="check its permissions",
        ) from error
    return FileEntry(
        name,
        read.status.st_mode & MODE_MASK,
        read.content.size,
        storable_ns(read.status.st_mtime_ns),
        read.content.digest,
        read.content.chunks,
        is_sparse(read.status),
        group,
    )


def _leads_through_a_file(vault: Vault, path: bytes) -> bool:
    above = parent(path)
    root = fsencode(vault.workspace)
    while above:
        if lexists(root + b"/" + above) and not _is_directory(vault, above):
            return True
        above = parent(above)
    return False


def _is_directory(vault: Vault, path: bytes) -> bool:
    status = vault.fs.stat(fsencode(vault.workspace) + b"/" + path, follow_symlinks=False)
    return stat.S_ISDIR(status.st_mode)


def existing_directories(
    vault: Vault, head: Checkpoint, entries: Mapping[bytes, Entry | None]
) -> dict[bytes, DirectoryEntry]:
    """Existing directories above missing files that HEAD does not have; durable."""
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
    """Remove directories that the edit created and that are empty now."""
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for path in paths:
            above = parent(path)
            while above and entry_at(vault.load_tree, before.tree, above) is None:
                try:
                    vault.fs.rmdir(basename(above), dir_fd=handles.open(parent(above)))
                except FileNotFoundError:
                    pass  # already removed for another file of the edit
                except OSError:
                    break  # no longer empty, or no longer a directory
                above = parent(above)


def _mode(vault: Vault, handles: DirectoryHandles, path: bytes) -> int | None:
    """The mode of a directory; None if there is none."""
    try:
        area = handles.open(parent(path))
        status = vault.fs.stat(basename(path), dir_fd=area, follow_symlinks=False)
    except OSError:
        return None
    return status.st_mode & MODE_MASK if stat.S_ISDIR(status.st_mode) else None


def _keep_empty_tree(vault: Vault) -> None:
    with object_batch(vault.objects) as writer:
        data = encode_tree(EMPTY_TREE)
        writer.add(digest_of(data), data)
