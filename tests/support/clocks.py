"""A clock that stands still until it is told to go on."""

from __future__ import annotations


class StandingClock:
    def __init__(self) -> None:
        self._now_ns = 0

    def pass_seconds(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_ns(self) -> int:
        return self._now_ns
