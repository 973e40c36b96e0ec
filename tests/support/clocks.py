"""A clock that is stopped until a test moves it, and the system's clock set forward."""

from __future__ import annotations

import pytest

from holdfast.adapters.local.system import SystemClock

DAY_NS = 24 * 3600 * 10**9


class StandingClock:
    def __init__(self) -> None:
        self._now_ns = 0

    def pass_seconds(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_ns(self) -> int:
        return self._now_ns


def pass_days(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Let everything that asks the system for the time find that so many days have passed."""
    before = SystemClock.now_ns
    later_ns = int(days * DAY_NS)
    monkeypatch.setattr(SystemClock, "now_ns", staticmethod(lambda: before() + later_ns))
