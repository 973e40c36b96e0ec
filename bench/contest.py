"""Tools taking turns at the same work, each on its own copy of one tree, and what came of it.

A contestant has a copy of the tree and a store of its own. Every operation is done by all of them
before the next begins, in an order that rotates and reverses from round to round, so that no tool
always profits from what ran before.

Guarantees: a tool that fails is recorded and left out, it does not stop the others; after a
restore the copy is compared with the expected tree, and put right by plain copying when the tool
did not do it.
"""

import math
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import edits, trees, verify
from bench.measure import Measurement, Unit, timed
from bench.peers.contract import Peer, PeerKind, Ref
from bench.processes import Failed, NotOffered, remove
from bench.verify import Entry


@dataclass(slots=True)
class Book:
    """Everything measured on one tree: operation → tool → measurement."""

    pages: defaultdict[str, dict[str, Measurement]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def at(self, operation: str, title: str, unit: Unit = Unit.SECONDS) -> Measurement:
        return self.pages[operation].setdefault(title, Measurement(unit))


@dataclass(slots=True)
class Contestant:
    """One tool, its copy of the tree, its store."""

    kind: PeerKind
    tree: Path
    store: Path
    peer: Peer
    saved: dict[str, Ref] = field(default_factory=dict)
    states: dict[str, Mapping[bytes, Entry]] = field(default_factory=dict)
    answer: frozenset[bytes] | None = None
    spent_s: float = 0.0
    slow: set[tuple[str | None, str]] = field(default_factory=set)
    rounds: int = 0
    out: str | None = None

    def save(self, name: str, state: Mapping[bytes, Entry]) -> None:
        """Save, and remember under `name` what was saved and what it should hold."""
        self.saved[name] = self.peer.save()
        self.states[name] = state

    def compare(self, before: str, after: str) -> None:
        """Ask for the paths that differ between two saves; the answer is kept for judging."""
        self.answer = None
        self.answer = self.peer.changed_paths(self.saved[before], self.saved[after])

    def wrong_answer(
        self, before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]
    ) -> str | None:
        """What is wrong with the last answer; naming directories is left to the tool."""
        if self.answer is None:
            return None
        files, directories = verify.changed_paths(before, after)
        parents = {os.path.dirname(path) for path in files}
        missed = len(files - self.answer)
        invented = len(self.answer - files - directories - parents)
        return f"{missed} missed, {invented} invented" if missed or invented else None


class Contest:
    """The contestants on one tree, and the book of what they did."""

    def __init__(
        self,
        base: Path,
        work: Path,
        kinds: Sequence[PeerKind],
        book: Book,
        patience_s: float = math.inf,
    ) -> None:
        self.base = base
        self.patience_s = patience_s
        self.book = book
        self.expected = verify.fingerprint(base)
        self.work = work
        work.mkdir()
        self.contestants = [self._enter(kind) for kind in kinds]

    def _enter(self, kind: PeerKind) -> Contestant:
        tree, store = self.work / f"tree-{kind.key}", self.work / f"store-{kind.key}"
        trees.copy(self.base, tree)
        store.mkdir()
        return Contestant(kind, tree, store, kind.make(store))

    def in_order(self, number: int) -> list[Contestant]:
        """Those still taking part, first another one each round, backwards every other round."""
        present = [one for one in self.contestants if one.out is None]
        if not present:
            return []
        turn = number % len(present)
        order = present[turn:] + present[:turn]
        return order[::-1] if number % 2 else order

    def each(
        self,
        operation: str | None,
        action: Callable[[Contestant], object],
        among: Iterable[Contestant],
        title: str | None = None,
    ) -> list[Contestant]:
        """Let all `among` do `action`, timed under `operation` if that has a name.

        Returns those who did; what took one of them longer than patience allows is not repeated.
        """
        did = []
        for one in among:
            line = (operation, title or one.kind.title)
            if one.out is not None or line in one.slow:
                continue
            started = time.perf_counter()
            try:
                elapsed_s = timed(partial(action, one))
            except NotOffered:
                if operation is not None:
                    self.book.at(operation, one.kind.title).offered = False
                continue
            except Exception as error:  # A tool may fail in any way; the others go on.
                self._leave(one, operation, error)
                continue
            finally:
                one.spent_s += time.perf_counter() - started
            did.append(one)
            if operation is not None:
                self.book.at(operation, title or one.kind.title).samples.append(elapsed_s)
                if elapsed_s > self.patience_s:
                    one.slow.add(line)
        return did

    def _leave(self, one: Contestant, operation: str | None, error: Exception) -> None:
        said = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
        one.out = said.splitlines()[0] if said else type(error).__name__
        if operation is not None:
            self.fault(operation, one, one.out)

    def fault(self, operation: str, one: Contestant, what: str) -> None:
        """Put on record that a tool did not do this operation's work."""
        self.book.at(operation, one.kind.title).fault(what)

    def check(
        self, operation: str, one: Contestant, title: str | None = None, *, restored: bool = True
    ) -> None:
        """The tree should be in the first state: record what is wrong if it was to be restored.

        Either way it is put right.
        """
        if one.out is not None:
            return
        found = verify.fingerprint(one.tree, one.kind.own_names)
        wrong = verify.difference(self.expected, found)
        if wrong:
            if restored:
                self.book.at(operation, title or one.kind.title).fault(wrong)
            verify.mend(one.tree, self.base, self.expected, found)

    def fresh(self, one: Contestant) -> None:
        """Forget everything the tool has stored and begin with an empty store."""
        one.peer.close()
        shutil.rmtree(one.store)
        one.store.mkdir()
        for name in one.kind.own_names:
            shutil.rmtree(one.tree / name.decode(), ignore_errors=True)
        one.peer = one.kind.make(one.store)

    def edit(self, changes: Sequence[edits.FileEdit], among: Iterable[Contestant]) -> None:
        """Make the same edits in every copy."""
        for one in among:
            if one.out is None:
                edits.apply(one.tree, changes)

    def prove(self, operation: str, name: str, one: Contestant) -> None:
        """Read back what was saved under `name`; if that is wrong, the save is at fault."""
        if name not in one.saved or one.out is not None:
            return
        place = self.work / "proof"
        place.mkdir(mode=0o755)
        try:
            found = one.peer.contents(one.saved[name], place)
            wrong = verify.difference(one.states[name], found)
        except Exception as error:  # As in `each`.
            wrong = str(error)
        finally:
            remove(place)
        if wrong:
            self.fault(operation, one, f"saved wrongly: {wrong}")

    def close(self) -> None:
        """End every tool and remove the copies and stores."""
        for one in self.contestants:
            one.peer.close()
        remove(self.work)
