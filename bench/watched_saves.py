"""Many saves of a watched workspace in a row: what most of them take, and what the slowest do.

Each save follows a change of five files. The first few go uncounted; in the end the last checkpoint
is restored and verified.
"""

from pathlib import Path

from bench import edits, trees, verify
from bench.contest import Book
from bench.measure import Measurement, timed
from bench.operations import FILES_CHANGED
from bench.peers import WATCHED
from bench.peers.holdfast_watched import HoldfastWatched
from bench.processes import Failed

P50 = "p50 of watched saves in a row, 5 files"
P99 = "p99 of the same"
_UNCOUNTED = 5


def measure(base: Path, work: Path, saves: int) -> Book:
    """The two figures, each booked as the one sample that it is."""
    tree, store = work / "watched-tree", work / "watched-store"
    trees.copy(base, tree)
    expected = verify.fingerprint(base)
    taken = Measurement()
    peer = HoldfastWatched(store)
    try:
        peer.prepare(tree)
        saved = [peer.save()]
        for number in range(_UNCOUNTED + saves):
            changes = edits.burst(tree, expected, FILES_CHANGED, f"watched {number}")
            edits.apply(tree, changes)
            expected = edits.after(expected, changes)
            seconds = timed(lambda: saved.append(peer.save()))
            if number >= _UNCOUNTED:
                taken.samples.append(seconds)
        wrong = verify.difference(expected, peer.contents(saved[-1], work / "scratch"))
        if wrong:
            taken.fault(f"saved wrongly: {wrong}")
    except Failed as error:
        taken.fault(str(error))
    finally:
        peer.close()
    book = Book()
    for name, percent in ((P50, 50), (P99, 99)):
        page = book.at(name, WATCHED.title)
        page.samples += [taken.percentile(percent)] if taken.samples else []
        page.faults += taken.faults
    return book
