"""The result as one table: cells, footnotes, and the same thing as plain text or Markdown.

A ratio that was refused shows `--` and a footnote that says what differed; it never shows a
number.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.measure import Measurement, Refusal, Unit, ratio
from bench.peers import HOLDFAST, REFERENCE
from bench.rows import Bound, Row

ABSENT = "not installed"


@dataclass(slots=True)
class Footnotes:
    """Numbered remarks; the same trouble of the same tool is said once, where it first occurs."""

    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def mark(self, row: Row, title: str, reason: str) -> str:
        trouble = re.sub(r"\([^)]*\)|\d", "", reason)
        number = self.numbers.setdefault((title, trouble), len(self.numbers) + 1)
        if number > len(self.texts):
            self.texts.append(f"{title}: {reason} [{row.tree}, {row.operation}]")
        return f"[{number}]"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells ready to print."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    footnotes: tuple[str, ...]

    def plain(self) -> str:
        """Aligned columns; the first two to the left, the figures to the right."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.lines, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        printed = [self._align(self.header, widths), rule]
        tree = self.lines[0][0] if self.lines else ""
        for line in self.lines:
            if line[0] != tree:
                printed.append("")
                tree = line[0]
            printed.append(self._align(line, widths))
        return "\n".join([*printed, *self._numbered()])

    def markdown(self) -> str:
        """The same cells as a Markdown table."""
        rule = ["---", "---", *("---:" for _ in self.header[2:])]
        lines = [f"| {' | '.join(line)} |" for line in (self.header, rule, *self.lines)]
        return "\n".join([*lines, "", *(f"{note}  " for note in self._numbered() if note)])

    @staticmethod
    def _align(line: Sequence[str], widths: Sequence[int]) -> str:
        cells = [
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    def _numbered(self) -> list[str]:
        notes = [f"[{number}] {text}" for number, text in enumerate(self.footnotes, 1)]
        return ["", *notes] if notes else []


def build(rows: Sequence[Row], others: Sequence[str], absent: Sequence[str]) -> Table:
    """One line a row: Holdfast, its baseline, ratios, the bound, then the other tools' ratios."""
    notes = Footnotes()
    header = (
        "tree", "operation", "floor", HOLDFAST.title, "git", "x git", "x floor", "bound", "holds",
        *others,
    )  # fmt: skip
    lines = []
    for row in rows:
        p95 = row.bound is not None and row.bound.kind == "p95"
        figure: Callable[[Measurement | None], str] = _p95 if p95 else _spread
        lines.append(
            (
                row.tree,
                row.operation,
                "" if row.floor is None else amount(row.floor, Unit.SECONDS),
                figure(row.own),
                figure(row.values.get(row.baseline)),
                "" if p95 else _ratio(row, row.title, notes),
                "" if p95 else _above_floor(row),
                _bound(row.bound),
                _verdict(row, notes),
                *("" if p95 else _other(row, title, absent, notes) for title in others),
            )
        )
    return Table(header, tuple(lines), tuple(notes.texts))


def details(rows: Sequence[Row]) -> Table:
    """Every measurement with its spread and number of samples."""
    notes = Footnotes()
    header = ("tree", "operation", "tool", "median", "min..max", "samples", "x shadow git")
    lines = []
    for row in rows:
        if row.title != HOLDFAST.title or row.baseline != REFERENCE.title:
            continue  # the same measurements as in another line
        if row.bound is not None and row.bound.kind == "p95":
            continue
        for title, measured in row.values.items():
            if not measured.samples:
                continue
            middle = amount(measured.median, measured.unit)
            spread = (
                f"{amount(measured.low, measured.unit)} .. {amount(measured.high, measured.unit)}"
            )
            count = str(len(measured.samples))
            figure = _ratio(row, title, notes)
            lines.append((row.tree, row.operation, title, middle, spread, count, figure))
    return Table(header, tuple(lines), tuple(notes.texts))


def amount(value: float, unit: Unit) -> str:
    """A figure in the unit a reader would choose, with three digits."""
    if unit is Unit.BYTES:
        scaled, name = next(
            (value / size, name)
            for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
            if value >= size or size == 1
        )
    else:
        scaled, name = (value, "s") if value >= 1 else (value * 1e3, "ms")
    digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
    return f"{scaled:.{digits}f} {name}"


def _spread(measured: Measurement | None) -> str:
    if measured is None or not measured.samples:
        return ""
    middle = amount(measured.median, measured.unit)
    if len(measured.samples) == 1:
        return middle
    low, high = (amount(value, measured.unit) for value in (measured.low, measured.high))
    same_unit = low.split()[1] == high.split()[1]
    return f"{middle} ({low.split()[0] if same_unit else low}..{high})"


def _p95(measured: Measurement | None) -> str:
    return amount(measured.p95, measured.unit) if measured and measured.samples else ""


def _ratio(row: Row, title: str, notes: Footnotes) -> str:
    measured, baseline = row.values.get(title), row.values.get(row.baseline)
    if measured is None or baseline is None:
        return ""
    if not measured.offered:
        return "n/a"
    figure = ratio(measured, baseline)
    if isinstance(figure, Refusal):
        return f"--{notes.mark(row, _blamed(row, title), figure.reason)}"
    return f"{figure:.2f}"


def _blamed(row: Row, title: str) -> str:
    """The side that is the reason of a refusal."""
    measured, baseline = row.values.get(title), row.values.get(row.baseline)
    own_fault = measured is None or not measured.sound
    return row.baseline if not own_fault and baseline is not None and baseline.faults else title


def _above_floor(row: Row) -> str:
    own = row.own
    if row.floor is None or own is None or not own.sound:
        return ""
    return f"{own.median / row.floor:.1f}"


def _other(row: Row, title: str, absent: Sequence[str], notes: Footnotes) -> str:
    if title in absent:
        return ABSENT
    if row.baseline != REFERENCE.title:
        return ""
    return _ratio(row, title, notes)


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return ""
    if bound.kind == "ratio":
        return f"{bound.promise} <= {bound.limit:g}x"
    unit = Unit.SECONDS if bound.limit < 1_000 else Unit.BYTES
    return f"{bound.promise} <= {amount(bound.limit, unit)}"


def _verdict(row: Row, notes: Footnotes) -> str:
    judged = row.judge()
    if judged is None:
        return ""
    if isinstance(judged, Refusal):
        return f"--{notes.mark(row, _blamed(row, row.title), judged.reason)}"
    return "yes" if judged else "NO"
