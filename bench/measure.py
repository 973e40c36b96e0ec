"""Samples and what is said of them: median, extremes, percentiles, and a ratio only where it
means something.

A ratio compares two measurements of the same work. If either side has a fault on record (a file
not brought back, a command that failed), `ratio` gives the refusal instead of a number.
"""

import os
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Unit(Enum):
    """What the samples count."""

    SECONDS = "s"
    BYTES = "B"


@dataclass(slots=True)
class Measurement:
    """The samples of one tool at one operation, and what it got wrong there."""

    unit: Unit = Unit.SECONDS
    samples: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    offered: bool = True

    @property
    def sound(self) -> bool:
        return bool(self.samples) and not self.faults

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        return min(self.samples)

    @property
    def high(self) -> float:
        return max(self.samples)

    @property
    def p95(self) -> float:
        return self.percentile(95)

    def percentile(self, percent: int) -> float:
        """The smallest sample that at least so many of a hundred do not exceed."""
        ordered = sorted(self.samples)
        return ordered[-(-len(ordered) * percent // 100) - 1]

    def fault(self, what: str) -> None:
        """Record what went wrong; the same trouble with other files is recorded once."""
        if _without_examples(what) not in map(_without_examples, self.faults):
            self.faults.append(what)


def _without_examples(what: str) -> str:
    return re.sub(r" \([^)]*\)", "", what)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a ratio is not given."""

    reason: str


def ratio(of: Measurement | None, to: Measurement | None) -> float | Refusal:
    """How many times `to` the measurement `of` is, or why that cannot be said."""
    if of is None or to is None or not of.offered or not to.offered:
        return Refusal("not measured")
    for side in (of, to):
        if side.faults:
            return Refusal("; ".join(side.faults))
    if not of.samples or not to.samples:
        return Refusal("no samples")
    return of.median / to.median if to.median else Refusal("nothing to divide by")


def timed(action: Callable[[], object]) -> float:
    """The seconds one run takes, begun when everybody's earlier writes have reached the disk."""
    os.sync()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def over_bare(operation: str) -> str:
    """The name of what a process takes above the start of a bare interpreter."""
    return f"{operation}, over the bare interpreter"
