"""A first save that was helped by a second process is the one that it would have been alone."""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.local import reading_process
from holdfast.adapters.local.reading_process import ReadingProcess
from holdfast.bootstrap.locations import holdfast_home
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import BudgetReached
from holdfast.engine.scan.scanner import Scanner
from tests.support.aided_saves import (
    OLD_ENOUGH_S,
    PATIENCE_S,
    opened_new,
    read_all,
    read_until,
    require_as_if_alone,
    save,
)
from tests.support.changing_trees import CHANGES, build
from tests.support.composition import SESSION
from tests.support.encrypted_stores import files_with, make_encrypted
from tests.support.hostile_trees import PIECES, fill, noise, prepare, wreck
from tests.support.tree_hash import describe, differences

pytestmark = [
    pytest.mark.requirement("PF-2", "CP-1", "RL-5"),
    pytest.mark.usefixtures("aided_from_the_first_file"),
]


def _large_workspace(root: Path) -> None:
    """Large enough that two processes meet somewhere in it."""
    rng = random.Random(4)
    for number in range(400):
        depth = rng.randrange(1, 5)
        place = "/".join(f"d{rng.randrange(6)}" for _ in range(depth))
        fill(root / place / f"f{number}", noise(rng.randrange(0, 30_000), number))


def test_a_helped_first_save_brings_back_every_kind_of_file(
    tmp_path: Path, ahead: list[Callable[[], None]], adopted: list[bytes]
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    pieces = [(name, piece) for name, piece in PIECES.items() if name != "deep"]
    prepare(root, pieces)
    fill(root / "at-first", b"so that the help begins here")
    threading.Event().wait(OLD_ENOUGH_S)
    original = describe(root, holes=True)
    with opened_new(root) as opened:
        saved = save(opened)
        require_as_if_alone(opened, saved)
        wreck(root, pieces)
        opened.engine.restore(opened.engine.restore_request(SESSION, saved.id))
    assert {os.fsencode(name) for name, _ in pieces} <= set(adopted)
    assert differences(describe(root, holes=True), original) == []


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_after_the_second_process_had_read_it_is_found(
    tmp_path: Path,
    ahead: list[Callable[[], None]],
    adopted: list[bytes],
    change: Callable[[Path], None],
) -> None:
    root = tmp_path / "project"
    # Where the first process has not been when the second is done.
    inside = root / "later/inside"
    build(inside)
    fill(root / "first", b"so that the help begins here")
    threading.Event().wait(OLD_ENOUGH_S)
    ahead.append(lambda: change(inside))
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
        require_as_if_alone(opened, save(opened))
    assert adopted


def test_two_processes_meet_somewhere_and_miss_nothing(
    tmp_path: Path, adopted: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    threading.Event().wait(OLD_ENOUGH_S)
    begin = ReadingProcess.begin

    def begin_and_hear_of_it(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        begin(self, root_fd, started_ns)
        read_until(self, lambda: bool(self._directories))

    monkeypatch.setattr(ReadingProcess, "begin", begin_and_hear_of_it)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert adopted


@pytest.mark.parametrize("after_directories", [0, 1, 30])
def test_a_second_process_that_dies_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes], after_directories: int
) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    threading.Event().wait(OLD_ENOUGH_S)
    begin, take = ReadingProcess.begin, ReadingProcess._take

    def begin_and_see_it_die(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        begin(self, root_fd, started_ns)
        read_all(self)

    def take_until_it_dies(self: ReadingProcess, kind: bytes, first: bytes, second: bytes) -> None:
        if len(self._directories) < after_directories:
            take(self, kind, first, second)
        else:
            assert self._process is not None
            self._process.kill()

    monkeypatch.setattr(ReadingProcess, "begin", begin_and_see_it_die)
    monkeypatch.setattr(ReadingProcess, "_take", take_until_it_dies)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert bool(adopted) is (after_directories > 0)


def test_large_files_and_databases_are_read_by_one_process_only(
    tmp_path: Path,
    ahead: list[Callable[[], None]],
    adopted: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "project"
    fill(root / "first", b"so that the help begins here")
    fill(root / "one/large", noise(3_000_000))
    fill(root / "one/small", b"small")
    database = sqlite3.connect(root / "one/data")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE t (a)")
    threading.Event().wait(OLD_ENOUGH_S)
    received: list[int] = []
    take = ReadingProcess._take

    def measured(self: ReadingProcess, kind: bytes, first: bytes, second: bytes) -> None:
        received.append(len(second))
        take(self, kind, first, second)

    monkeypatch.setattr(ReadingProcess, "_take", measured)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    database.close()
    assert adopted == [b"one"]
    assert 0 < sum(received) < 10_000


@pytest.mark.requirement("ST-6")
def test_what_the_second_process_hands_over_is_sealed_in_an_encrypted_store(
    tmp_path: Path,
    ahead: list[Callable[[], None]],
    adopted: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, key = tmp_path / "project", tmp_path / "key"
    fill(root / "at-first", b"so that the help begins here")
    fill(root / "one/plain", b"words that nobody else may read")
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    make_encrypted(root, key)
    threading.Event().wait(OLD_ENOUGH_S)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert adopted == [b"one"]
    home = holdfast_home(os.environ)
    assert list(files_with(home, b"words that nobody", b"at-first")) == []


@pytest.mark.requirement("ST-3")
def test_what_the_second_process_hands_over_counts_for_what_a_save_may_store(
    tmp_path: Path, ahead: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    fill(root / "at-first", b"so that the help begins here")
    for number in range(40):
        fill(root / f"one/file{number}", noise(50_000, number))
    # As if they had grown since they were measured.
    monkeypatch.setattr("holdfast.engine.save.budget._measure", lambda *_: [10])
    monkeypatch.setenv("HOLDFAST_BUDGET", "1MB")
    refused: list[BudgetReached] = []
    scan = Scanner.scan

    def noted(*given: Any, **named: Any) -> Any:
        try:
            return scan(*given, **named)
        except BudgetReached as error:
            refused.append(error)
            raise

    monkeypatch.setattr(Scanner, "scan", noted)
    with opened_new(root) as opened:
        outcome = save(opened)
        assert len(refused) == 1
        assert outcome.partial
        assert opened.engine.vault.objects.size_bytes() < 1_000_000


def test_nothing_is_left_of_the_second_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    started: list[subprocess.Popen[bytes]] = []
    close = ReadingProcess.close

    def noted(self: ReadingProcess) -> None:
        if self._process is not None:
            started.append(self._process)
        close(self)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReadingProcess, "close", noted)
    with opened_new(root) as opened:
        with monkeypatch.context() as broken:
            broken.setattr(ReadingProcess, "finish", fail)
            with pytest.raises(KeyboardInterrupt):
                save(opened)
        require_as_if_alone(opened, save(opened))
    assert started
    assert all(process.returncode is not None for process in started)


def test_help_is_had_only_where_it_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes]
) -> None:
    """Not beside contents that are stored already, with a filter, on one processor, or in a program
    that carries its own Python."""
    begun: list[ReadingProcess] = []
    monkeypatch.setattr(ReadingProcess, "begin", lambda self, *_: begun.append(self))
    root = tmp_path / "project"
    fill(root / "one/file")
    with opened_new(root) as opened:
        save(opened)
        assert len(begun) == 1
        opened.engine.scanner._generation = None  # nothing is remembered
        opened.engine.vault.stat_cache.update("none", ())
        fill(root / "two/file")
        save(opened)
    other = tmp_path / "other"
    fill(other / "one/file")
    with open_workspace(other, create=True, file_filter=lambda path: True) as opened:
        save(opened)
    assert len(begun) == 1
    assert reading_process._can_be_started()
    monkeypatch.setattr(reading_process, "_processors", lambda: 1)
    assert not reading_process._can_be_started()
    monkeypatch.setattr(reading_process, "_processors", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/opt/editor")
    assert not reading_process._can_be_started()


@pytest.mark.linux
def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    program = f"""
import os, sys
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import BudgetReached
from holdfast.domain.intent import make_intent
from holdfast.engine.scan import aided_walk
from holdfast.ports.progress import NoProgress
from holdfast.adapters.local import reading_process
from holdfast.adapters.local.objects import writer
aided_walk._WORTH_AID_FILES = 1
reading_process._processors = lambda: 2
begin = reading_process.ReadingProcess.begin
def begin_and_wait(self, *given):
    begin(self, *given)
    print(self._process.pid, flush=True)
    sys.stdin.read()
reading_process.ReadingProcess.begin = begin_and_wait
with open_workspace(__import__("pathlib").Path({str(root)!r}), create=True) as opened:
    opened.engine.save("s", make_intent("why"))
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        second = int(first.stdout.readline())
        gone = os.pidfd_open(second)
        try:
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            ended = select.poll()
            ended.register(gone, select.POLLIN)
            assert ended.poll(PATIENCE_S * 1000), "it outlives its starter"
        finally:
            os.close(gone)
