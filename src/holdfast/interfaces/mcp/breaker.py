"""A breaker around something outside: after some failures it is left alone for a while.

    closed ── failures in a row ──► open ── time ──► one try ── success ──► closed

While it is open nobody waits for what does not answer.
"""

from __future__ import annotations

import threading

from holdfast.ports.clock import Clock

FAILURES = 3
REST_SECONDS = 30


class Breaker:
    """Counts failures; safe to use from many threads."""

    def __init__(
        self, clock: Clock, *, failures: int = FAILURES, rest_seconds: float = REST_SECONDS
    ) -> None:
        self._clock = clock
        self._most = failures
        self._rest_ns = int(rest_seconds * 1e9)
        self._failures = 0
        self._closed_at_ns = 0
        self._lock = threading.Lock()

    def allows(self) -> bool:
        """Whether to try now. While it is open, one try is allowed after each rest."""
        with self._lock:
            if self._failures < self._most:
                return True
            now = self._clock.monotonic_ns()
            if now < self._closed_at_ns:
                return False
            self._closed_at_ns = now + self._rest_ns
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures == self._most:
                self._closed_at_ns = self._clock.monotonic_ns() + self._rest_ns
