"""What a store takes after many checkpoints of small edits.

One author works on the tree; after every step each tool saves. Afterwards the stores are
measured, the reference once more after `git gc --aggressive`, and states from along the way are
read back and verified, so that a size is only compared if both sides still hold what they were
given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import edits, trees, verify
from bench.contest import Book, Contest, Contestant
from bench.measure import Unit
from bench.peers.contract import PeerKind
from bench.peers.shadow_git import ShadowGit

COLLECTED = "git gc --aggressive"
STATES_VERIFIED = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """The names under which one run's sizes are booked."""

    disk: str
    apparent: str


def named(steps: int) -> Sizes:
    """Names that say how many checkpoints the store holds."""
    return Sizes(f"store after {steps:,} edits", f"store after {steps:,} edits, file lengths")


def grow(
    base: Path, work: Path, kinds: Sequence[PeerKind], steps: int, *, collect: bool = False
) -> Book:
    """Let every tool save `steps` states of an edited tree and book the sizes of the stores."""
    book = Book()
    contest = Contest(base, work, kinds, book)
    try:
        contest.each(None, lambda one: one.peer.prepare(one.tree), contest.contestants)
        contest.each(None, lambda one: one.save("0", contest.expected), contest.contestants)
        _work(contest, steps)
        names = named(steps)
        for one in contest.contestants:
            _book_size(book, names, one, one.kind.title)
        if collect:
            for one in contest.contestants:
                if isinstance(one.peer, ShadowGit) and one.out is None:
                    one.peer.collect()
                    _book_size(book, names, one, COLLECTED)
        for one in contest.contestants:
            for name in list(one.saved):
                contest.prove(names.disk, name, one)
            for fault in book.at(names.disk, one.kind.title, Unit.BYTES).faults:
                book.at(names.apparent, one.kind.title, Unit.BYTES).fault(fault)
    finally:
        contest.close()
    return book


def _work(contest: Contest, steps: int) -> None:
    model = contest.work / "model"
    trees.copy(contest.base, model)
    author = edits.Author(model, trees.list_files(model), f"author {steps}")
    kept = {round(steps * part / (STATES_VERIFIED - 1)) for part in range(1, STATES_VERIFIED)}
    for number in range(1, steps + 1):
        changes = author.step()
        edits.apply(model, changes)
        contest.edit(changes, contest.contestants)
        if number in kept:
            keep = partial(Contestant.save, name=str(number), state=verify.fingerprint(model))
            contest.each(None, keep, contest.in_order(number))
        else:
            contest.each(None, lambda one: one.peer.save(), contest.in_order(number))


def _book_size(book: Book, names: Sizes, one: Contestant, title: str) -> None:
    for name in (names.disk, names.apparent):
        entry = book.at(name, title, Unit.BYTES)
        if one.out is not None:
            entry.fault(one.out)
    if one.out is None:
        size = one.peer.size()
        book.at(names.disk, title, Unit.BYTES).samples.append(size.disk_bytes)
        book.at(names.apparent, title, Unit.BYTES).samples.append(size.apparent_bytes)
