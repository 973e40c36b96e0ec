"""Workspaces that a server keeps open, shared by its requests.

    open and current  → shared; otherwise opened, and the outdated one is closed
    too many          → the least recently used one is closed

A workspace is not closed while a request uses it. Opening can wait for other processes; other
requests do not wait for that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from holdfast.domain.errors import HoldfastError

_MOST_OPEN = 16


class Closable(Protocol):
    def is_current(self) -> bool: ...

    def close(self) -> None: ...


K = TypeVar("K")
V = TypeVar("V", bound=Closable)


@dataclass(slots=True)
class _Open(Generic[V]):
    value: V
    users: int = 0
    stale: bool = False


class OpenCache(Generic[K, V]):
    """Thread-safe."""

    def __init__(self) -> None:
        self._open: OrderedDict[K, _Open[V]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def use(self, key: K, open_it: Callable[[], V]) -> Iterator[V]:
        """The value, reopened if it is out of date."""
        used = self._borrow(key, open_it)
        try:
            yield used.value
        finally:
            self._give_back(used)

    def open_keys(self) -> list[K]:
        with self._lock:
            return list(self._open)

    def close(self) -> None:
        with self._lock:
            for key in list(self._open):
                self._drop(key)

    def _borrow(self, key: K, open_it: Callable[[], V]) -> _Open[V]:
        with self._lock:
            known = self._open.get(key)
            if known is not None:
                self._count_user(key, known)
        if known is not None:
            if _is_current(known.value):
                return known
            with self._lock:
                if self._open.get(key) is known:
                    self._drop(key)
            self._give_back(known)
        opened = _Open(open_it())
        with self._lock:
            known = self._open.setdefault(key, opened)
            self._count_user(key, known)
        if known is not opened:
            _close(opened.value)
        return known

    def _count_user(self, key: K, known: _Open[V]) -> None:
        self._open.move_to_end(key)
        known.users += 1
        for oldest in list(self._open)[: max(len(self._open) - _MOST_OPEN, 0)]:
            self._drop(oldest)

    def _give_back(self, used: _Open[V]) -> None:
        with self._lock:
            used.users -= 1
            if used.stale and used.users == 0:
                _close(used.value)

    def _drop(self, key: K) -> None:
        """Closes it now, or when the last request that uses it has ended."""
        dropped = self._open.pop(key)
        dropped.stale = True
        if dropped.users == 0:
            _close(dropped.value)


def _is_current(value: Closable) -> bool:
    try:
        return value.is_current()
    except Exception:  # opening it again reports the problem
        return False


def _close(value: Closable) -> None:
    # The next request reports a damaged or missing store.
    with suppress(HoldfastError, OSError):
        value.close()
