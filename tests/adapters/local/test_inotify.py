"""The watch itself: complete, or in doubt and saying why."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.local.inotify import OVERFLOWED, InotifyWatcher
from holdfast.adapters.local.inotify_watch import InotifyWatch
from holdfast.adapters.local.linux_calls import OVERFLOW, Event, parse_events
from holdfast.adapters.local.mounts import (
    Mount,
    file_system_of,
    is_on_a_network,
    mount_points_below,
    mounts_around,
    parse_mounts,
)
from holdfast.adapters.local.system import SystemClock
from holdfast.ports.watcher import ChangedPlaces, Doubt, NoWatcher
from tests.support.hostile_trees import fill
from tests.support.real_mounts import can_mount, mounted
from tests.support.watched_workspaces import watched

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.linux]


@pytest.fixture
def watcher() -> Iterator[InotifyWatcher]:
    watcher = InotifyWatcher(SystemClock())
    try:
        yield watcher
    finally:
        watcher.close()


def watch_all(watch: InotifyWatch, root: Path) -> None:
    """What a scan of everything does, as far as the watch is concerned."""
    mark = watch.begin()
    for directory, _, _ in os.walk(os.fsencode(root)):
        fd = os.open(directory, os.O_RDONLY)
        watch.watch(os.path.relpath(directory, os.fsencode(root)).removeprefix(b"."), fd)
        os.close(fd)
    watch.seen(mark, whole=True)


def places(watch: InotifyWatch, root: Path) -> ChangedPlaces:
    found = ask(watch, root)
    assert isinstance(found, ChangedPlaces), found
    return found


def ask(watch: InotifyWatch, root: Path) -> ChangedPlaces | Doubt:
    status = root.stat()
    return watch.places(status.st_dev, status.st_ino)


def reason(watch: InotifyWatch, root: Path) -> str:
    found = ask(watch, root)
    assert isinstance(found, Doubt)
    return found.reason


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path / "root/a/b/file")
    fill(tmp_path / "root/c/file")
    return tmp_path / "root"


def test_what_was_changed_before_is_known_when_asked(watcher: InotifyWatcher, root: Path) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    assert places(watch, root).directories == frozenset()
    for number in range(200):
        fill(root / "a/b/file", b"%d" % number)
        found = places(watch, root)
        assert found.directories == {b"a/b"}
        watch.seen(found.mark, whole=False)


def test_a_look_that_was_not_kept_forgets_nothing(watcher: InotifyWatcher, root: Path) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    fill(root / "c/new")
    first = places(watch, root)
    fill(root / "a/b/file", b"later")
    watch.seen(first.mark, whole=False)
    assert places(watch, root).directories == {b"a/b"}


def test_a_real_overflow_is_a_doubt_until_everything_was_looked_at(
    watcher: InotifyWatcher, root: Path
) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with watcher.lock:  # the queue is not read meanwhile
        for number in range(most // 2 + 10):
            os.close(os.open(root / f"c/{number}", os.O_CREAT | os.O_WRONLY))
            os.unlink(root / f"c/{number}")
    assert reason(watch, root) == OVERFLOWED
    assert reason(watch, root) == OVERFLOWED
    assert watch.status().overflows == 1
    watch_all(watch, root)
    fill(root / "a/b/file", b"later")
    assert places(watch, root).directories == {b"a/b"}


def test_an_overflow_during_a_scan_of_everything_outlives_it(
    watcher: InotifyWatcher, root: Path
) -> None:
    watch = watcher.open(bytes(root))
    mark = watch.begin()
    fd = os.open(root, os.O_RDONLY)
    watch.watch(b"", fd)
    os.close(fd)
    with watcher.lock:
        watcher._take([Event(-1, OVERFLOW, b"")])
    watch.seen(mark, whole=True)
    assert reason(watch, root) == OVERFLOWED


def test_the_limit_of_the_system_turns_the_watch_off_and_lets_the_others_be(
    watcher: InotifyWatcher, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "other/file")
    other = watcher.open(bytes(tmp_path / "other"))
    watch_all(other, tmp_path / "other")
    add = watcher.calls.add
    left = 2

    def limited(fd: int, mask: int) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return add(fd, mask)

    monkeypatch.setattr(watcher.calls, "add", limited)
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    assert "max_user_watches" in reason(watch, root)
    assert watch.status().off
    assert watch.status().directories == 0
    fill(tmp_path / "other/file", b"changed")
    assert places(other, tmp_path / "other").directories == {b""}


def test_a_watcher_that_died_is_a_doubt_for_all(watcher: InotifyWatcher, root: Path) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    number = watcher._cookie.fileno()
    os.dup2(os.open(os.devnull, os.O_RDONLY), number)  # its cookie leads nowhere now
    watcher.calls.remove(watcher._cookie_watch)
    with watcher.lock:
        watcher.fail("pulled the plug")
    assert reason(watch, root) == "pulled the plug"
    assert watch.status().off


def test_workspaces_inside_each_other_are_both_reported(
    watcher: InotifyWatcher, root: Path
) -> None:
    outer, inner = watcher.open(bytes(root)), watcher.open(bytes(root / "a"))
    watch_all(outer, root)
    watch_all(inner, root / "a")
    fill(root / "a/b/file", b"changed")
    assert places(outer, root).directories == {b"a/b"}
    assert places(inner, root / "a").directories == {b"b"}
    outer.close()
    fill(root / "a/b/file", b"again")
    assert places(inner, root / "a").directories == {b"b"}


def test_a_directory_that_moves_takes_its_watches_along_or_loses_them(
    watcher: InotifyWatcher, root: Path
) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    (root / "a").rename(root / "c/moved")
    fill(root / "c/moved/b/file", b"changed where it is now")
    found = places(watch, root)
    assert {b"", b"c"} <= found.directories
    assert b"c/moved" in found.subtrees
    assert watch.status().directories == 2


@pytest.mark.parametrize("how", ["moved", "deleted", "replaced"])
def test_a_workspace_that_is_not_the_one_that_was_watched_is_a_doubt(
    watcher: InotifyWatcher, root: Path, how: str
) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    if how == "deleted":
        shutil.rmtree(root)
    else:
        root.rename(root.with_name("elsewhere"))
    if how == "moved":
        assert "moved or deleted" in reason(watch, root.with_name("elsewhere"))
        return
    root.mkdir()
    assert "workspace" in reason(watch, root)


def test_directories_above_that_move_are_noticed(watcher: InotifyWatcher, tmp_path: Path) -> None:
    """Nothing happens to the workspace itself then, and there is no event."""
    root = tmp_path / "above/root"
    fill(root / "file")
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    (tmp_path / "above").rename(tmp_path / "away")
    fill(root / "file", b"another one")
    assert "the workspace directory was replaced" in reason(watch, root)


def test_a_mount_below_is_a_doubt(
    watcher: InotifyWatcher, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    around = watcher.mounts.around

    def more(directory: bytes) -> tuple[Mount, ...]:
        return (*around(directory), Mount(b"9999", bytes(root / "c"), b"tmpfs"))

    monkeypatch.setattr(watcher.mounts, "around", more)
    assert "mounted" in reason(watch, root)
    watch_all(watch, root)
    assert places(watch, root).directories == frozenset()


@pytest.mark.parametrize("real", [False, True] if can_mount() else [False])
def test_who_waits_for_changes_is_notified_of_a_mount_that_makes_no_event(
    watcher: InotifyWatcher, root: Path, monkeypatch: pytest.MonkeyPatch, real: bool
) -> None:
    told = threading.Event()
    watch = watcher.open(bytes(root), listener=told.set)
    watch_all(watch, root)
    told.clear()
    with contextlib.ExitStack() as undone:
        if real:
            undone.enter_context(mounted(root / "c"))
            assert told.wait(60)
        else:
            mounts = (Mount(b"9999", bytes(root / "c"), b"tmpfs"),)
            monkeypatch.setattr(watcher.mounts, "around", lambda directory: mounts)
            watch.mounts_changed()
        assert watch.activity().names > 0
        assert "mounted" in reason(watch, root)
        watch_all(watch, root)
        assert watch.activity().names == 0
        told.clear()
        if real:
            undone.close()
            assert told.wait(60)
            assert "mounted" in reason(watch, root)


def test_a_discarded_scan_does_not_hide_a_mount(
    watcher: InotifyWatcher, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    mounted = (*watcher.mounts.around(bytes(root)), Mount(b"9999", bytes(root / "c"), b"tmpfs"))
    monkeypatch.setattr(watcher.mounts, "around", lambda directory: mounted)
    watch.begin()
    fd = os.open(root, os.O_RDONLY)
    watch.watch(b"", fd)
    os.close(fd)
    assert "mounted" in reason(watch, root)


@pytest.mark.parametrize("kind", [b"nfs4", b"cifs", b"fuse.sshfs", b"9p", b"what is that"])
def test_a_file_system_that_others_can_change_is_not_watched(
    watcher: InotifyWatcher, root: Path, monkeypatch: pytest.MonkeyPatch, kind: bytes
) -> None:
    mounted = (Mount(b"1", bytes(root), kind),)
    monkeypatch.setattr(watcher.mounts, "around", lambda directory: mounted)
    watch = watcher.open(bytes(root))
    watch_all(watch, root)
    assert kind.decode() in reason(watch, root)
    assert watch.status().off


def test_mounts_are_distinguished_by_path() -> None:
    table = parse_mounts(
        b"22 1 0:1 / / rw - ext4 /dev/sda rw\n"
        b"23 22 0:2 / /home rw shared:1 - xfs /dev/sdb rw\n"
        b"24 23 0:3 / /home/me/a\\040b rw - nfs4 server:/ rw\n"
        b"25 23 0:4 / /home/melody rw - tmpfs none rw\n"
        b"26 23 0:5 / /home rw - btrfs /dev/sdc rw\n"
    )
    assert [m.number for m in mounts_around(table, b"/home/me")] == [b"26", b"24"]
    assert [m.number for m in mounts_around(table, b"/home/me/a b/c")] == [b"24"]
    assert [m.number for m in mounts_around(table, b"/srv")] == [b"22"]
    with pytest.raises(ValueError, match="mount table"):
        parse_mounts(b"nonsense\n")


def test_a_mount_may_have_any_name() -> None:
    table = b"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /w/\r\xff\\012x rw - tmpfs none rw\n"
    below = parse_mounts(table)[1]
    assert below == (b"2", b"/w/\r\xff\nx", b"tmpfs")
    assert parse_mounts(b"") == ()  # as in a root of its own


@pytest.mark.parametrize("table", [None, b"nonsense\n"])
def test_without_a_table_of_mounts_that_makes_sense_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: bytes | None
) -> None:
    if table is not None:
        (tmp_path / "mountinfo").write_bytes(table)
    monkeypatch.setattr("holdfast.adapters.local.mounts.TABLE", tmp_path / "mountinfo")
    assert file_system_of(tmp_path) is None
    assert mount_points_below(os.fsencode(tmp_path)) == []
    assert not is_on_a_network(tmp_path)


def test_names_come_as_the_bytes_they_are() -> None:
    padded = b"\x80\xff\n\0\0\0\0\0"
    data = b"\x05\0\0\0\x02\0\0\0\0\0\0\0" + len(padded).to_bytes(4, "little") + padded
    assert list(parse_events(data * 2)) == [Event(5, 2, b"\x80\xff\n")] * 2


def test_a_scan_under_a_storm_of_changes_ends_right(tmp_path: Path) -> None:
    """Another process changes files as fast as it can while saves go on."""
    root = tmp_path / "project"
    for number in range(30):
        fill(root / f"d{number % 7}/f{number}")
    storm = (
        "import os, random, sys, shutil\n"
        "random.seed(7)\n"
        "print('ready', flush=True)\n"
        "for n in range(4000):\n"
        "    d = f'd{random.randrange(9)}'\n"
        "    os.makedirs(d, exist_ok=True)\n"
        "    open(f'{d}/f{random.randrange(30)}', 'ab').write(b'x')\n"
        "    if n % 40 == 0: shutil.rmtree(d)\n"
        "    if n % 90 == 0 and os.path.isdir('d1'): os.rename('d1', f'm{n}')\n"
    )
    with watched(root) as one:
        one.save()
        child = subprocess.Popen(
            [sys.executable, "-c", storm], cwd=root, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        while child.poll() is None:
            one.engine.scan()
        child.communicate()
        assert one.seen() == one.from_nothing()
        one.save()
        assert one.seen() == one.from_nothing()


def test_nothing_wakes_the_watcher_while_nothing_happens(
    watcher: InotifyWatcher, root: Path
) -> None:
    told = threading.Event()
    watch = watcher.open(bytes(root), listener=told.set)
    watch_all(watch, root)
    before = watcher.wakeups
    for _ in range(100):
        places(watch, root)  # cookies are read by the caller; a wakeup finds nothing
    fill(root / "a/b/file", b"now")
    assert told.wait(30)
    assert watcher.wakeups - before <= 102


def test_where_there_is_no_watching_that_is_said() -> None:
    watch = NoWatcher("not on this system").open(b"/somewhere")
    assert watch.places(1, 2) == Doubt("not on this system")
    assert watch.status().off
    assert watch.activity().names == 0
