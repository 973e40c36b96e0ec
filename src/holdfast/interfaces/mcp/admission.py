"""How much a server takes on at once: calls a second of each client, and bytes in flight.

A client may call in bursts and then at a steady rate; what all calls hold together while they are
answered or wait is bounded. A call that finds no room is told to come back, and costs nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.domain.errors import Busy

MOST_BYTES = 100_000_000
MOST_CALLS = 2_000
BURST = 1_000
CALLS_PER_SECOND = 50
_MOST_CLIENTS = 1_000
_LEAST_WEIGHT = 1_000
_SECOND_NS = 1_000_000_000


class Admission:
    """Lets calls in; safe to use from many threads."""

    def __init__(
        self,
        monotonic_ns: Callable[[], int],
        *,
        burst: int = BURST,
        per_second: float = CALLS_PER_SECOND,
        most_bytes: int = MOST_BYTES,
        most_calls: int = MOST_CALLS,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._burst = burst
        self._per_second = per_second
        self._most_bytes = most_bytes
        self._most_calls = most_calls
        self._in_flight_bytes = self._in_flight = 0
        self._left: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, client: str, params: Mapping[str, Any] | None) -> Iterator[None]:
        """Room for one call as long as the block runs; `Busy` when there is none."""
        size_bytes = _LEAST_WEIGHT + weight(params)
        with self._lock:
            self._spend(client)
            if (
                self._in_flight >= self._most_calls
                or self._in_flight_bytes + size_bytes > self._most_bytes
            ):
                raise Busy(
                    f"{self._in_flight} calls are being answered, and there is no room for more",
                    hint="wait for some of them to be answered, then call again",
                )
            self._in_flight += 1
            self._in_flight_bytes += size_bytes
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1
                self._in_flight_bytes -= size_bytes

    def _spend(self, client: str) -> None:
        """One of the calls that the client has left; they come back with time."""
        now = self._monotonic_ns()
        left, since = self._left.pop(client, (float(self._burst), now))
        left = min(left + (now - since) / _SECOND_NS * self._per_second, self._burst)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        if left < 1:
            raise Busy(
                f"more than {self._per_second:g} calls a second",
                hint=f"wait {(1 - left) / self._per_second:.2f} seconds, then call again",
            )


def weight(value: object) -> int:
    """About how many bytes a request holds."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        total += 16
        if isinstance(one, str | bytes):
            total += len(one)
        elif isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return total
