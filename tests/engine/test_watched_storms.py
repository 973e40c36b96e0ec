"""Storms of random changes under watch, compared with a scan from nothing after every save."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.adapters.local.inotify import InotifyWatcher
from holdfast.adapters.local.system import SystemClock
from holdfast.adapters.local.watchfiles_watch import WatchfilesWatcher
from holdfast.ports.watcher import Watcher
from tests.support.composition import configure
from tests.support.hostile_trees import fill
from tests.support.tree_actions import TreeActions
from tests.support.watched_workspaces import Watched, watched

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.linux]

NAMES = (b"a", b"b", b"cache", b"\xff", b"x.log", b"sp ace\n", b".git", b"node_modules")
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)
contents = st.sampled_from([b"", b"one\n", b"two\n", b"x" * 3000])
RULES = (b"", b"*.log\n", b"cache/\n", b"b\n!a/b\n", b"/a\n")


class Storm(RuleBasedStateMachine):
    """What programs do to a tree, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()

    @initialize(paranoid=st.booleans(), include=st.sampled_from([[], ["x.log"], ["cache"]]))
    def begin(self, paranoid: bool, include: list[str]) -> None:
        # Hypothesis runs many examples within one test: each needs a home of its own.
        top = Path(tempfile.mkdtemp(prefix="storm-"))
        self.cleanup.callback(shutil.rmtree, top, ignore_errors=True)
        self.root = top / "workspace"
        self.root.mkdir()
        (top / "outside").mkdir()
        self.tree = TreeActions(self.root, top / "outside")
        configure(
            self.root,
            watch="paranoid" if paranoid else "on",
            include=include,
            max_manual_checkpoints=0,
        )
        self.one: Watched = self.cleanup.enter_context(
            watched(self.root, watcher=self.open_watcher())
        )
        self.one.save()

    def open_watcher(self) -> Watcher:
        return InotifyWatcher(SystemClock())

    @rule(path=paths, content=contents, append=st.booleans())
    def write(self, path: bytes, content: bytes, append: bool) -> None:
        self.tree.write(path, content, append=append)

    @rule(where=paths, rules=st.sampled_from(RULES), name=st.sampled_from([".gitignore"]))
    def write_rules(self, where: bytes, rules: bytes, name: str) -> None:
        directory = os.path.dirname(self.tree.at(where))
        if os.path.isdir(directory) and not os.path.islink(directory):
            fill(Path(os.fsdecode(directory)) / name, rules)

    @rule(source=paths, other=paths)
    def move(self, source: bytes, other: bytes) -> None:
        self.tree.move(source, other)

    @rule(path=paths)
    def move_out(self, path: bytes) -> None:
        self.tree.move_out(path)

    @rule(path=paths)
    def move_in(self, path: bytes) -> None:
        self.tree.move_in(path)

    @rule(name=st.sampled_from(NAMES), content=contents)
    def change_outside(self, name: bytes, content: bytes) -> None:
        self.tree.change_outside(name, content)

    @rule(path=paths)
    def remove(self, path: bytes) -> None:
        self.tree.remove(path)

    @rule(path=paths, mode=st.sampled_from([0o600, 0o644, 0o755, 0o700]))
    def change_mode(self, path: bytes, mode: int) -> None:
        self.tree.change_mode(path, mode)

    @rule(path=paths, other=paths)
    def symlink(self, path: bytes, other: bytes) -> None:
        self.tree.symlink(path, other)

    @rule(path=paths, other=paths)
    def hard_link(self, path: bytes, other: bytes) -> None:
        self.tree.hard_link(path, other)

    @rule()
    def save(self) -> None:
        expected = self.one.from_nothing()
        outcome = self.one.save()
        assert outcome.tree == expected[0]

    @rule()
    def look_without_keeping(self) -> None:
        self.one.engine.scan()

    @rule()
    def go_back(self) -> None:
        first = self.one.engine.resolve(self.one.save().session_id, "initial")
        # Ignored things may be in the way; that they stay is proven elsewhere.
        self.one.opened.restore(first.id, best_effort=True)

    @invariant()
    def the_hint_finds_what_a_scan_from_nothing_finds(self) -> None:
        if hasattr(self, "one"):
            assert self.one.seen() == self.one.from_nothing()
            assert self.one.status.differences == 0

    def teardown(self) -> None:
        self.cleanup.close()


TestStorm = Storm.TestCase


class StormElsewhere(Storm):
    """The same on systems that cannot prove what they tell."""

    def open_watcher(self) -> Watcher:
        return WatchfilesWatcher(SystemClock())


TestStormElsewhere = StormElsewhere.TestCase
