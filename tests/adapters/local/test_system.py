"""The real clock and the real source of ids keep their contracts."""

from __future__ import annotations

import pytest

from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.ports.system import Clock, IdSource
from holdfast.testing.system_contracts import ClockContract, IdSourceContract

pytestmark = pytest.mark.requirement("CP-8")


class TestSystemClock(ClockContract):
    def clock(self) -> Clock:
        return SystemClock()


class TestRandomIds(IdSourceContract):
    def ids(self) -> IdSource:
        return RandomIds()
