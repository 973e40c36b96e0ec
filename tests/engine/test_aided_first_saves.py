"""A first save that was helped by a second process is the one that it would have been alone."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.bootstrap import OpenWorkspace, holdfast_home, open_workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import BudgetReached
from holdfast.domain.ids import Digest
from holdfast.domain.intent import make_intent
from holdfast.domain.settings import make_settings
from holdfast.engine.check import run_checks
from holdfast.engine.discarding_writer import DiscardingWriter
from holdfast.engine.scan import aided_walk
from holdfast.engine.scan.backward_walk import BackwardWalker, Met
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.ports.progress import NoProgress
from holdfast.store import reading_process
from holdfast.store.local_filesystem import LocalFilesystem
from holdfast.store.objects import writer
from holdfast.store.reading_process import ReadingProcess
from tests.support.changing_trees import CHANGES, build
from tests.support.composition import SESSION, configure, scan_from_nothing
from tests.support.encrypted_stores import files_with, make_encrypted
from tests.support.hostile_trees import PIECES, fill, noise, prepare, wreck
from tests.support.tree_hash import describe, differences

pytestmark = pytest.mark.requirement("PF-2", "CP-1", "RL-5")

_OLD_ENOUGH_S = 0.03
_PATIENCE_S = 60


@pytest.fixture(autouse=True)
def _aided_from_the_first_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aided_walk, "_WORTH_AID_FILES", 1)
    monkeypatch.setattr(reading_process, "_processors", lambda: 2)


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Lets the second process read everything before the first goes on, and then does what the
    test has put into this list."""
    then: list[Callable[[], None]] = []
    begin = ReadingProcess.begin

    def begin_and_wait(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        begin(self, root_fd, started_ns)
        _read_all(self)
        while then:
            then.pop()()

    monkeypatch.setattr(ReadingProcess, "begin", begin_and_wait)
    return then


def _read_all(process: ReadingProcess) -> None:
    ready = select.poll()
    ready.register(process._output(), select.POLLIN)
    while not process._at_end:
        assert ready.poll(_PATIENCE_S * 1000), "the second process says nothing"
        process.receive()


@pytest.fixture
def adopted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The directories of which the second process had spoken when the first came to them."""
    seen: list[bytes] = []
    directory = ReadingProcess.directory

    def noted(self: ReadingProcess, path: bytes) -> bytes | None:
        told = directory(self, path)
        if told is not None:
            seen.append(path)
        return told

    monkeypatch.setattr(ReadingProcess, "directory", noted)
    return seen


@contextmanager
def _opened(root: Path) -> Iterator[OpenWorkspace]:
    with open_workspace(root, create=True) as opened:
        yield opened


def _save(opened: OpenWorkspace) -> Checkpoint:
    return opened.engine.save(SESSION, make_intent("why")).checkpoint


def _require_as_if_alone(opened: OpenWorkspace, saved: Checkpoint) -> None:
    """The tree and what was left out, and every byte of what the tree names."""
    vault = opened.engine.vault
    alone = scan_from_nothing(vault)
    left_out = {(skip.path, skip.describe()) for skip in alone.skipped}
    assert {(s.path, s.describe()) for s in opened.engine.skipped(saved)} == left_out
    assert saved.tree == alone.tree
    assert list(run_checks(vault, data=True, progress=NoProgress())) == []


class CountingStream(DiscardingWriter):
    """Counts the contents that it is given."""

    contents = 0

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        self.contents += 1
        return super().add(digest, data, similar_to=similar_to)


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
    threading.Event().wait(_OLD_ENOUGH_S)
    original = describe(root, holes=True)
    with _opened(root) as opened:
        saved = _save(opened)
        _require_as_if_alone(opened, saved)
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
    threading.Event().wait(_OLD_ENOUGH_S)
    ahead.append(lambda: change(inside))
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
        _require_as_if_alone(opened, _save(opened))
    assert adopted


def test_two_processes_meet_somewhere_and_miss_nothing(
    tmp_path: Path, adopted: list[bytes]
) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    threading.Event().wait(_OLD_ENOUGH_S)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))


@pytest.mark.parametrize("after_directories", [0, 1, 30])
def test_a_second_process_that_dies_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes], after_directories: int
) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    threading.Event().wait(_OLD_ENOUGH_S)
    begin, take = ReadingProcess.begin, ReadingProcess._take

    def begin_and_see_it_die(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        begin(self, root_fd, started_ns)
        _read_all(self)

    def take_until_it_dies(self: ReadingProcess, kind: bytes, first: bytes, second: bytes) -> None:
        if len(self._directories) < after_directories:
            take(self, kind, first, second)
        else:
            assert self._process is not None
            self._process.kill()

    monkeypatch.setattr(ReadingProcess, "begin", begin_and_see_it_die)
    monkeypatch.setattr(ReadingProcess, "_take", take_until_it_dies)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
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
    threading.Event().wait(_OLD_ENOUGH_S)
    received: list[int] = []
    take = ReadingProcess._take

    def measured(self: ReadingProcess, kind: bytes, first: bytes, second: bytes) -> None:
        received.append(len(second))
        take(self, kind, first, second)

    monkeypatch.setattr(ReadingProcess, "_take", measured)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
    database.close()
    assert adopted == [b"one"]
    assert 0 < sum(received) < 10_000


@pytest.mark.parametrize("suffix", ["-journal", "-shm", "-wal"])
def test_what_belongs_to_a_database_is_found_where_rules_would_leave_it_out(
    tmp_path: Path, ahead: list[Callable[[], None]], adopted: list[bytes], suffix: str
) -> None:
    """Without its journal, a database in the middle of a transaction is lost."""
    root = tmp_path / "project"
    fill(root / ".gitignore", b"*" + os.fsencode(suffix))
    fill(root / "first", b"so that the help begins here")
    fill(root / "one/inside/data", b"SQLite format 3\0" + bytes(4080))
    fill(root / f"one/inside/data{suffix}", b"how to take it back")
    threading.Event().wait(_OLD_ENOUGH_S)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
    assert b"one/inside" in adopted


def test_the_second_process_lists_the_uppermost_directory_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes]
) -> None:
    """With one position in it for both, each would miss what the other has just been told."""
    root = tmp_path / "project"
    fill(root / "first", b"so that the help begins here")
    fill(root / "one/file")
    begin = ReadingProcess.begin

    def begin_in_the_middle(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        with os.scandir(root_fd) as listed:
            next(listed)
            begin(self, root_fd, started_ns)
            _read_all(self)

    monkeypatch.setattr(ReadingProcess, "begin", begin_in_the_middle)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
    assert adopted == [b"one"]


@pytest.mark.requirement("ST-1")
def test_contents_that_came_long_ago_are_not_stored_again(
    tmp_path: Path, ahead: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PREPARE_AT_OBJECTS", 4)
    root = tmp_path / "project"
    for number in range(40):
        fill(root / f"a/{number:02}", noise(20_000, number))
        fill(root / f"b/{number:02}", noise(20_000, number))
        fill(root / f"c/{number:02}", noise(20_000, number))
    threading.Event().wait(_OLD_ENOUGH_S)
    monkeypatch.setattr(aided_walk, "_WORTH_AID_FILES", 41)  # when all contents are there
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
        assert opened.engine.vault.access.size_bytes() < 2 * 800_000


def test_the_second_process_stops_in_the_middle_of_a_directory(tmp_path: Path) -> None:
    """The first one waits for it, and has read the directory itself by then."""
    for number in range(10):
        fill(tmp_path / f"one/{number}")
    told: list[bytes] = []
    read = CountingStream()
    started_ns = time.time_ns()
    capture = FileCapture(LocalFilesystem(), read, started_ns)
    walker = BackwardWalker(
        LocalFilesystem(),
        capture,
        CapturePolicy(make_settings({}), tmp_path),
        started_ns,
        lambda path, state: told.append(path),
        lambda: read.contents >= 3,
    )
    root_fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(Met):
            walker.walk(root_fd, None, None)
    finally:
        os.close(root_fd)
    assert (read.contents, told) == (3, [])


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
    threading.Event().wait(_OLD_ENOUGH_S)
    with _opened(root) as opened:
        _require_as_if_alone(opened, _save(opened))
    assert adopted == [b"one"]
    home = holdfast_home(os.environ)
    assert list(files_with(home, b"words that nobody", b"at-first")) == []


@pytest.mark.requirement("ST-3")
def test_what_the_second_process_hands_over_counts_for_the_budget(
    tmp_path: Path, ahead: list[Callable[[], None]]
) -> None:
    root = tmp_path / "project"
    fill(root / "at-first", b"so that the help begins here")
    for number in range(40):
        fill(root / f"one/file{number}", noise(50_000, number))
    configure(root, budget=1_000_000)
    with _opened(root) as opened:
        with pytest.raises(BudgetReached):
            _save(opened)
        assert opened.engine.vault.objects.size_bytes() < 100_000
        shutil.rmtree(root / "one")
        _require_as_if_alone(opened, _save(opened))


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
    with _opened(root) as opened:
        with monkeypatch.context() as broken:
            broken.setattr(ReadingProcess, "finish", fail)
            with pytest.raises(KeyboardInterrupt):
                _save(opened)
        _require_as_if_alone(opened, _save(opened))
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
    with _opened(root) as opened:
        _save(opened)
        assert len(begun) == 1
        opened.engine._scanner._generation = None  # nothing is remembered
        opened.engine.vault.stat_cache.update("none", ())
        fill(root / "two/file")
        _save(opened)
    other = tmp_path / "other"
    fill(other / "one/file")
    with open_workspace(other, create=True, file_filter=lambda path: True) as opened:
        _save(opened)
    assert len(begun) == 1
    assert reading_process._can_be_started()
    monkeypatch.setattr(reading_process, "_processors", lambda: 1)
    assert not reading_process._can_be_started()
    monkeypatch.setattr(reading_process, "_processors", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/opt/editor")
    assert not reading_process._can_be_started()


def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    root = tmp_path / "project"
    _large_workspace(root)
    program = f"""
import os, sys
from holdfast.bootstrap import open_workspace
from holdfast.domain.errors import BudgetReached
from holdfast.domain.intent import make_intent
from holdfast.engine.scan import aided_walk
from holdfast.ports.progress import NoProgress
from holdfast.store import reading_process
from holdfast.store.objects import writer
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
            assert ended.poll(_PATIENCE_S * 1000), "it outlives its starter"
        finally:
            os.close(gone)
