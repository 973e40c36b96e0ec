"""Loose objects of a repository: finding them, and adding small ones durably.

A file below `objects/` is `type size NUL content`, compressed, and named by its digest. Writing two
of them takes less time than starting a process. Packed objects are not found here; git must be
asked for them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import zlib
from collections.abc import Sequence

from holdfast.components.files import NEW_FLAGS, write_all
from holdfast.components.git.repository import Repository, TooLarge, read_small
from holdfast.values.classes import NamedTuple

_HEADER_BYTES = 4096
_HEADER_LENGTH = 32
_LARGEST_READ = 4 << 20


def is_loose(repository: Repository, oid: str, kind: bytes) -> bool:
    """Whether this object is a loose one of this kind."""
    try:
        fd = os.open(_place(repository, oid), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        data = os.read(fd, _HEADER_BYTES)
        return zlib.decompressobj().decompress(data, _HEADER_LENGTH).startswith(kind + b" ")
    except (OSError, zlib.error):
        return False
    finally:
        os.close(fd)


class LooseObject(NamedTuple):
    """`content` is complete only for an object of the requested kind."""

    kind: str
    content: bytes


def read_loose(repository: Repository, oid: str, kind: bytes) -> LooseObject | None:
    """A loose object's kind, and its content if it is of this kind; None if there is no such file,
    or if it is damaged."""
    try:
        data = read_small(_place(repository, oid), _LARGEST_READ) or b""
        head, end, begin = (
            zlib.decompressobj().decompress(data[:_HEADER_BYTES], 64).partition(b"\0")
        )
        found, _, size = head.partition(b" ")
        if not end:
            return None
        if found != kind or int(size) > _LARGEST_READ:
            return LooseObject(found.decode(), begin)
        content = zlib.decompress(data).partition(b"\0")[2]
        right = len(content) == int(size) and name_of(kind, content, like=oid) == oid
        return LooseObject(found.decode(), content) if right else None
    except (TooLarge, zlib.error, ValueError):
        return None


def name_of(kind: bytes, content: bytes, *, like: str) -> str:
    """Git's name for it; `like` is another name in the same repository."""
    import hashlib  # late: takes milliseconds, and most uses of a repository do not need it

    digest = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return digest(_whole(kind, content)).hexdigest()


class NewObject(NamedTuple):
    """An object to be added."""

    oid: str
    kind: bytes
    content: bytes


def add_objects(
    repository: Repository, objects: Sequence[NewObject], *, beside: int | None = None
) -> None:
    """Add these objects durably, and sync the file `beside`. Their permissions follow the object
    directory, as in a shared repository."""
    from holdfast.components.git.durability import sync_all  # late: most saves add no object

    allowed = stat.S_IMODE(os.stat(repository.shared(b"objects")).st_mode)
    written = []
    try:
        for oid, kind, content in objects:
            place = _place(repository, oid)
            directory = os.path.dirname(place)
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory)
                os.chmod(directory, allowed)
            # Git treats such names as crash leftovers, and removes them eventually.
            name = b"tmp_obj_%d_%d_%b" % (os.getpid(), threading.get_ident(), oid.encode())
            mine = os.path.join(directory, name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(mine)
            written.append((mine, place))
            _write(mine, zlib.compress(_whole(kind, content), 1), 0o444 & allowed)
        sync_all([*(mine for mine, _ in written), *([] if beside is None else [beside])])
        for mine, place in written:
            os.replace(mine, place)
        parents = {os.path.dirname(place) for _, place in written}
        sync_all([*parents, repository.shared(b"objects")] if parents else [])
    except BaseException:
        for mine, _ in written:
            with contextlib.suppress(OSError):
                os.unlink(mine)
        raise


def _write(path: bytes, data: bytes, mode: int) -> None:
    fd = os.open(path, NEW_FLAGS, 0o400)
    try:
        write_all(fd, data)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _whole(kind: bytes, content: bytes) -> bytes:
    return b"%b %d\0%b" % (kind, len(content), content)


def _place(repository: Repository, oid: str) -> bytes:
    return repository.shared(b"objects", oid[:2].encode(), oid[2:].encode())
