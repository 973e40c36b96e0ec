"""Changes that hide: the same size in the same clock tick, and writers that never stop (RL-5)."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.sqlite_files import HEADER
from holdfast.engine.restore.plan import read_report
from holdfast.engine.scan import file_capture
from holdfast.engine.scan.stable_read import read_stably, read_whole
from holdfast.engine.stored_objects import list_entries
from tests.support.composition import SteppedClock, composed, configure
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.torture.scenes import remove_tree

pytestmark = [pytest.mark.requirement("RL-5"), pytest.mark.on_disk]

REWRITES = 250


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def _content(session: SessionCheckpointer, checkpoint: str, path: str = "file") -> bytes:
    return get_snapshot(session, checkpoint).artifact(path).read_bytes()


def test_a_rewrite_of_the_same_size_right_after_a_save_is_never_missed(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    file = fill(workspace / "file", b"%06d" % 0)
    fill(workspace / "other", b"never changes")
    with SessionCheckpointer(workspace, "s") as session:
        missed = []
        for number in range(REWRITES):
            with file.open("r+b") as opened:
                opened.write(b"%06d" % number)
            if _content(session, session.checkpoint("why")) != b"%06d" % number:
                missed.append(number)
    assert missed == []


def test_a_rewrite_with_its_old_times_put_back_is_never_missed(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    file = fill(workspace / "file", b"%06d" % 0)
    os.utime(file, ns=(10**18, 10**18))
    with SessionCheckpointer(workspace, "s") as session:
        missed = []
        for number in range(REWRITES):
            with file.open("r+b") as opened:
                opened.write(b"%06d" % number)
            os.utime(file, ns=(10**18, 10**18))
            if _content(session, session.checkpoint("why")) != b"%06d" % number:
                missed.append(number)
    assert missed == []


def test_a_file_replaced_by_another_of_the_same_size_is_never_missed(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    fill(workspace / "dir/file", b"%06d" % 0)
    with SessionCheckpointer(workspace, "s") as session:
        missed = []
        for number in range(REWRITES // 2):
            fill(workspace / "dir/new", b"%06d" % number).rename(workspace / "dir/file")
            if _content(session, session.checkpoint("why"), "dir/file") != b"%06d" % number:
                missed.append(number)
    assert missed == []


def test_a_file_added_in_the_tick_of_a_save_is_never_missed(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(REWRITES // 2):
            fill(workspace / f"dir/{number}", b"")
            assert session.save_checkpoint("why").checkpoint.files == number + 1


def test_a_rewrite_is_found_by_a_process_that_knows_only_the_cache(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    file = fill(workspace / "file", b"%06d" % 0)
    for number in range(40):
        with SessionCheckpointer(workspace, "s") as session:
            session.checkpoint("why")
        with file.open("r+b") as opened:
            opened.write(b"%06d" % number)
        with SessionCheckpointer(workspace, "s") as session:
            assert _content(session, session.checkpoint("why")) == b"%06d" % number


def test_a_file_rewritten_all_the_time_is_stored_as_one_version_or_marked(workspace: Path) -> None:
    size = 300_000
    file = fill(workspace / "file", b"a" * size)
    stop = threading.Event()

    def rewrite() -> None:
        with file.open("r+b", buffering=0) as opened:
            while not stop.is_set():
                for letter in b"abcdefgh":
                    opened.seek(0)
                    opened.write(bytes([letter]) * size)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        with SessionCheckpointer(workspace, "s") as session:
            for _ in range(40):
                outcome = session.save_checkpoint("why")
                content = _content(session, outcome.checkpoint.id)
                unstable = [s for s in outcome.skipped if s.reason is SkipReason.UNSTABLE]
                assert len(set(content)) == 1 or unstable
                assert bool(unstable) == outcome.checkpoint.partial
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("times", "stable"), [(1, True), (2, True), (3, False), (50, False)])
def test_a_file_that_changes_while_it_is_read_is_read_again_and_then_marked(
    workspace: Path, times: int, stable: bool
) -> None:
    file = fill(workspace / "file", b"version 00")
    written = 0

    def write(call: Call) -> None:
        nonlocal written
        if call.member == "read" and written < times:
            written += 1
            file.write_bytes(b"version %02d" % written)
            os.utime(file, ns=(written, written))

    fs = WatchedFilesystem(after=write)
    with composed(workspace, fs=fs.as_port()) as opened:
        checkpoint = opened.save()
        reasons = [s.reason for s in read_report(opened.engine.vault, checkpoint)]
    assert (SkipReason.UNSTABLE not in reasons) == stable
    assert checkpoint.partial != stable


@pytest.mark.parametrize(("times", "stable"), [(1, True), (50, False)])
def test_a_file_that_changes_through_a_mapping_while_it_is_read_is_no_mixture(
    workspace: Path, times: int, stable: bool
) -> None:
    """Such writes change no times, and the last time that changed lies some seconds back."""
    size = 9_000_000
    file = fill(workspace / "file", b"a" * size)
    written = 0
    with file.open("r+b") as opened_file, mmap.mmap(opened_file.fileno(), size) as mapping:
        mapping[0] = mapping[size - 1] = ord("a")  # these pages are dirty, and the times are set

        def write(call: Call) -> None:
            nonlocal written
            if call.member == "read" and written < times:
                written += 1
                mapping[0] = mapping[size - 1] = ord("a") + written

        fs = WatchedFilesystem(after=write)
        later = SteppedClock(time.time_ns() + 5_000_000_000)
        with composed(workspace, fs=fs.as_port(), clock=later) as opened:
            checkpoint = opened.save()
            reasons = [s.reason for s in read_report(opened.engine.vault, checkpoint)]
    assert (SkipReason.UNSTABLE not in reasons) == stable
    with SessionCheckpointer(workspace, "s") as session:
        content = _content(session, checkpoint.id)
    assert not stable or content[0] == content[-1] == ord("b")


def test_a_file_that_grows_past_the_threshold_while_it_is_read_is_kept_whole(
    workspace: Path,
) -> None:
    file = fill(workspace / "file", b"small")
    large = os.urandom(3_000_000)
    grown = False

    def grow(call: Call) -> None:
        nonlocal grown
        if call.member == "open" and b"file" in call.names() and not grown:
            grown = True
            file.write_bytes(large)

    fs = WatchedFilesystem(after=grow)
    with composed(workspace, fs=fs.as_port()) as opened:
        made = opened.save()
    file.unlink()
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(made.id)
    assert file.read_bytes() == large


def test_a_file_that_grows_as_fast_as_it_is_read_is_not_followed_for_ever(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_capture, "_MOST_GROWTH_BYTES", 3_000_000)
    file = fill(workspace / "log", os.urandom(2_000_000))
    appended, most = 0, 100

    def grow(call: Call) -> None:
        nonlocal appended
        if call.member == "read" and file.stat().st_ino == os.fstat(call.arguments[0]).st_ino:
            appended += 1
            if appended < most:
                with file.open("ab") as log:
                    log.write(os.urandom(1_000_000))

    fs = WatchedFilesystem(after=grow)
    with composed(workspace, fs=fs.as_port()) as opened:
        made = opened.save()
        reasons = [s.reason for s in read_report(opened.engine.vault, made)]
    assert appended < most
    assert SkipReason.UNSTABLE in reasons
    with SessionCheckpointer(workspace, "s") as session:
        saved = _content(session, made.id, "log")
    assert len(saved) >= 2_000_000
    assert file.read_bytes().startswith(saved)


def test_a_directory_that_becomes_a_file_during_the_scan_is_taken_as_one_of_them(
    workspace: Path,
) -> None:
    fill(workspace / "thing/inner", b"below")
    swapped = False

    def swap(call: Call) -> None:
        nonlocal swapped
        if call.member == "stat" and b"thing" in call.names() and not swapped:
            swapped = True
            (workspace / "thing").rename(workspace / "aside")
            fill(workspace / "thing", b"a file now")

    fs = WatchedFilesystem(after=swap)
    with composed(workspace, fs=fs.as_port()) as opened:
        made = opened.save()
    with SessionCheckpointer(workspace, "s") as session:
        assert ("thing" in dict(get_snapshot(session, made.id).manifest)) or made.partial


@pytest.mark.parametrize("keeps_changing", [False, True])
@pytest.mark.parametrize("name", ["data.db", "data.db-wal"])
def test_part_of_a_database_that_becomes_a_directory_at_any_look_leaves_a_readable_state(
    workspace: Path, tmp_path: Path, name: str, keeps_changing: bool
) -> None:
    """A database is read with its log: each of the two is looked at before its own turn."""
    part, aside = fill(workspace / name, b""), tmp_path / "aside"
    looks = swap_at = 0

    def swap(call: Call) -> None:
        nonlocal looks
        if call.member != "stat" or name.encode() not in call.names():
            return
        looks += 1
        if looks == swap_at or (keeps_changing and looks > swap_at):
            if part.is_dir():
                part.rmdir()
                aside.rename(part)
            else:
                part.rename(aside)
                part.mkdir()

    for swap_at in range(1, 40):
        remove_tree(workspace)
        fill(workspace / "data.db", HEADER + bytes(4080))
        fill(workspace / "data.db-wal", b"a log")
        looks = 0
        with composed(workspace, fs=WatchedFilesystem(before=swap).as_port()) as opened:
            made = opened.save()
            captured = {p for p, _ in list_entries(opened.engine.vault.load_tree, made.tree, b"")}
            said = {note.path for note in read_report(opened.engine.vault, made)}
        assert b"data.db" in captured | said
        if looks < swap_at:
            break
    else:
        pytest.fail("the looks at a name have no end")


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def mapped(workspace: Path) -> Iterator[mmap.mmap]:
    """A file that a program writes to through memory, all of whose pages are dirty."""
    with fill(workspace / "file", b"a" * 100_000).open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 100_000)
    mapping[:] = b"b" * 100_000
    yield mapping
    mapping.close()


def _notices_mapped_writes(directory: Path) -> bool:
    """Whether the file system changes times for a write to a page that it had written out."""
    with fill(directory / "probe", b"a" * 10_000).open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 10_000)
        mapping[:] = b"b" * 10_000
        os.fsync(file.fileno())
        before = os.fstat(file.fileno()).st_ctime_ns
        mapping[5_000:5_001] = b"c"
        noticed = os.fstat(file.fileno()).st_ctime_ns != before
        mapping.close()
    return noticed


def test_a_mapped_file_that_comes_back_to_the_same_mixture_is_not_taken_for_one_state(
    workspace: Path, mapped: mmap.mmap
) -> None:
    def read_while_it_changes(fd: int, size: int) -> bytes:
        mapped[:] = b"c" * size
        first = os.pread(fd, size // 2, 0)
        mapped[:] = b"d" * size
        return first + os.pread(fd, size - size // 2, size // 2)

    long_after_ns = time.time_ns() + 10**12
    with _opened(workspace) as dir_fd:
        fs = LocalFilesystem()
        read = read_stably(fs, dir_fd, b"file", read_while_it_changes, started_ns=long_after_ns)
    assert read.has_writer
    assert read.stable is not _notices_mapped_writes(workspace)


def test_writes_through_a_mapping_are_made_to_show_before_the_first_read(
    workspace: Path, mapped: mmap.mmap
) -> None:
    members: list[str] = []
    fs = WatchedFilesystem(before=lambda call: members.append(call.member)).as_port()
    long_after_ns = time.time_ns() + 10**12
    with _opened(workspace) as dir_fd:
        read = read_stably(fs, dir_fd, b"file", partial(read_whole, fs), started_ns=long_after_ns)
    assert read.stable
    assert members.index("expose_mapped_writes") < members.index("read")
    assert members.count("read") == 3
