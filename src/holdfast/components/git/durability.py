"""Putting on disk what git itself leaves to the system: objects of the last minutes.

Git does not sync loose objects by default. What was written longer ago than a system waits before
it writes by itself is on disk; the rest is synced, so that a checkpoint never names a commit that a
power cut takes away. What waits for a disk can do so while something else goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from holdfast.components.git.repository import Repository

T = TypeVar("T")

_RECENT_NS = 120 * 1_000_000_000
_SLACK_NS = 1_000_000_000
_ONE_BY_ONE = 500
_AT_ONCE = 16


def sync_recent_objects(repository: Repository, now_ns: int, synced_ns: int) -> None:
    """`synced_ns` is when this was done before; what is older is on disk."""
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
        # Git packs by itself, in the background: a file that is gone is in a pack, which is synced.
        with suppress(FileNotFoundError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat().st_mtime_ns >= since_ns:
                        recent.append(entry.path)
        if len(recent) > _ONE_BY_ONE:
            os.sync()  # waits for the whole system, which is quicker than so many files
            return
    sync_all(recent)


class Meanwhile(Generic[T]):
    """A call that goes on beside others; `result` waits for it, and raises what it met."""

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


def sync_all(paths: Sequence[bytes | int]) -> None:
    """Several at a time: a file system makes one commit of what waits for it together. What is open
    already is given by its handle."""
    waiting, errors = list(paths), list[BaseException]()

    def work() -> None:
        while waiting:
            try:
                _sync(waiting.pop())
            except IndexError:
                return  # another one took the last
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
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # packed meanwhile, and packs are synced
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
