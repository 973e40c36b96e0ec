"""Every watcher keeps the contract of the port; what one cannot keep, it does not claim."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.adapters.local import watchfiles_watch
from holdfast.adapters.local.inotify import InotifyWatcher
from holdfast.adapters.local.system import SystemClock
from holdfast.adapters.local.watchfiles_watch import (
    UNPROVEN,
    WatchfilesWatch,
    WatchfilesWatcher,
)
from holdfast.api.automation import open_watcher
from holdfast.ports.watcher import NoWatcher, Watcher
from holdfast.testing.watcher_contract import TellingWatcherContract, WatcherContract, make_tree

pytestmark = pytest.mark.requirement("AU-6")


@pytest.mark.linux
class TestInotify(TellingWatcherContract):
    def open_watcher(self) -> Watcher:
        return InotifyWatcher(SystemClock())


class TestWatchfiles(TellingWatcherContract):
    def open_watcher(self) -> Watcher:
        return WatchfilesWatcher(SystemClock())


class TestNone(WatcherContract):
    def open_watcher(self) -> Watcher:
        return NoWatcher("for a reason")


def test_on_other_systems_changes_are_reported_and_nothing_relies_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    watcher = open_watcher()
    try:
        assert isinstance(watcher, WatchfilesWatcher)
        status = watcher.open(bytes(make_tree(tmp_path))).status()
        assert (status.doubt, status.off, status.unproven) == (UNPROVEN, False, True)
    finally:
        watcher.close()


def test_without_the_library_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    status = open_watcher().open(bytes(tmp_path)).status()
    assert status.off
    assert "pip install watchfiles" in str(status.doubt)


def test_watches_that_were_closed_are_not_kept(tmp_path: Path) -> None:
    watcher = WatchfilesWatcher(SystemClock())
    try:
        for _ in range(3):
            watcher.open(bytes(tmp_path)).close()
        watcher.open(bytes(tmp_path))
        assert len(watcher._watches) == 1
    finally:
        watcher.close()


def test_a_workspace_whose_name_the_library_cannot_take_is_off_and_says_so(tmp_path: Path) -> None:
    root = bytes(tmp_path) + b"/\xff"
    os.mkdir(root)
    happened = threading.Event()
    watcher = WatchfilesWatcher(SystemClock())
    try:
        watch = watcher.open(root, listener=happened.set)
        while not watch.status().off:
            assert happened.wait(60)
            happened.clear()
        assert watch.status().doubt
    finally:
        watcher.close()


def _failing(words: list[Any]) -> Any:
    """A library that says these words, one a call: a set, or an error that it raises."""

    def watch(*_: Any, stop_event: threading.Event, **__: Any) -> Iterator[set[tuple[int, str]]]:
        if not words:
            stop_event.wait()
            return
        word = words.pop(0)
        if isinstance(word, Exception):
            raise word
        yield word

    return SimpleNamespace(watch=watch)


def _until(watch: WatchfilesWatch, happened: threading.Event, *, failures: int) -> None:
    while watch.status().overflows < failures:
        assert happened.wait(60)
        happened.clear()


def test_a_library_that_fails_is_activity_and_is_restarted(tmp_path: Path) -> None:
    happened = threading.Event()
    library = _failing([RuntimeError("not UTF-8"), {(1, "a"), (2, "b")}])
    watch = WatchfilesWatch(library, SystemClock(), bytes(tmp_path), happened.set)
    try:
        _until(watch, happened, failures=1)
        while watch.activity().names < 3:
            assert happened.wait(60)
            happened.clear()
        assert not watch.status().off
    finally:
        watch.close()


@pytest.mark.parametrize("gone", [True, False])
def test_a_library_that_cannot_go_on_is_off_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    monkeypatch.setattr(watchfiles_watch, "_STEP_MS", 1)
    root = make_tree(tmp_path)
    happened = threading.Event()
    library = _failing([RuntimeError("out of order")] * 100)
    if gone:
        shutil.rmtree(root)
    watch = WatchfilesWatch(library, SystemClock(), bytes(root), happened.set)
    try:
        while not watch.status().off:
            assert happened.wait(60)
            happened.clear()
        assert "out of order" in str(watch.status().doubt)
        assert watch.activity().names > 0
        assert (watch.status().overflows == 1) == gone
    finally:
        watch.close()
