"""The real clock, the real source of ids, and of the randomness that keys are made of."""

from __future__ import annotations

import os
import time

from holdfast.domain.ids import CHECKPOINT_ID_LENGTH

random_bytes = os.urandom
"""From the kernel, so that forked processes do not have the same."""


class SystemClock:
    @staticmethod
    def now_ns() -> int:
        return time.time_ns()

    @staticmethod
    def monotonic_ns() -> int:
        return time.monotonic_ns()


class RandomIds:
    @staticmethod
    def new_id() -> str:
        return os.urandom(CHECKPOINT_ID_LENGTH // 2).hex()
