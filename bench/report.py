"""The table with what a reader must know beside it: how it was measured, on what, and how many
bounds hold."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import machine, table
from bench.measure import Refusal
from bench.operations import BACK_FIVE, FIVE, FLOOR
from bench.peers.contract import PeerKind
from bench.rows import Row
from bench.table import Table

METHOD = """\
Every tool works on its own copy of the tree. Within a round each operation is done by all tools
before the next begins, in an order that rotates and reverses. Caches are warm: one round goes
before, uncounted, and the disk is synced before each timing. Cells are medians
(smallest..largest). `x git` is Holdfast to the git column; the columns on the right are the
other tools' medians to shadow git. `floor` is a bare walk with one lstat a file plus one fsync;
for commands, the bare interpreter. Holdfast runs in process and is durable (fsync) when a call
returns; git, by its defaults, is not. "Holdfast watched" is the same with the workspace kept open
and watched, as the daemon has it.

Shadow git saves with `add -A`, `write-tree`, `commit-tree` and restores with `read-tree`,
`checkout-index -a -f`, `clean -f -d`. The lines `to git checkout -f, clean` hold Holdfast's
restore against `checkout -f` and `clean -f -d`, which rewrite only what differs. Automatic
collection is off in every git repository.

A change of n files is nine tenths edits by line (one of them also gains the executable bit),
the rest files created in new directories and files deleted. After every restore the whole tree
is read again (names, kinds, modes, bytes) and compared; the last save of each kind is read back
from the store and compared. If either side is wrong, its ratio is `--` and a footnote says what
differed. Store sizes are disk blocks; restic and borg are left out of the long histories for
their start-up time.

The lines of `web` are requests to `holdfast serve` and figures of its page in Chromium, at as many
checkpoints in the session as files in the tree. Git's side is `git log` for a page of the timeline,
`git diff` for a diff, and both for a click."""


def plain(result: Table, rows: Sequence[Row]) -> str:
    """For the terminal."""
    return "\n".join([result.plain(), "", *_remarks(rows), summary(rows)])


def markdown(
    result: Table, rows: Sequence[Row], kinds: Sequence[PeerKind], command: str, work: Path
) -> str:
    """For `docs/benchmarks.md`."""
    today = datetime.now(UTC).date().isoformat()
    tools = {kind.title: kind.version() or table.ABSENT for kind in kinds}
    facts = {**machine.describe(work), **tools, "date": today, "command": f"`{command}`"}
    parts = [
        "# Benchmarks",
        "Holdfast beside the tools people use today, measured by `make bench` in one run.",
        "\n".join(
            ["| | |", "| --- | --- |", *(f"| {key} | {value} |" for key, value in facts.items())]
        ),
        "## Result",
        summary(rows),
        result.markdown(),
        "\n".join(_remarks(rows)),
        "## How it is measured",
        METHOD,
        "## Every measurement",
        table.details(rows).markdown(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """How many promises hold, and which do not."""
    judged = [(row, row.judge()) for row in rows if row.bound is not None]
    held = sum(verdict is True for _, verdict in judged)
    broken = [
        f"{row.bound.promise} ({row.tree}: {row.operation})"
        for row, verdict in judged
        if verdict is False and row.bound
    ]
    unknown = sum(isinstance(verdict, Refusal) for _, verdict in judged)
    text = f"{held} of {len(judged)} bounds hold"
    text += f", {unknown} not judged" if unknown else ""
    return f"{text}; broken: {', '.join(broken)}." if broken else f"{text}."


def _remarks(rows: Sequence[Row]) -> list[str]:
    """Where a tool was given fewer rounds than another: the same numbers are said once a tree."""
    said: dict[str, str] = {}
    for row in rows:
        if row.operation not in (FIVE, BACK_FIVE):
            continue
        counts = {
            title: len(measured.samples)
            for title, measured in row.values.items()
            if measured.samples and title != FLOOR
        }
        most = max(counts.values(), default=0)
        fewer = [f"{title} {count}" for title, count in counts.items() if count < most]
        if fewer:
            numbers = f"{most} samples; fewer for {', '.join(fewer)}."
            said.setdefault(f"{row.tree}: {numbers}", f"{row.tree}, {row.operation}: {numbers}")
    return list(said.values())
