"""One writer at a time: threads, processes, a holder that hangs, and one that dies."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import Busy, StoreDamaged, StoreMissing, StoreReadOnly
from tests.support.read_only import seen_read_only
from tests.support.real_mounts import can_mount

pytestmark = pytest.mark.requirement("CP-8")

LONG_ENOUGH_S = 60.0

HOLD = """
import sys
from pathlib import Path
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
with StoreLock(Path(sys.argv[1]), SystemClock(), purpose="a test's child").hold(60):
    print("held", flush=True)
    sys.stdin.read()
"""

WORK = """
import sys, select
from pathlib import Path
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
with StoreLock(Path(sys.argv[1]), SystemClock(), purpose="a test's child").hold(60):
    print("held", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        Path(sys.argv[1] + ".work").write_bytes(bytes(1000))
"""

COUNT = """
import sys
from pathlib import Path
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
lock = StoreLock(Path(sys.argv[1]), SystemClock(), purpose="counting")
counter = Path(sys.argv[2])
for _ in range(int(sys.argv[3])):
    with lock.hold(60):
        counter.write_text(str(int(counter.read_text()) + 1))
"""

FORK = """
import os, sys
from pathlib import Path
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
lock = StoreLock(Path(sys.argv[1]), SystemClock(), purpose="parent")
to_child, from_parent = os.pipe()
with lock.hold(0):
    child = os.fork()
    if child == 0:
        os.close(from_parent)
        os.read(to_child, 1)
        os._exit(0)
with StoreLock(Path(sys.argv[1]), SystemClock(), purpose="next").hold(0):
    print("free")
os.close(from_parent)
os.waitpid(child, 0)
"""

FULL_DISK = """
import resource, sys
from pathlib import Path
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with StoreLock(Path(sys.argv[1]), SystemClock(), purpose="no room").hold(0):
    sys.exit(7)
"""


def make_lock(path: Path, purpose: str = "a test") -> StoreLock:
    return StoreLock(path, SystemClock(), purpose=purpose)


@contextmanager
def held_by_another_process(path: Path, program: str = HOLD) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child
        finally:
            child.kill()


def test_the_thread_that_holds_it_may_take_it_again(tmp_path: Path) -> None:
    lock = make_lock(tmp_path / "lock")
    with lock.hold(0):
        with lock.hold(0), lock.hold(0):
            pass
        with pytest.raises(Busy), make_lock(tmp_path / "lock").hold(0):
            raise AssertionError
    with make_lock(tmp_path / "lock").hold(0):
        pass


def test_a_store_that_was_moved_away_is_named_as_missing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    lock = make_lock(store / "lock")
    with lock.hold(0):
        pass
    store.rename(tmp_path / "away")
    missing = pytest.raises(StoreMissing, match=f"the store is missing: {re.escape(str(store))}")
    with missing as error, lock.hold(0):
        raise AssertionError
    assert "restore that" in (error.value.hint or "")
    assert not store.exists()


def test_another_thread_is_turned_away_in_time(tmp_path: Path) -> None:
    lock = make_lock(tmp_path / "lock")

    def try_it() -> None:
        with lock.hold(0):
            raise AssertionError

    with lock.hold(0), ThreadPoolExecutor(1) as pool, pytest.raises(Busy, match="another thread"):
        pool.submit(try_it).result()


@pytest.mark.parametrize("shared", [True, False], ids=["one lock", "a lock each"])
def test_a_waiting_thread_goes_on_when_the_holder_lets_go(tmp_path: Path, shared: bool) -> None:
    lock = make_lock(tmp_path / "lock")
    other = lock if shared else make_lock(tmp_path / "lock")
    order: list[str] = []
    starting = threading.Event()

    def wait_for_it() -> None:
        starting.set()
        with other.hold(LONG_ENOUGH_S):
            order.append("waiter")

    with ThreadPoolExecutor(1) as pool:
        with lock.hold(0):
            waiting = pool.submit(wait_for_it)
            assert starting.wait(LONG_ENOUGH_S)
            order.append("holder")
        waiting.result()
    assert order == ["holder", "waiter"]


def test_an_exception_inside_lets_go(tmp_path: Path) -> None:
    lock = make_lock(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), lock.hold(0):
        raise ZeroDivisionError
    with make_lock(tmp_path / "lock").hold(0), pytest.raises(Busy), lock.hold(0):
        raise AssertionError
    with lock.hold(0):
        pass


def test_busy_names_the_process_that_holds_it_and_how_to_end_it(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "lock") as child:
        with pytest.raises(Busy) as refusal, make_lock(tmp_path / "lock").hold(0):
            raise AssertionError
        assert f"process {child.pid} (a test's child)" in refusal.value.message
        assert refusal.value.hint is not None
        assert f"kill {child.pid}" in refusal.value.hint


def test_a_holder_that_hangs_is_named_and_one_that_is_killed_lets_go(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "lock") as child:
        os.kill(child.pid, signal.SIGSTOP)
        with (
            pytest.raises(Busy, match=f"process {child.pid}"),
            make_lock(tmp_path / "lock").hold(0.01),
        ):
            raise AssertionError
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        with make_lock(tmp_path / "lock").hold(0):
            pass


@pytest.mark.parametrize("stopped", [False, True])
def test_a_holder_that_makes_no_progress_is_not_waited_for_with_little_patience(
    tmp_path: Path, stopped: bool
) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path, WORK if stopped else HOLD) as child:
        if stopped:
            child.send_signal(signal.SIGSTOP)
        with (
            pytest.raises(Busy, match=f"process {child.pid} .* makes no progress"),
            make_lock(path).hold(LONG_ENOUGH_S, patience_s=0.1),
        ):
            raise AssertionError


@pytest.mark.requirement("HK-2")
def test_a_stopped_holder_is_not_waited_for_by_anybody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path) as child:
        child.send_signal(signal.SIGSTOP)
        with (
            pytest.raises(Busy, match=f"process {child.pid} .* makes no progress"),
            make_lock(path).hold(LONG_ENOUGH_S),
        ):
            raise AssertionError


@pytest.mark.requirement("HK-2")
def test_a_thread_with_little_patience_does_not_wait_behind_one_with_more(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = make_lock(path)

    def wait_patiently() -> None:
        waiting.set()
        with lock.hold(LONG_ENOUGH_S):
            pass

    waiting = threading.Event()
    with ThreadPoolExecutor() as pool, held_by_another_process(path) as child:
        patiently = pool.submit(wait_patiently)
        waiting.wait()
        with (
            pytest.raises(Busy, match=f"process {child.pid} .* makes no progress"),
            lock.hold(LONG_ENOUGH_S, patience_s=0.5),
        ):
            raise AssertionError
        assert not patiently.done()
        child.kill()
        child.wait()
        patiently.result(timeout=LONG_ENOUGH_S)


def test_a_holder_that_works_is_waited_for_as_long_as_by_anybody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        held_by_another_process(path, WORK),
        pytest.raises(Busy, match=r"more than 2\.5 s"),
        make_lock(path).hold(2.5, patience_s=1.0),
    ):
        raise AssertionError


@pytest.mark.parametrize("purpose", ["session " + "x" * 200, "session " + "\N{SNOWMAN}" * 200])
def test_a_holder_with_a_long_purpose_is_still_named(tmp_path: Path, purpose: str) -> None:
    with (
        make_lock(tmp_path / "lock", purpose).hold(0),
        pytest.raises(Busy, match=f"process {os.getpid()}"),
        make_lock(tmp_path / "lock").hold(0),
    ):
        raise AssertionError


@pytest.mark.parametrize("garbage", [b"", b"\xff\0", b"[]", b'{"pid": 1}', b"[" * 256])
def test_a_lock_file_that_says_nothing_still_locks(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path):
        path.write_bytes(garbage)
        with pytest.raises(Busy, match="another process"), make_lock(path).hold(0):
            raise AssertionError


@pytest.mark.requirement("CL-3")
def test_a_holder_that_has_ended_is_never_suggested_for_killing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path) as gone:
        left_behind = path.read_bytes()
    with held_by_another_process(path):  # as on a disk that is full: its name did not fit
        path.write_bytes(left_behind)
        with pytest.raises(Busy, match="another process") as refusal, make_lock(path).hold(0):
            raise AssertionError
    assert str(gone.pid) not in refusal.value.message
    assert refusal.value.hint
    assert "kill" not in refusal.value.hint


def test_a_process_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "lock")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "free\n", done.stderr


def test_threads_and_processes_together_never_overlap(tmp_path: Path) -> None:
    lock_path, counter = tmp_path / "lock", tmp_path / "counter"
    counter.write_text("0")
    children = [
        subprocess.Popen([sys.executable, "-c", COUNT, str(lock_path), str(counter), "50"])
        for _ in range(3)
    ]
    locks = [make_lock(lock_path), make_lock(lock_path)]

    def count(lock: StoreLock) -> None:
        for _ in range(50):
            with lock.hold(LONG_ENOUGH_S):
                counter.write_text(str(int(counter.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(count, locks[number % 2]) for number in range(4)]:
            result.result()
    assert [child.wait() for child in children] == [0, 0, 0]
    assert counter.read_text() == str(7 * 50)


def test_a_disk_without_room_for_the_holders_name_can_still_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], check=False).returncode == 7


@pytest.mark.requirement("ST-6")
def test_the_lock_file_is_private_and_never_followed_elsewhere(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        with make_lock(tmp_path / "lock").hold(0):
            assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    finally:
        os.umask(previous)
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreDamaged), make_lock(tmp_path / "link").hold(0):
        raise AssertionError
    assert (tmp_path / "elsewhere").read_bytes() == b""


@pytest.mark.requirement("ST-6")
def test_a_lock_that_is_a_second_name_of_another_file_leaves_that_file_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    os.link(tmp_path / "precious", tmp_path / "lock")
    with (
        make_lock(tmp_path / "lock").hold(0),
        pytest.raises(Busy),
        make_lock(tmp_path / "lock").hold(0),
    ):
        raise AssertionError
    assert (tmp_path / "precious").read_bytes() == b"precious"


@pytest.fixture(params=[True, False] if can_mount() else [False], ids=lambda m: f"mounting={m}")
def view(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The directory of a lock as a user without write permission sees it; others can."""
    place = tmp_path / "place"
    place.mkdir()
    with seen_read_only(place, tmp_path / "view", mounting=request.param):
        yield tmp_path / "view"


@pytest.mark.requirement("RL-6")
def test_where_nothing_can_be_written_those_who_look_share_it(view: Path, tmp_path: Path) -> None:
    written = tmp_path / "place" / "lock"
    with make_lock(written).hold(0):
        pass
    before = written.read_bytes()
    lock, other = make_lock(view / "lock"), make_lock(view / "lock")
    with lock.hold(0, read_only=True), other.hold(0, read_only=True), lock.hold(0, read_only=True):
        assert (lock.is_shared, other.is_shared, lock.takes_writes()) == (True, True, False)
    assert not lock.is_shared
    assert written.read_bytes() == before


@pytest.mark.requirement("RL-6")
def test_where_nothing_can_be_written_no_writer_is_admitted(view: Path, tmp_path: Path) -> None:
    with make_lock(tmp_path / "place" / "lock").hold(0):
        pass
    lock = make_lock(view / "lock")
    with pytest.raises(StoreReadOnly), lock.hold(0):
        raise AssertionError
    with lock.hold(0, read_only=True), pytest.raises(StoreReadOnly), lock.hold(0):
        raise AssertionError
    with make_lock(tmp_path / "place" / "lock").hold(0):
        pass


@pytest.mark.requirement("RL-6")
def test_those_who_look_and_those_who_write_elsewhere_keep_each_other_out(
    view: Path, tmp_path: Path
) -> None:
    written = tmp_path / "place" / "lock"
    with (
        held_by_another_process(written) as child,
        pytest.raises(Busy, match=f"process {child.pid} "),
        make_lock(view / "lock").hold(0, read_only=True),
    ):
        raise AssertionError
    with (
        make_lock(view / "lock").hold(LONG_ENOUGH_S, read_only=True),
        pytest.raises(Busy),
        make_lock(written).hold(0),
    ):
        raise AssertionError


@pytest.mark.requirement("RL-6")
def test_a_lock_that_was_never_made_cannot_be_shared(view: Path) -> None:
    with pytest.raises(StoreReadOnly), make_lock(view / "lock").hold(0, read_only=True):
        raise AssertionError


def test_who_looks_where_it_can_be_written_is_alone_like_anybody(tmp_path: Path) -> None:
    lock = make_lock(tmp_path / "lock")
    with lock.hold(0, read_only=True):
        assert (lock.is_shared, lock.takes_writes()) == (False, True)
        with (
            lock.hold(0),
            pytest.raises(Busy),
            make_lock(tmp_path / "lock").hold(0, read_only=True),
        ):
            raise AssertionError
