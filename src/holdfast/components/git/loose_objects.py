"""Objects of a repository as single files: telling that one is there, and adding a tiny one.

A file below `objects/` is `type size NUL content`, compressed, and named by the digest of that. To
write two of them takes less than the start of a process. What is packed is not found here: git has
to be asked then.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import zlib
from collections.abc import Sequence

from holdfast.components.git.durability import sync_all
from holdfast.components.git.plain_files import TooLarge, read_small
from holdfast.components.git.repository import Repository
from holdfast.values.classes import NamedTuple

_HEADER_BYTES = 4096
_HEADER_LENGTH = 32
_LARGEST_READ = 4 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def is_loose(repository: Repository, oid: str, kind: bytes) -> bool:
    """Whether there is a file for this object, and it says that it is of this kind."""
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
    """`content` is whole only for an object of the kind that was asked for."""

    kind: str
    content: bytes


def read_loose(repository: Repository, oid: str, kind: bytes) -> LooseObject | None:
    """What the file of an object says that it is, and its content if it is of this kind; None when
    there is no file, or one that is damaged."""
    data = _file_of(repository, oid)
    try:
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
    except (zlib.error, ValueError):
        return None


def _file_of(repository: Repository, oid: str) -> bytes:
    try:
        return read_small(_place(repository, oid), _LARGEST_READ) or b""
    except TooLarge:
        return b""


def name_of(kind: bytes, content: bytes, *, like: str) -> str:
    """The name that git gives it; `like` is another name of the same repository."""
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
    """Let these be there, durable, and what was written to the file `beside`. Readable for whom the
    directory of objects is, as in a repository that several people share."""
    allowed = stat.S_IMODE(os.stat(repository.shared(b"objects")).st_mode)
    written = []
    try:
        for oid, kind, content in objects:
            place = _place(repository, oid)
            directory = os.path.dirname(place)
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory)
                os.chmod(directory, allowed)
            # Git takes names like this one for what a crash has left, and removes them by and by.
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
    fd = os.open(path, _NEW, 0o400)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def _whole(kind: bytes, content: bytes) -> bytes:
    return b"%b %d\0%b" % (kind, len(content), content)


def _place(repository: Repository, oid: str) -> bytes:
    return repository.shared(b"objects", oid[:2].encode(), oid[2:].encode())
