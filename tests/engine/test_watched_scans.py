"""A scan by the hint of a watch finds what a scan from nothing finds, whatever changed."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.composition import configure
from tests.support.hostile_trees import fill, git
from tests.support.ticks import wait_a_tick
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.support.watched_workspaces import watched

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.linux]


@pytest.fixture(params=["plain", "with hard links"])
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Files with several names make a scan look at everything when they change, which could hide
    what the hint alone would miss: so once without them."""
    root = tmp_path / "project"
    for directory in ("one", "two/deep", "two/deep/deeper", "three"):
        for name in ("plain", "other.log", "linked"):
            fill(root / directory / name, f"{directory}/{name}\n".encode())
    if request.param == "with hard links":
        (root / "three/linked").unlink()
        os.link(root / "one/linked", root / "three/linked")
    fill(root / ".gitignore", b"*.log\nbuild/\n")
    fill(root / "two/.gitignore", b"!keep.log\n")
    fill(root / "build/artefact", b"not captured\n")
    (root / "link").symlink_to("one/plain")
    (root / "empty").mkdir()
    return root


def _append(root: Path) -> None:
    with open(root / "two/deep/plain", "ab") as file:
        file.write(b"more\n")


def _same_size_same_times(root: Path) -> None:
    path = root / "two/deep/plain"
    before = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _new_tree(root: Path) -> None:
    fill(root / "one/new/newer/newest/file")


def _move_directory(root: Path) -> None:
    (root / "two/deep").rename(root / "one/moved")


def _move_out_and_in(root: Path) -> None:
    (root / "two/deep").rename(root.parent / "away")
    fill(root.parent / "away/changed/outside")
    (root.parent / "away").rename(root / "back")


def _swap_directories(root: Path) -> None:
    (root / "two").rename(root / "aside")
    (root / "one").rename(root / "two")
    (root / "aside").rename(root / "one")


def _replace_by_file(root: Path) -> None:
    shutil.rmtree(root / "two/deep")
    fill(root / "two/deep")


def _file_becomes_directory(root: Path) -> None:
    (root / "one/plain").unlink()
    fill(root / "one/plain/inside")


def _directory_becomes_link(root: Path) -> None:
    (root / "two/deep").rename(root / "two/elsewhere")
    (root / "two/deep").symlink_to("elsewhere")


def _mode_of_file(root: Path) -> None:
    (root / "one/plain").chmod(0o755)


def _mode_of_directory(root: Path) -> None:
    (root / "two/deep").chmod(0o700)


def _mode_of_root(root: Path) -> None:
    root.chmod(0o700)


def _retarget(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("two/deep")


def _rules_above(root: Path) -> None:
    fill(root / ".gitignore", b"plain\n")


def _rules_below(root: Path) -> None:
    fill(root / "two/.gitignore", b"plain\n")


def _rules_for_new_name(root: Path) -> None:
    fill(root / "three/.holdfastignore", b"linked\n")


def _unignored_directory(root: Path) -> None:
    fill(root / ".gitignore", b"*.log\n")


def _change_in_ignored(root: Path) -> None:
    fill(root / "build/more/artefacts")


def _exclude_of_git(root: Path) -> None:
    git(root, "init", "-q")
    fill(root / ".git/info/exclude", b"plain\n")


def _write_through_other_name(root: Path) -> None:
    with open(root / "three/linked", "ab") as file:
        file.write(b"through the other name\n")


def _one_more_name(root: Path) -> None:
    os.link(root / "two/deep/plain", root / "another")


def _one_name_less(root: Path) -> None:
    (root / "three/linked").unlink()


def _becomes_cache(root: Path) -> None:
    fill(root / "two/deep/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55\n")


def _not_utf8(root: Path) -> None:
    directory = os.fsencode(root) + b"/one/\xff\xfe"
    os.mkdir(directory)
    with open(directory + b"/\x80\n", "wb") as file:
        file.write(b"a name that is no text\n")


def _pipe_appears(root: Path) -> None:
    os.mkfifo(root / "one/pipe")


def _remove_everything(root: Path) -> None:
    for entry in root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _xattr(root: Path) -> None:
    os.setxattr(root / "one/plain", "user.note", b"kept elsewhere")


def _deep(root: Path) -> None:
    path = root / "one"
    for _ in range(200):
        path = path / "d"
    fill(path / "file")


CHANGES: list[Callable[[Path], None]] = [
    _append,
    _same_size_same_times,
    _new_tree,
    _move_directory,
    _move_out_and_in,
    _swap_directories,
    _replace_by_file,
    _file_becomes_directory,
    _directory_becomes_link,
    _mode_of_file,
    _mode_of_directory,
    _mode_of_root,
    _retarget,
    _rules_above,
    _rules_below,
    _rules_for_new_name,
    _unignored_directory,
    _change_in_ignored,
    _exclude_of_git,
    _write_through_other_name,
    _one_more_name,
    _one_name_less,
    _becomes_cache,
    _not_utf8,
    _pipe_appears,
    _remove_everything,
    _xattr,
    _deep,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_change_is_seen_by_the_hint_alone_and_so_is_the_next(
    workspace: Path, change: Callable[[Path], None]
) -> None:
    with watched(workspace) as one:
        one.settle()
        change(workspace)
        assert one.seen() == one.from_nothing()
        assert one.save().tree == one.from_nothing()[0]
        fill(workspace / "later/still", b"and then")
        assert one.seen() == one.from_nothing()
        one.settle()
        assert one.seen() == one.from_nothing()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_change_that_no_save_kept_is_still_seen_later(
    workspace: Path, change: Callable[[Path], None]
) -> None:
    with watched(workspace) as one:
        one.settle()
        change(workspace)
        one.engine.scan()
        one.engine.scan()
        assert one.seen() == one.from_nothing()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_a_restore_under_watch_brings_everything_back(
    workspace: Path, change: Callable[[Path], None]
) -> None:
    with watched(workspace) as one:
        one.settle()
        kept = one.save()
        change(workspace)
        one.opened.restore(kept.id)
        assert one.engine.resolve(kept.session_id, "HEAD").tree == kept.tree
        assert one.seen() == one.from_nothing()
        one.settle()
        assert one.seen() == one.from_nothing()


def test_a_list_of_excluded_paths_that_alone_changes_is_heeded(workspace: Path) -> None:
    git(workspace, "init", "-q")
    with watched(workspace) as one:
        one.settle()
        fill(workspace / ".git/info/exclude", b"plain\n")
        assert one.seen() == one.from_nothing()
        one.settle()
        fill(workspace / ".git/info/exclude", b"")
        assert one.seen() == one.from_nothing()


def test_a_file_that_another_process_keeps_open_for_writing_is_looked_at_each_time(
    workspace: Path,
) -> None:
    """Writes through a mapping make no event."""
    path = workspace / "one/plain"
    path.write_bytes(b"x" * 4096)
    with (
        open(path, "r+b") as file,
        mmap.mmap(file.fileno(), 0) as mapped,
        watched(workspace) as one,
    ):
        one.settle()
        for number in range(5):
            mapped[:1] = b"%d" % number
            one.save()
            assert one.seen()[0] == one.from_nothing()[0]


def test_settings_that_change_what_is_captured_are_heeded(workspace: Path) -> None:
    with watched(workspace) as one:
        one.settle()
    configure(workspace, include=["*.log"])
    with watched(workspace) as one:
        one.settle()
        assert one.seen() == one.from_nothing()
        fill(workspace / "one/other.log", b"included, and watched")
        fill(workspace / "build/deep/down.log", b"included below an ignored directory")
        assert one.seen() == one.from_nothing()


def _in_workspace(call: Call) -> list[bytes]:
    return [name for name in call.names() if not name.startswith(b"/")]


@pytest.mark.requirement("PF-1")
def test_a_watched_save_looks_at_nothing_but_what_changed(workspace: Path) -> None:
    opened: list[bytes] = []
    looked: list[bytes] = []

    def note(call: Call) -> None:
        if call.member == "open":
            opened.extend(_in_workspace(call))
        if call.member == "stat":
            looked.extend(_in_workspace(call))

    fs = WatchedFilesystem(before=note)
    (workspace / "three/linked").unlink()
    wait_a_tick(workspace)  # a directory that is scanned in its own tick is read again
    with watched(workspace, fs=fs) as one:
        one.settle()
        _append(workspace)
        one.save()  # within the tick of the change: the file is looked at once more
        one.settle()
        opened.clear()
        looked.clear()
        (workspace / "two/deep/plain").write_bytes(b"changed")
        one.save()
        assert b"plain" in opened
        assert set(looked) <= {b"plain", b"other.log", b"linked", b"deeper"}
        assert {b"one", b"three", b"empty", b"deeper"}.isdisjoint(opened)


def test_ignored_directories_are_not_watched(workspace: Path) -> None:
    with watched(workspace) as one:
        one.settle()
        for number in range(30):
            fill(workspace / f"build/{number}/artefact")
        one.settle()
        assert one.status.directories == 7


def test_directories_that_are_gone_are_no_longer_watched(workspace: Path) -> None:
    with watched(workspace) as one:
        one.settle()
        assert one.status.directories == 7
        shutil.rmtree(workspace / "two")
        (workspace / "one").rename(workspace.parent / "away")
        one.settle()
        assert one.status.directories == 3
        fill(workspace.parent / "away/plain", b"no business of ours")
        one.settle()
        assert one.seen() == one.from_nothing()


@pytest.mark.requirement("PF-1")
def test_saves_in_the_same_places_are_noted_once_for_the_cache(workspace: Path) -> None:
    """What waits for the cache grows with the places, not with the saves: writing it down takes
    longer than a save, so that it should hardly ever have to be done."""
    with watched(workspace) as one:
        one.settle()
        for number in range(30):
            fill(workspace / "two/deep/deeper/plain", b"%d" % number)
            one.settle()
        assert len(one.engine.scanner._pending) < 10


def test_a_directory_that_went_and_came_again_is_remembered_as_it_is(workspace: Path) -> None:
    with watched(workspace) as one:
        one.settle()
        fill(workspace / "two/deep/plain", b"changed before it goes")
        one.settle()
        shutil.rmtree(workspace / "two")
        one.settle()
        fill(workspace / "two/other/plain", b"come again")
        one.settle()
        one.engine.finish_watching()
        vault = one.engine.vault
        with vault.open_root() as root_fd:
            remembered = vault.stat_cache.load(vault.scan_generation(root_fd))
    below = {path for path in remembered if path.startswith(b"two")}
    assert below == {b"two", b"two/other"}
