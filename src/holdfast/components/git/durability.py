"""Makes files durable that git wrote: loose objects, directories, references and checked-out files.

Git does not sync loose objects by default. Objects older than the kernel's writeback delay are on
disk; the rest is synced, so that a checkpoint never names a commit that a power cut removes.

Links are not followed: their text is in their directory. Files that are gone need no sync.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from holdfast.components.files import READ_FLAGS
from holdfast.components.git.repository import Repository

T = TypeVar("T")

_MANY = 500
_AT_ONCE = 16
_RECENT_NS = 120 * 1_000_000_000
_SLACK_NS = 1_000_000_000


def sync_tree(top: bytes) -> None:
    """Sync a directory with everything below it."""
    _sync_paths([top, *_below(top)])


def sync_changed(top: bytes, paths: Iterable[bytes]) -> None:
    """Sync files below a directory that were written or removed, and all directories above them."""
    found = {top}
    for path in paths:
        while path:
            found.add(os.path.join(top, path))
            path = path.rpartition(b"/")[0]
    _sync_paths([place for place in found if not os.path.islink(place)])


def sync_references(repository: Repository, refs: Iterable[bytes]) -> None:
    """Sync references that git created, moved or deleted."""
    sync_changed(repository.common_dir, [*refs, b"packed-refs"])


def _below(directory: bytes) -> Iterator[bytes]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path
                yield from _below(entry.path)
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def _sync_paths(paths: Sequence[bytes]) -> None:
    if len(paths) > _MANY:
        os.sync()  # much faster than so many files, but it reports no errors
    sync_all(paths)


def sync_all(paths: Sequence[bytes | int]) -> None:
    """Sync several at a time, because a file system commits concurrent requests together. An open
    file is given by its handle."""
    waiting, errors = list(paths), list[BaseException]()

    def work() -> None:
        while waiting:
            try:
                _sync(waiting.pop())
            except IndexError:
                return  # another thread took the last one
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(min(_AT_ONCE, len(paths)) - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _sync(path: bytes | int) -> None:
    if isinstance(path, int):
        os.fsync(path)
        return
    try:
        fd = os.open(path, READ_FLAGS)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # packed or removed meanwhile, and packs are synced; or of another user
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_recent_objects(repository: Repository, now_ns: int, synced_ns: int) -> None:
    """`synced_ns` is the time of the last sync; older objects are on disk."""
    since_ns = max(now_ns - _RECENT_NS, min(synced_ns, now_ns) - _SLACK_NS)
    recent: list[bytes] = []
    for number in range(256):
        directory = repository.shared(b"objects", b"%02x" % number)
        try:
            if os.stat(directory).st_mtime_ns < since_ns:
                continue
        except OSError:
            continue
        recent.append(directory)
        # Git packs automatically in the background: a missing file is in a pack, which is
        # synced.
        with suppress(FileNotFoundError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat().st_mtime_ns >= since_ns:
                        recent.append(entry.path)
        if len(recent) > _MANY:
            os.sync()  # waits for the whole system, but is faster than so many files
            return
    sync_all(recent)


class BackgroundCall(Generic[T]):
    """A call in the background; `result` waits for it, and raises its error."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []

        def work() -> None:
            try:
                self._results.append(call())
            except BaseException as error:
                self._errors.append(error)

        self._thread = threading.Thread(target=work, name="holdfast-git", daemon=True)
        self._thread.start()

    def result(self) -> T:
        self._thread.join()
        if self._errors:
            raise self._errors[0]
        return self._results[0]
