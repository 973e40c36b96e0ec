"""The contract of `holdfast.ports.watcher`, as tests.

`WatcherContract` is for any adapter, even one that sees nothing and says so.
`TellingWatcherContract` adds tests for one that reports when something happens.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.ports.watcher import ChangedPlaces, Doubt, Watcher, WorkspaceWatch

_LONG_S = 60.0


def _write(root: Path) -> bytes:
    (root / "a/b/file").write_bytes(b"other content")
    return b"a/b"


def _same_size(root: Path) -> bytes:
    (root / "a/b/file").write_bytes(bytes(reversed((root / "a/b/file").read_bytes())))
    return b"a/b"


def _create(root: Path) -> bytes:
    (root / "c/new").write_bytes(b"")
    return b"c"


def _create_in_a_new_directory(root: Path) -> bytes:
    (root / "c/d/e").mkdir(parents=True)
    (root / "c/d/e/new").write_bytes(b"new")
    return b"c/d/e"


def _remove(root: Path) -> bytes:
    (root / "a/b/file").unlink()
    return b"a/b"


def _remove_a_directory(root: Path) -> bytes:
    shutil.rmtree(root / "a")
    return b""


def _rename(root: Path) -> bytes:
    (root / "a").rename(root / "c/moved")
    return b"c"


def _bring_in(root: Path) -> bytes:
    (root.parent / "outside/deep").mkdir(parents=True)
    (root.parent / "outside/deep/file").write_bytes(b"from outside")
    (root.parent / "outside").rename(root / "a/inside")
    return b"a/inside/deep"


def _mode(root: Path) -> bytes:
    (root / "a/b/file").chmod(0o755)
    return b"a/b"


def _link(root: Path) -> bytes:
    (root / "c/link").symlink_to("file")
    return b"c"


def _name_in_any_bytes(root: Path) -> bytes:
    with open(os.fsencode(root) + b"/c/\xff\n", "wb") as file:
        file.write(b"named")
    return b"c"


CHANGES: tuple[Callable[[Path], bytes], ...] = (
    _write,
    _same_size,
    _create,
    _create_in_a_new_directory,
    _remove,
    _remove_a_directory,
    _rename,
    _bring_in,
    _mode,
    _link,
    _name_in_any_bytes,
)
"""Each changes something, and returns the directory of the change."""


def make_tree(top: Path) -> Path:
    root = top / "root"
    for name in ("a/b/file", "c/file"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(b"content of " + name.encode())
    return root


def look_at_everything(watch: WorkspaceWatch, root: Path, *, keep: bool = True) -> int:
    """What a scan does, as far as the watch is concerned."""
    mark = watch.begin()
    for directory, _, _ in os.walk(os.fsencode(root)):
        fd = os.open(directory, os.O_RDONLY)
        watch.watch(os.path.relpath(directory, os.fsencode(root)).removeprefix(b"."), fd)
        os.close(fd)
    if keep:
        watch.seen(mark, whole=True)
    return mark


def changes_of(watch: WorkspaceWatch, root: Path) -> ChangedPlaces | Doubt:
    status = root.stat()
    return watch.places(status.st_dev, status.st_ino)


def covers(found: ChangedPlaces | Doubt, directory: bytes) -> bool:
    """Whether a scan of the reported changes would read the directory."""
    if isinstance(found, Doubt):
        return bool(found.reason)
    above = [directory]
    while above[-1]:
        above.append(os.path.dirname(above[-1]))
    return directory in found.directories or any(each in found.subtrees for each in above)


class WatcherOpening:
    """How the tests open a watcher. The suites build on this; adapters subclass those."""

    def open_watcher(self) -> Watcher:
        raise NotImplementedError


class WatcherContract(WatcherOpening):
    """Subclass it, and define how to open a watcher."""

    @contextmanager
    def _watched_tree(self, top: Path) -> Iterator[tuple[WorkspaceWatch, Path]]:
        """A watch that has seen all of a tree."""
        root = make_tree(top)
        with closing(self.open_watcher()) as watcher:
            watch = watcher.open(bytes(root))
            look_at_everything(watch, root)
            yield watch, root

    def test_a_change_is_reported_or_everything_is_in_doubt(self, tmp_path: Path) -> None:
        for number, change in enumerate(CHANGES):
            with self._watched_tree(tmp_path / str(number)) as (watch, root):
                place = change(root)
                assert covers(changes_of(watch, root), place), change.__name__

    def test_before_the_first_look_everything_is_in_doubt(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path)
        with closing(self.open_watcher()) as watcher:
            assert isinstance(changes_of(watcher.open(bytes(root)), root), Doubt)

    def test_a_look_that_was_not_kept_forgets_nothing(self, tmp_path: Path) -> None:
        with self._watched_tree(tmp_path) as (watch, root):
            place = _write(root)
            changes_of(watch, root)
            look_at_everything(watch, root, keep=False)
            assert covers(changes_of(watch, root), place)

    def test_a_look_settles_no_doubt_that_came_after_it_began(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path)
        with closing(self.open_watcher()) as watcher:
            watch = watcher.open(bytes(root))
            mark = look_at_everything(watch, root, keep=False)
            watch.doubt("for a reason")
            watch.seen(mark, whole=True)
            assert isinstance(changes_of(watch, root), Doubt)

    def test_another_directory_in_the_workspaces_place_is_in_doubt(self, tmp_path: Path) -> None:
        with self._watched_tree(tmp_path) as (watch, root):
            root.rename(tmp_path / "elsewhere")
            make_tree(tmp_path)
            assert isinstance(changes_of(watch, root), Doubt)

    def test_a_doubt_is_said_to_people(self, tmp_path: Path) -> None:
        with self._watched_tree(tmp_path) as (watch, root):
            watch.doubt("for a reason")
            found = changes_of(watch, root)
            assert isinstance(found, Doubt)
            assert watch.status().doubt

    def test_a_workspace_that_goes_leaves_the_others_alone(self, tmp_path: Path) -> None:
        one, two = make_tree(tmp_path / "one"), make_tree(tmp_path / "two")
        with closing(self.open_watcher()) as watcher:
            first, second = watcher.open(bytes(one)), watcher.open(bytes(two))
            for watch, root in ((first, one), (second, two)):
                look_at_everything(watch, root)
            first.close()
            shutil.rmtree(one)
            place = _write(two)
            assert covers(changes_of(second, two), place)

    def test_what_was_closed_can_be_closed_again(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path)
        watcher = self.open_watcher()
        watch = watcher.open(bytes(root))
        look_at_everything(watch, root)
        watch.close()
        watch.close()
        watcher.close()


class TellingWatcherContract(WatcherContract):
    """For watchers that report when something happens."""

    def test_who_listens_is_notified_of_each_kind_of_change(self, tmp_path: Path) -> None:
        for number, change in enumerate(CHANGES):
            root = make_tree(tmp_path / str(number))
            happened = threading.Event()
            with closing(self.open_watcher()) as watcher:
                watch = watcher.open(bytes(root), listener=happened.set)
                self.until_it_listens(watch, root, happened)
                happened.clear()
                change(root)
                assert happened.wait(_LONG_S), change.__name__
                assert watch.activity().names > 0

    def test_activity_is_over_when_a_later_look_was_kept(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path)
        happened = threading.Event()
        with closing(self.open_watcher()) as watcher:
            watch = watcher.open(bytes(root), listener=happened.set)
            self.until_it_listens(watch, root, happened)
            began = watch.activity()
            mark = watch.begin()
            happened.clear()
            _write(root)
            assert happened.wait(_LONG_S)
            assert watch.activity().last_ns >= began.last_ns
            watch.seen(mark, whole=True)
            assert watch.activity().names > 0  # it came after the look had begun

    def until_it_listens(
        self, watch: WorkspaceWatch, root: Path, happened: threading.Event
    ) -> None:
        """Some start a moment after they are opened, so wait for the first report, and look
        again."""
        look_at_everything(watch, root)
        for number in itertools.count():
            (root / "c/begun").write_bytes(b"%d" % number)
            if happened.wait(0.2):
                break
        while watch.activity().names:
            look_at_everything(watch, root)
