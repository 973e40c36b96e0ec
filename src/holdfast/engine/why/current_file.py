"""A file of the workspace as it is now, whole and in memory, for whoever tells its lines.

Guarantee: it is reached through directory handles and no link is followed (I6).
"""

from __future__ import annotations

import errno
import os
import stat

from holdfast.domain.errors import LimitReached, NotFound, Refused
from holdfast.domain.paths import basename, parent, to_text, typed
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.vault import Vault

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE_BYTES = 1024 * 1024


def read_current_file(vault: Vault, path: bytes, largest_bytes: int) -> bytes:
    """Its bytes; an error names what is there instead of a file."""
    fs, name = vault.fs, repr(to_text(path))
    try:
        with vault.open_root() as root_fd, DirectoryHandles(fs, root_fd) as handles:
            fd = fs.open(basename(path), _READ_FLAGS, dir_fd=handles.open(parent(path)))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise NotFound(
                f"{name} is not in the workspace",
                hint="to ask about a file that is gone, name a checkpoint that has it: --ref REF",
            ) from None
        if error.errno in NO_DIRECTORY:
            raise Refused(
                f"{name} is a link, or lies behind what is no directory",
                hint="name the file itself",
            ) from None
        raise Refused(
            f"{name} cannot be read: {error.strerror}", hint="see who may read it: ls -l"
        ) from None
    try:
        status = fs.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise Refused(f"{name} is {kind}", hint="name a file")
        pieces, size_bytes = [], status.st_size
        while size_bytes <= largest_bytes and (piece := fs.read(fd, _PIECE_BYTES)):
            pieces.append(piece)
            size_bytes = max(size_bytes, sum(map(len, pieces)))
    finally:
        fs.close(fd)
    if size_bytes > largest_bytes:
        raise too_large(path, size_bytes, largest_bytes)
    return b"".join(pieces)


def search_word(path: bytes) -> str:
    """What finds a path, as it is typed."""
    text = to_text(path)
    quoted = " " in text and '"' not in text
    return typed(f'"{text}"'.encode("utf-8", "surrogateescape") if quoted else path, "path:")


def too_large(path: bytes, size_bytes: int, largest_bytes: int) -> LimitReached:
    return LimitReached(
        f"{to_text(path)!r} has {size_bytes:,} bytes; lines are told of files up to "
        f"{largest_bytes:,}",
        hint=f"the checkpoints that changed it: holdfast search {search_word(path)}",
    )
