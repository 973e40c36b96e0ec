"""The table of `docs/reliability.md`, made from what campaigns found and from nothing else.

    python -m tests.torture.reliability            print it
    python -m tests.torture.reliability --write    write the document

The bound is the highest failure rate that the cases leave possible with 95 % confidence: 3/n when
none failed (the rule of three), else the one-sided limit of Clopper and Pearson.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.torture.campaign import ROOT, Row, read_rows

DOCUMENT = ROOT / "docs" / "reliability.md"
_DOUBT = 0.05
_HALVINGS = 60

_OPENING = """# Reliability

What was tried to break a store or a workspace, how often, and what came of it. Every line is the
last run of a campaign on the machine named below; `make torture` runs them all, and
`make reliability` writes this file from what they recorded. A line is repeated with its command;
`TORTURE_S=seconds` gives it more time, `TORTURE_CASES=number` ends it after so many cases,
`TORTURE_CASE=number` runs one case alone. A slice of each campaign is part of `make test`.

The bound is the highest rate of failures that the cases leave possible with 95 % confidence. Where
a finite space was gone through completely, the line names it: such cases are no sample.
"""

_COLUMNS = "| part | scenario | cases run | failures | 95 % bound | covered | command | when |"
_RULE = "| ---: | --- | ---: | ---: | ---: | --- | --- | --- |"


def failure_bound(cases: int, failures: int) -> float:
    """The rate at which so few failures would be a one-in-twenty chance."""
    if cases == 0 or failures >= cases:
        return 1.0
    if failures == 0:
        return min(1.0, 3 / cases)
    low, high = failures / cases, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(failures, cases, middle) > _DOUBT:
            low = middle
        else:
            high = middle
    return high


def _at_most(failures: int, cases: int, rate: float) -> float:
    """The chance of so many failures or fewer."""
    terms = (
        math.lgamma(cases + 1)
        - math.lgamma(k + 1)
        - math.lgamma(cases - k + 1)
        + k * math.log(rate)
        + (cases - k) * math.log1p(-rate)
        for k in range(failures + 1)
    )
    return math.fsum(map(math.exp, terms))


def render(rows: Sequence[Row]) -> str:
    lines = [_OPENING, _COLUMNS, _RULE]
    for row in rows:
        bound = failure_bound(row.cases, row.failures)
        lines.append(
            f"| {row.part} | {row.title} (`{row.scenario}`) | {row.cases:,} | {row.failures:,} "
            f"| {bound:.2g} | {row.covered} | `{row.command}` | {row.date}, {row.seconds:.0f} s |"
        )
    machines = sorted({row.machine for row in rows})
    lines += ["", "Machine: " + "; ".join(machines) + "."]
    return "\n".join(lines) + "\n"


def main(arguments: list[str], document: Path = DOCUMENT) -> int:
    rows = read_rows()
    if arguments not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    if not rows:
        print("no campaign has been run here: make torture", file=sys.stderr)
        return 1
    if arguments:
        document.write_text(render(rows), "utf-8")
    else:
        print(render(rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
