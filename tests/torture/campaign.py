"""A campaign: one scenario, many cases, each derived from the seed, the scenario and its number.

    seed, scenario, number → the case's own randomness → run it → count it, keep its failure
    until the time is over (`make torture`), or for a few cases only (`make test`)

A case that fails is reported with the command that runs that case alone. Failures do not end a
campaign: the rate is what it is after. What a campaign found is written down as a `Row`, from
which `tests.torture.reliability` makes the table in the documentation.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import random
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "torture"
_SHOWN_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a campaign tries. `part` orders the table; `name` is the file of its results."""

    part: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Case:
    """One try. Everything random about it comes from `rng`, and is repeated by its number."""

    scenario: str
    seed: int
    number: int

    def rng(self, purpose: str = "") -> random.Random:
        """The same numbers each time it is called with the same purpose."""
        return random.Random(f"{self.seed}:{self.scenario}:{self.number}:{purpose}")


@dataclass(frozen=True, slots=True)
class Row:
    """What a campaign came to. `covered` says which finite space was gone through completely, and
    what else there is to say."""

    part: int
    scenario: str
    title: str
    cases: int
    failures: int
    seconds: float
    seed: int
    command: str
    covered: str
    machine: str
    date: str


@dataclass(slots=True)
class Campaign:
    """`seconds` bounds a campaign, else the number of cases that the scenario gives a slice.

    `only` is the number of the one case to repeat, `enough` how many end a campaign before its time
    is over; `results` is None where nothing is recorded.
    `note` is what a scenario has to say beyond its number of cases: what it counted, or what this
    machine has not got.
    """

    seed: int
    test: str
    seconds: float | None = None
    only: int | None = None
    results: Path | None = None
    enough: int | None = None
    failed: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def is_slice(self) -> bool:
        return self.seconds is None

    def run(
        self,
        scenario: Scenario,
        case: Callable[[Case], object],
        *,
        slice_cases: int,
        space: int | None = None,
        covered: str = "",
        most_cases: int | None = None,
    ) -> Row:
        """Run cases, record the row, and fail with what failed.

        Where the first `space` cases go through something finite one by one, `covered` names it:
        it is said of a campaign that ran them all. A slice then takes its cases evenly from them.
        """
        began = time.monotonic()
        done = 0
        for number in self._numbers(slice_cases, space, most_cases):
            if self.seconds is not None and time.monotonic() - began > self.seconds and done:
                break
            try:
                case(Case(scenario.name, self.seed, number))
            except Exception:
                self.failed.append(f"case {number}\n{traceback.format_exc()}")
            done += 1
        row = Row(
            part=scenario.part,
            scenario=scenario.name,
            title=scenario.title,
            cases=done,
            failures=len(self.failed),
            seconds=round(time.monotonic() - began, 1),
            seed=self.seed,
            command=self._command(),
            covered="; ".join(filter(None, (covered * (done >= (space or done + 1)), self.note))),
            machine=f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}",
            date=time.strftime("%Y-%m-%d", time.gmtime()),
        )
        self._write(row)
        if self.failed:
            raise AssertionError(self._report(row))
        return row

    def _numbers(
        self, slice_cases: int, space: int | None, most_cases: int | None
    ) -> Iterator[int]:
        if self.only is not None:
            yield self.only
        elif not self.is_slice:
            yield from itertools.islice(self._in_order(space, most_cases), self.enough)
        elif space is None or space <= slice_cases:
            yield from range(space or slice_cases)
        else:
            yield from (number * space // slice_cases for number in range(slice_cases))

    def _in_order(self, space: int | None, most_cases: int | None) -> Iterable[int]:
        """A finite space is gone through in no order, so that the time may end anywhere in it."""
        if most_cases is None:
            return itertools.count()
        numbers = list(range(most_cases))
        if space is not None:
            random.Random(self.seed).shuffle(numbers)
        return numbers

    def _command(self, only: str = "") -> str:
        enough = f" TORTURE_CASES={self.enough}" if self.enough and not only else ""
        return f'make torture TORTURE_SEED={self.seed}{only}{enough} ARGS="-k {self.test}"'

    def _write(self, row: Row) -> None:
        if self.results is None or self.only is not None:
            return
        self.results.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(row), indent=1)
        (self.results / f"{row.scenario}.json").write_text(text + "\n", "utf-8")

    def _report(self, row: Row) -> str:
        shown = [
            f"{text}repeat it: {self._command(f' TORTURE_CASE={text.split()[1]}')}"
            for text in self.failed[:_SHOWN_FAILURES]
        ]
        head = f"{row.failures} of {row.cases} cases of {row.scenario} failed (seed {row.seed})"
        return "\n\n".join([head, *shown])


def read_rows(directory: Path = RESULTS) -> list[Row]:
    """What the last campaign of each scenario came to, in the order of the table."""
    found = [Row(**json.loads(path.read_text("utf-8"))) for path in directory.glob("*.json")]
    return sorted(found, key=lambda row: (row.part, row.scenario))
