"""The operations measured on one tree, round by round.

A round: save unchanged; change five files, save, compare, restore; change 5 % of the files, save,
compare, restore. Each restore goes back to the first save and is verified. Before anything is
timed, an untimed save lets every tool catch up with the files that the last restore wrote, so
that all are warm.

Guarantees: the first round is warm-up and not counted, unless a tool is so slow that it has no
other, or an operation so slow that it is not repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import edits, floor
from bench.contest import Book, Contest, Contestant
from bench.measure import Unit, timed
from bench.peers.contract import PeerKind
from bench.peers.shadow_git import ShadowGit

FIRST = "first save"
NOTHING = "save, nothing changed"
FIVE = "save, 5 files changed"
SHARE = "save, 5 % changed"
BACK_FIVE = "restore, 5 files"
BACK_SHARE = "restore, 5 %"
DIFF_FIVE = "diff, 5 files"
DIFF_SHARE = "diff, 5 %"
STORE_FIRST = "store after first save"
WALK = "floor: walk, one lstat a file"
FSYNC = "floor: one fsync"

OPERATIONS = (
    FIRST,
    NOTHING,
    FIVE,
    SHARE,
    BACK_FIVE,
    BACK_SHARE,
    DIFF_FIVE,
    DIFF_SHARE,
)

MAIN = frozenset({"holdfast", "watched", "git"})
FLOOR = "floor"
CHECKOUT = "git checkout -f, clean"
FILES_CHANGED = 5
SHARE_CHANGED = 0.05


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done on one tree; `patience_s` limits the rounds of all but the main tools."""

    rounds: int
    first_saves: int
    patience_s: float


class Trial:
    """All operations on one tree."""

    def __init__(self, base: Path, work: Path, kinds: Sequence[PeerKind], effort: Effort) -> None:
        self._effort = effort
        self.book = Book()
        self._contest = Contest(base, work, kinds, self.book, effort.patience_s)

    def run(self) -> Book:
        """Measure everything, clean up, and return the book."""
        contest = self._contest
        try:
            self._first_saves()
            self._round(0)
            self._set_rounds()
            for number in range(1, self._effort.rounds + 1):
                self._round(number)
            self._drop_warm_up()
            self._prove_saves()
            self._carry_failures()
        finally:
            contest.close()
        return self.book

    def _first_saves(self) -> None:
        contest = self._contest
        for one in contest.contestants:
            floor.read(one.tree)
        for number in range(self._effort.first_saves):
            # Only the main tools repeat what takes others many seconds.
            order = [
                one
                for one in contest.in_order(number)
                if number == 0 or one.kind.key in MAIN or one.spent_s < self._effort.patience_s / 4
            ]
            for one in order if number else ():
                contest.fresh(one)
            contest.each(None, lambda one: one.peer.prepare(one.tree), order)
            contest.each(FIRST, lambda one: one.save(FIRST, contest.expected), order)
            for one in order:
                one.slow.clear()
        for one in contest.in_order(0):
            size = self.book.at(STORE_FIRST, one.kind.title, Unit.BYTES)
            size.samples.append(one.peer.size().disk_bytes)
            one.spent_s = 0.0

    def _set_rounds(self) -> None:
        """A slow tool gets the rounds that patience allows; if none, its warm-up round counts."""
        effort = self._effort
        for one in self._contest.contestants:
            affordable = int(effort.patience_s / max(one.spent_s, 0.001))
            main = one.kind.key in MAIN
            one.rounds = effort.rounds if main else min(effort.rounds, affordable)

    def _round(self, number: int) -> None:
        contest = self._contest
        here = [one for one in contest.in_order(number) if number == 0 or number <= one.rounds]
        self._floor(contest.base)
        contest.each(None, lambda one: one.peer.save(), here)
        contest.each(NOTHING, lambda one: one.save(NOTHING, contest.expected), here)
        self._change(number, FIVE, DIFF_FIVE, BACK_FIVE, FILES_CHANGED, here)
        contest.each(None, lambda one: one.peer.save(), here)
        files = sum(entry.kind == "file" for entry in contest.expected.values())
        share = max(FILES_CHANGED, round(SHARE_CHANGED * files))
        self._change(number, SHARE, DIFF_SHARE, BACK_SHARE, share, here)
        self._checkout(number, [one for one in here if isinstance(one.peer, ShadowGit)])

    def _floor(self, base: Path) -> None:
        scratch = self._contest.work
        # Nobody else looks at this copy: walk it once so that the kernel knows it again.
        floor.walk(base)
        self.book.at(WALK, FLOOR).samples.append(timed(lambda: floor.walk(base)))
        self.book.at(FSYNC, FLOOR).samples.append(timed(lambda: floor.fsync_once(scratch)))

    def _change(
        self, number: int, save: str, diff: str, back: str, count: int, here: list[Contestant]
    ) -> None:
        """Change `count` files, save, compare with the first save, restore that, verify."""
        contest = self._contest
        changes = edits.burst(contest.base, contest.expected, count, f"{save} {number}")
        state = edits.after(contest.expected, changes)
        contest.edit(changes, here)
        saved = contest.each(save, lambda one: one.save(save, state), here)
        for one in contest.each(diff, lambda one: one.compare(FIRST, save), saved):
            wrong = one.wrong_answer(contest.expected, state)
            if wrong:
                contest.fault(diff, one, wrong)
        did = contest.each(back, lambda one: one.peer.restore(one.saved[FIRST]), here)
        for one in here:
            contest.check(back, one, restored=one in did)

    def _checkout(self, number: int, here: list[Contestant]) -> None:
        """The reference's other way of restoring five files, which rewrites only what differs."""
        contest = self._contest
        changes = edits.burst(contest.base, contest.expected, FILES_CHANGED, f"checkout {number}")
        contest.each(None, lambda one: one.peer.save(), here)
        contest.edit(changes, here)
        contest.each(None, lambda one: one.peer.save(), here)
        did = contest.each(BACK_FIVE, _restore_by_checkout, here, title=CHECKOUT)
        for one in here:
            contest.check(BACK_FIVE, one, title=CHECKOUT, restored=one in did)

    def _drop_warm_up(self) -> None:
        for operation, page in self.book.pages.items():
            if operation in (FIRST, STORE_FIRST):
                continue
            for measurement in page.values():
                if len(measurement.samples) > 1:
                    del measurement.samples[0]

    def _prove_saves(self) -> None:
        """Read back the last save of each kind."""
        for one in self._contest.contestants:
            for operation in (NOTHING, FIVE, SHARE):
                self._contest.prove(operation, operation, one)

    def _carry_failures(self) -> None:
        """A tool that left is at fault for everything it no longer did."""
        for one in self._contest.contestants:
            for operation in OPERATIONS:
                measurement = self.book.at(operation, one.kind.title)
                if one.out is not None and not measurement.samples and measurement.offered:
                    measurement.fault(one.out)


def _restore_by_checkout(one: Contestant) -> None:
    if isinstance(one.peer, ShadowGit):
        one.peer.restore_by_checkout(one.saved[FIRST])
