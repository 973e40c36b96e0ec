"""The table of `docs/reliability.md`, made from what campaigns found and from nothing else.

    python -m tests.torture.reliability            print it
    python -m tests.torture.reliability --write    write the document

The bound is the highest failure rate that the cases leave possible with 95% confidence: 3/n when
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

These campaigns try to make Holdfast lose data. `make torture` runs them all, and `make reliability`
writes this page from the last run of each. `make test` runs a part of each campaign.

"Covered" says whether every possible case was tried. Otherwise the cases are a random sample, and
the 95% bound is the highest failure rate that they leave possible. In damaged stores, a *dead*
byte is one that nothing depends on.
"""
_SECTIONS = {
    1: "Killed processes (kill -9)",
    2: "Power loss (each case is a possible state of the disk)",
    3: "Failing disks (ENOSPC, EDQUOT, EIO, EINTR, EMFILE, short reads and writes)",
    4: "Damaged stores",
    5: "Several processes at once",
    6: "Hostile links and forged stores",
    7: "Files that change while they are saved",
    8: "Clocks and times",
    9: "Long use",
    10: "Size",
    11: "Other users of the machine",
    12: "Caches",
}
_COLUMNS = "| scenario | cases | failures | 95% bound | covered | when |"
_RULE = "| --- | ---: | ---: | ---: | --- | --- |"
_COMMANDS = """
## Commands

To repeat a campaign, run its command. `TORTURE_S=seconds` gives it more time,
`TORTURE_CASES=number` limits the cases, and `TORTURE_CASE=number` runs one case.

| scenario | command |
| --- | --- |"""


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
    cases, failures = (sum(row.cases for row in rows), sum(row.failures for row in rows))
    machines = "; ".join(sorted({row.machine for row in rows}))
    lines = [_OPENING, f"**{cases:,} cases, {failures:,} failures.** Machine: {machines}."]
    part = None
    for row in rows:
        if row.part != part:
            part = row.part
            lines += ["", f"## {_SECTIONS.get(part, 'Others')}", "", _COLUMNS, _RULE]
        bound = failure_bound(row.cases, row.failures)
        lines.append(
            f"| {row.title} (`{row.scenario}`) | {row.cases:,} | {row.failures:,} "
            f"| {bound:.2g} | {row.covered} | {row.date}, {row.seconds:.0f} s |"
        )
    lines += [_COMMANDS, *(f"| `{row.scenario}` | `{row.command}` |" for row in rows)]
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
