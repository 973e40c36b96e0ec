"""`python -m bench`: measure Holdfast beside the tools people use, print one table.

Everything happens in a temporary directory that is removed at the end. Progress goes to stderr,
the table to stdout.
"""

import argparse
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import growth, memory, report, rows, table, trees, watched_saves, web_api, web_page
from bench.command_line import CommandLine
from bench.contest import Book
from bench.hook_process import HookProcess
from bench.operations import MAIN, OPERATIONS, Effort, Trial
from bench.peers import HOLDFAST, KINDS, REFERENCE, WATCHED
from bench.peers.contract import PeerKind
from bench.processes import plain_surroundings, remove

SIZES = (1_000, 10_000, 100_000)
LARGE = 50_000
LONG_HISTORY = 1_000
SHORT_HISTORY = 200
QUICK_HISTORY = 50
WEB_SIZE = 10_000
QUICK_WEB_SIZE = 300
# Backup programs take most of a second to start: two hundred saves would say nothing but that.
SLOW_TO_START = frozenset({"restic", "borg"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run does."""

    sizes: tuple[int, ...]
    kinds: tuple[PeerKind, ...]
    named: bool
    rounds: int | None
    quick: bool
    real: bool
    web: bool
    started: float

    def effort(self, files: int) -> Effort:
        """Rounds by size: enough for a p95 at 1,000 files, fewer where one round takes minutes."""
        usual = 40 if files <= 1_000 else 5 if files < LARGE else 3
        rounds = self.rounds or (min(usual, 5) if self.quick else usual)
        first = 1 if self.quick or files >= LARGE else 3
        patience_s = 5.0 if self.quick else 12.0 if files < LARGE else 30.0
        return Effort(rounds, first, patience_s)

    def fit_for(self, files: int) -> list[PeerKind]:
        """The tools that run on a tree of this size; all of them if they were asked for by name."""
        return [
            kind
            for kind in self.kinds
            if self.named or kind.most_files is None or files <= kind.most_files
        ]

    def say(self, what: str) -> None:
        print(f"[{time.monotonic() - self.started:5.0f} s] {what}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; a broken promise is reported, not a failure of the run."""
    given = _parse(arguments)
    kinds = tuple(kind for kind in KINDS if given.peers is None or kind.key in given.peers)
    present = tuple(kind for kind in kinds if kind.version() is not None)
    plan = Plan(
        sizes=given.sizes,
        kinds=present,
        named=given.peers is not None,
        rounds=given.rounds,
        quick=given.quick,
        real=not given.no_real,
        web=not given.no_web,
        started=time.monotonic(),
    )
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=given.work) as directory:
        work = Path(directory)
        with plain_surroundings(work):
            measured = measure(plan, work)
        others = [kind.title for kind in kinds if kind not in (HOLDFAST, REFERENCE)]
        absent = [kind.title for kind in kinds if kind not in present]
        result = table.build(measured, others, absent)
        print(report.plain(result, measured))
        if given.markdown is not None:
            command = shlex.join(["python", "-m", "bench", *(arguments or sys.argv[1:])])
            text = report.markdown(result, measured, kinds, command, work)
            given.markdown.write_text(text, encoding="utf-8")
    return 0


def measure(plan: Plan, work: Path) -> list[rows.Row]:
    """Everything, tree by tree."""
    lines: list[rows.Row] = []
    for files in plan.sizes:
        base = work / "base"
        plan.say(f"{files:,} files: generating")
        trees.generate(base, files)
        label = f"{files:,}"
        lines += _trial(plan, work, base, label, files)
        if WATCHED in plan.kinds:
            lines += _watched(plan, work, base, label, files)
        if HOLDFAST in plan.kinds and files < LARGE:
            lines += _processes(plan, work, base, label, files)
        if files == min(plan.sizes) and files < LARGE:
            lines += _growth(plan, work, base, label, SHORT_HISTORY, promised=False)
        remove(base)
    if plan.real:
        base = work / "base"
        files = trees.copy_real(base)
        label = f"library {files:,}"
        lines += _trial(plan, work, base, label, files)
        lines += _growth(plan, work, base, label, LONG_HISTORY, promised=True)
    if plan.web and HOLDFAST in plan.kinds:
        lines += _web(plan, work)
    return lines


def _trial(plan: Plan, work: Path, base: Path, label: str, files: int) -> list[rows.Row]:
    kinds = plan.fit_for(files)
    plan.say(f"{label}: {', '.join(kind.title for kind in kinds)}")
    book = Trial(base, work / "trial", kinds, plan.effort(files)).run()
    for kind in plan.kinds:
        for operation in OPERATIONS if kind not in kinds else ():
            too_slow = f"not run above {kind.most_files:,} files unless named by --peers"
            book.at(operation, kind.title).fault(too_slow)
    return list(rows.of_trial(label, files, book))


def _watched(plan: Plan, work: Path, base: Path, label: str, files: int) -> list[rows.Row]:
    saves = 20 if plan.quick else 200 if files < LARGE else 100
    plan.say(f"{label}: {saves} watched saves")
    here = work / "watched"
    here.mkdir()
    book = watched_saves.measure(base, here, saves)
    remove(here)
    return list(rows.of_watched(label, book))


def _processes(plan: Plan, work: Path, base: Path, label: str, files: int) -> list[rows.Row]:
    """Command line, hook and memory, each in processes of its own."""
    plan.say(f"{label}: command line and memory")
    rounds = 3 if plan.quick else 15
    here = work / "processes"
    here.mkdir()
    lines = list(rows.of_command_line(label, files, CommandLine(base, here).measure(rounds)))
    lines += rows.of_hook(label, files, HookProcess(base, here).measure(rounds))
    if files <= 1_000:
        lines += rows.of_memory(label, memory.measure(base, here, 3))
    remove(here)
    return lines


def _growth(
    plan: Plan, work: Path, base: Path, label: str, steps: int, *, promised: bool
) -> list[rows.Row]:
    """The long history is for the two main tools; the short one for all that start quickly."""
    chosen = MAIN - {WATCHED.key} if promised else {kind.key for kind in plan.kinds} - SLOW_TO_START
    kinds = [kind for kind in plan.kinds if kind.key in chosen]
    steps = min(steps, QUICK_HISTORY) if plan.quick else steps
    plan.say(f"{label}: {steps:,} edits")
    book = growth.grow(base, work / "growth", kinds, steps, collect=promised)
    return list(rows.of_growth(label, steps, book, promised=promised and not plan.quick))


def _web(plan: Plan, work: Path) -> list[rows.Row]:
    """The HTTP API and the web page, both over one store with a long past."""
    size = QUICK_WEB_SIZE if plan.quick else WEB_SIZE
    plan.say(f"web: {size:,} checkpoints, {size:,} files")
    rounds = plan.rounds or (5 if plan.quick else rows.SAMPLES_FOR_P95)
    here = work / "web"
    here.mkdir()
    book = Book()
    past = web_api.prepare(here, size, size, rounds + 1)
    with web_api.serving(past.workspace) as server:
        web_api.measure(book, server, rounds)
        web_page.measure(book, past, server, rounds)
    web_api.measure_git(book, here, past.workspace, size, rounds)
    web_page.compare_a_click(book)
    remove(here)
    return list(rows.of_web(f"web {size:,}", book))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, metavar="N,N", help="files in the generated trees"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds on every tree")
    parser.add_argument(
        "--peers", type=_peers, metavar="KEY,KEY", help=f"of {', '.join(k.key for k in KINDS)}"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, short histories")
    parser.add_argument("--no-real", action="store_true", help="generated trees only")
    parser.add_argument("--no-web", action="store_true", help="without the server and its page")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write a report")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where to make the trees")
    return parser.parse_args(arguments)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _peers(text: str) -> frozenset[str]:
    chosen = frozenset(text.split(","))
    unknown = chosen - {kind.key for kind in KINDS}
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return chosen


if __name__ == "__main__":
    # So that being told to stop removes the temporary directory too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
