"""A workspace beside precious places, whose directories turn into links to them at one call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.domain.errors import HoldfastError
from tests.support.composition import Composed, composed
from tests.support.tree_hash import debris, describe, differences
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.torture.scenes import allow_any_number, remove_tree, write
from tests.torture.sentinel import Sentinel, Trace

RENEWED_AFTER = 200
"""Every case adds to the history; a new store keeps cases quick."""

_FILES = 4
_FIRST_GUESS_CALLS = 120


@dataclass(slots=True)
class Place:
    """A workspace between places that are nobody's business: one outside, one of the same shape
    behind the link that takes the workspace's own place."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def build(self) -> None:
        remove_tree(self.root)
        for tree in (self.project, self.outside):
            content = b"mine" if tree is self.project else b"precious"
            for number in range(_FILES):
                write(tree / f"{number}", content, 0o644)
                write(tree / f"sub/{number}", content, 0o644)
                write(tree / f"sub/deep/{number}", content, 0o644)
        write(self.outside / ".holdfast/kept", b"precious")
        write(self.outside / "deep/.holdfast-staging-x/kept", b"precious")
        (self.root / "home").mkdir()
        self.monkeypatch.setenv("HOLDFAST_HOME", str(self.root / "home"))

    def wreck(self) -> None:
        for number in range(_FILES):
            write(self.project / f"sub/deep/{number}", b"changed")
            (self.project / f"sub/{number}").unlink()
        (self.project / "0").chmod(0o600)
        write(self.project / "sub/new/file", b"new")
        (self.project / "sub/deep").chmod(0o555)


class Swap:
    """One directory for a link to the outside, and back."""

    def __init__(self, directory: Path, outside: Path) -> None:
        self._directory = directory
        self._aside = directory.with_name(directory.name + ".aside")
        self._outside = outside

    def do(self) -> bool:
        if not self._directory.is_dir() or self._directory.is_symlink() or self._aside.exists():
            return False
        # An undo may have brought back a link from an earlier swap: nothing is swapped behind it.
        if self._directory.resolve() != self._directory:
            return False
        self._directory.rename(self._aside)
        self._directory.symlink_to(self._outside)
        return True

    def take_back(self) -> None:
        """Whatever came of it meanwhile: the directory that was there stands there again."""
        if self._directory.parent.resolve() != self._directory.parent:
            return
        if self._directory.is_symlink():
            self._directory.unlink()
        if not self._aside.exists():
            return
        if self._directory.exists():
            remove_tree(self._aside)
        else:
            self._aside.rename(self._directory)


class SwappedWorkspace:
    """A workspace with two checkpoints, open through a file system that can be swapped under."""

    def __init__(self, place: Place) -> None:
        self._place = place
        place.build()
        allow_any_number(place.project)
        self.trace = Trace(place.project, place.root / "project.aside", place.root / "home")
        self._at = 0
        self._until = 0
        self._swap: Swap | None = None
        self.swaps = 0
        self._watch = WatchedFilesystem(before=self._before)
        self._stack = contextlib.ExitStack()
        self.opened: Composed = self._stack.enter_context(
            composed(place.project, fs=self._watch.as_port())
        )
        self.good = self.opened.save("good").id
        self.states = {self.good: describe(place.project)}
        place.wreck()
        self.bad = self.opened.save("bad").id
        self.states[self.bad] = describe(place.project)
        self.sentinel = Sentinel(place.outside, beside=place.root)
        self.longest = _FIRST_GUESS_CALLS

    def close(self) -> None:
        self._stack.close()

    def _before(self, call: Call) -> None:
        if self._swap is not None and self._watch.calls == self._at:
            self.swaps += self._swap.do()
        if self._swap is not None and self._watch.calls == self._until:
            self._swap.take_back()
        self.trace.look(call)

    def run(self, act: Callable[[], object], swap: Swap, at: int, length: int) -> None:
        self._watch.calls = 0
        self._swap, self._at, self._until = swap, at, at + length
        try:
            with contextlib.suppress(HoldfastError):
                act()
        finally:
            self._swap = None
            swap.take_back()
        self.longest = max(self.longest // 2, self._watch.calls)

    def wrong(self) -> list[str]:
        found = self.sentinel.changes()
        found += [f"would have touched {path}" for path in self.trace.outside]
        return found

    def prove(self) -> list[str]:
        """Both checkpoints still come back exactly, and nothing is left behind."""
        found: list[str] = []
        for checkpoint, state in self.states.items():
            self.opened.restore(checkpoint)
            found += differences(describe(self._place.project), state)
        return found + [f"left behind: {name!r}" for name in debris(self._place.project)]
