"""Part 11: another user of the machine, and what such a one can leave in our way.

At any call of a save or restore, whatever the umask, others can neither read nor change the store
or what a restore has staged. What is planted in the place of a file or directory of ours is worked
around or named; it is never followed, waited for, or written through.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest

from holdfast.domain.errors import HoldfastError
from tests.support.composition import Composed, composed
from tests.support.tree_hash import describe, differences
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.neighbour import NOBODY, Neighbour, neighbour
from tests.torture.scenes import allow_any_number, opened, remove_tree, restore, save, write

pytestmark = pytest.mark.requirement("ST-6")

_RENEWED_AFTER = 100
_FIRST_GUESS_CALLS = 120
_TOO_LONG_S = 20
_ANSWERS = (2, 5, 6)
"""A settings file that is none, refused, or damage: never a bug, never busy for ever."""


@pytest.fixture
def street() -> Iterator[Path]:
    """A directory that every user of the machine can enter: otherwise nothing would be proved."""
    path = Path(tempfile.mkdtemp(prefix="holdfast-torture-", dir="/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        remove_tree(path)


@contextmanager
def _mask(umask: int) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def _private_paths(street: Path) -> list[Path]:
    """The store, and what lies in the workspace's own directory."""
    below = [path for path in (street / "home").rglob("*") if not path.name.endswith("-shm")]
    return [street / "home", *below, *(street / "project/.holdfast").rglob("*")]


class _Overlooked:
    """A workspace that a neighbour looks at in the middle of one call."""

    def __init__(self, street: Path, other: Neighbour) -> None:
        self._street = street
        self._other = other
        self._at = 0
        self.found: list[str] = []
        self.tried = 0
        for name in ("home", "project"):
            remove_tree(street / name)
        write(street / "project/file", b"secret", 0o600)
        write(street / "project/dir/file", b"secret", 0o600)
        allow_any_number(street / "project")
        self._watch = WatchedFilesystem(after=self._after)
        self._stack = contextlib.ExitStack()
        self.opened: Composed = self._stack.enter_context(
            composed(street / "project", fs=self._watch.as_port())
        )
        self.longest = _FIRST_GUESS_CALLS
        self.made = [self.opened.save().id]

    def close(self) -> None:
        self._stack.close()

    def _after(self, call: Call) -> None:
        if self._watch.calls == self._at:
            paths = _private_paths(self._street)
            self.tried += len(paths)
            readable = (".holdfast/workspace.json", ".holdfast/.gitignore")
            self.found += [
                success
                for success in self._other.attempts(paths)
                if not (success.startswith("read ") and success.endswith(readable))
            ]

    def run(self, act: Callable[[], object], at: int) -> None:
        self._watch.calls, self._at = 0, at
        act()
        self._at = 0
        self.longest = max(self.longest // 2, self._watch.calls)


def test_others_can_neither_read_nor_change_the_store_at_any_call(
    campaign: Campaign, street: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(street / "home"))
    write(street / "open", b"for everybody", 0o644)
    current: list[_Overlooked] = []

    def case(case: Case) -> None:
        rng = case.rng()
        umask = rng.choice((0, 0, 0o002, 0o022, 0o077))
        with _mask(umask):
            if case.number % _RENEWED_AFTER == 0 or not current:
                for held in current:
                    held.close()
                current[:] = [_Overlooked(street, other)]
            held = current[0]
            write(street / "project/file", rng.randbytes(rng.choice((10, 50_000))))
            write(street / f"project/dir/{rng.randrange(9)}", rng.randbytes(10))

            def act() -> object:
                if rng.random() < 0.4:
                    held.made.append(held.opened.save().id)
                    return None
                return held.opened.restore(rng.choice(held.made[-3:]), best_effort=True)

            held.run(act, rng.randint(1, held.longest))
        assert not held.found, f"umask {umask:03o}\n" + "\n".join(held.found)
        campaign.note = f"{other.manner}; {held.tried:,} paths of the last store"

    title = "another user tries to open every store and staging path during a save or restore"
    with neighbour() as other:
        assert f"read {street / 'open'}" in other.attempts([street / "open"])
        try:
            campaign.run(Scenario(11, "neighbour-tries", title), case, slice_cases=25)
        finally:
            for held in current:
                held.close()


@dataclass(frozen=True, slots=True)
class _Plant:
    """Something put in the place of `name`: below the home, the store or the workspace."""

    where: str
    name: str
    kind: str

    def put(self, path: Path, precious: Path) -> None:
        """What stands there already is moved away, as whoever can plant can also do."""
        if path.is_symlink() or path.exists():
            path.rename(path.with_name(path.name + ".was"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.kind == "link to a file":
            path.symlink_to(precious)
        elif self.kind == "link to a directory":
            path.symlink_to(precious.parent)
        elif self.kind == "link to nothing":
            path.symlink_to(precious.with_name("made-by-following"))
        elif self.kind == "second name":
            os.link(precious, path)
        elif self.kind == "pipe":
            os.mkfifo(path, 0o666)
        elif self.kind == "directory":
            write(path / "theirs", b"theirs")
            path.chmod(0o777)
        else:
            write(path, b"theirs", 0o666)
        if os.geteuid() == 0 and self.kind != "second name":
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def take_away(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        was = path.with_name(path.name + ".was")
        if was.is_symlink() or was.exists():
            was.rename(path)


_KINDS = (
    "link to a file", "link to a directory", "link to nothing", "second name", "pipe", "directory",
    "file",
)  # fmt: skip
_NAMES = {
    "home": ("lock", "by-path", "by-path/{record}", "by-path/.{record}.new", "stores"),
    "store": (
        "lock", "journal", ".journal.new", "store.json", ".store.json.new", "stat-cache.db",
        "stat-cache.db-wal", "catalog.db", "catalog.db-wal", "objects/index.db", "objects/packs",
        "objects/packs/00000001.pack", "objects/packs/00000002.pack",
    ),
    "workspace": (
        ".holdfast", ".holdfast/workspace.json", ".holdfast/.workspace.json.new",
        ".holdfast/.gitignore", ".holdfast/..gitignore.new", ".holdfast/config.toml",
        ".holdfast/.holdfast-staging-x", ".holdfast/.holdfast-staging-{store}-x",
    ),
}  # fmt: skip
_OUR_OWN_DOING = {
    # Nobody else can write there. People link packs to a larger disk, and link copies as backups.
    _Plant("store", "objects/packs", "link to a directory"),
    _Plant("store", "catalog.db-wal", "second name"),
    _Plant("store", "stat-cache.db-wal", "second name"),
    # Exchanged for another, a database lives on from its log: that is damage, which is part 4.
    _Plant("store", "catalog.db", "second name"),
    _Plant("store", "catalog.db", "file"),
}
_PLANTS = [
    plant
    for where, names in _NAMES.items()
    for name in names
    for kind in _KINDS
    if (plant := _Plant(where, name, kind)) not in _OUR_OWN_DOING
]


@contextmanager
def _in_time() -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits for something that never comes")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, _TOO_LONG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Planted:
    """A workspace with an acknowledged past and something precious beside it."""

    def __init__(self, root: Path) -> None:
        remove_tree(root)
        self.project, self.home = root / "project", root / "home"
        self.precious = root / "precious" / "file"
        write(self.precious, b"precious" * 100, 0o600)
        write(self.project / "file", b"first")
        with opened(self.project, self.home, create=True) as work:
            self.first = save(work).id
            self.store = work.store.directory
            self.state = describe(self.project)
        self.record = next((self.home / "by-path").iterdir()).name

    def path(self, plant: _Plant) -> Path:
        base = {"home": self.home, "store": self.store, "workspace": self.project}[plant.where]
        return base / plant.name.format(record=self.record, store=self.store.name)

    def use(self, text: bytes) -> None:
        """As the next command would: an answer of the family is an answer."""
        write(self.project / "file", text)
        answer: HoldfastError | None = None
        try:
            with opened(self.project, self.home, create=True) as work:
                save(work)
                write(self.project / "file", text + b" and more")
                restore(work, "HEAD")
        except HoldfastError as error:
            answer = error
        status = answer.exit_status if answer is not None else _ANSWERS[0]
        assert status in _ANSWERS, f"status {status}: {answer}"

    def wrong(self) -> list[str]:
        found = []
        if self.precious.read_bytes() != b"precious" * 100:
            found.append("the precious file was written to")
        if self.precious.stat().st_mode & 0o777 != 0o600:
            found.append("the precious file has another mode")
        if sorted(os.listdir(self.precious.parent)) != ["file"]:
            found.append(f"beside the precious file: {os.listdir(self.precious.parent)}")
        return found

    def prove(self) -> list[str]:
        """Without the plant, what was acknowledged is there."""
        with opened(self.project, self.home) as work:
            restore(work, self.first)
        return differences(describe(self.project), self.state)


def test_planted_files_are_worked_around_or_named(campaign: Campaign, quick_disk: Path) -> None:
    def case(case: Case) -> None:
        plant = _PLANTS[case.number % len(_PLANTS)]
        held = _Planted(quick_disk / "place")
        path = held.path(plant)
        plant.put(path, held.precious)
        with _in_time():
            held.use(b"second")
            held.use(b"third")
        wrong = held.wrong()
        plant.take_away(path)
        wrong += held.prove()
        assert not wrong, "\n".join([str(plant), *wrong])

    campaign.run(
        Scenario(
            11, "planted", "a link, pipe, file or directory planted where Holdfast expects its own"
        ),
        case,
        slice_cases=40,
        space=len(_PLANTS),
        covered="every name by every kind",
        most_cases=len(_PLANTS),
    )


def _foreign(path: Path, patch: pytest.MonkeyPatch) -> str:
    """Make a directory somebody else's: root gives it away, others become somebody else."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return "given to another user"
    mine = os.geteuid()
    patch.setattr(os, "geteuid", lambda: mine + 1)
    return "seen as another user"


_HOMES = ("home", "home with a store", "link", "stores", "world-writable")


def test_a_data_directory_of_another_user_is_refused_or_closed(
    campaign: Campaign, quick_disk: Path
) -> None:
    manner = ""

    def case(case: Case) -> None:
        nonlocal manner
        rng = case.rng()
        kind = _HOMES[case.number % len(_HOMES)]
        with pytest.MonkeyPatch.context() as patch, _mask(rng.choice((0, 0o022))):
            manner = _try_home(quick_disk / "place", kind, rng, patch) or manner
        campaign.note = manner

    campaign.run(
        Scenario(
            11, "foreign-home", "the data directory belongs to another user, or is open to all"
        ),
        case,
        slice_cases=10,
        space=len(_HOMES),
        covered="every kind",
    )


def _try_home(root: Path, kind: str, rng: random.Random, patch: pytest.MonkeyPatch) -> str:
    remove_tree(root)
    project, home = root / "project", root / "home"
    write(project / "file", b"mine")
    if kind == "home with a store":
        with opened(project, home, create=True) as work:
            save(work)
    elif kind == "link":
        (root / "elsewhere").mkdir()
        home.symlink_to(root / "elsewhere")
    else:
        home.mkdir(mode=0o777)
        home.chmod(rng.choice((0o777, 0o770)))
    if kind == "world-writable":
        with opened(project, home, create=True) as work:
            save(work)
        assert home.stat().st_mode & 0o022 == 0
        return ""
    if kind == "stores":
        (home / "stores").mkdir(mode=0o777)
    manner = _foreign(home / "stores" if kind == "stores" else home, patch)
    before = describe(root)
    with pytest.raises(HoldfastError, match="belongs to another user") as refused:
        opened(project, home, create=True)
    assert refused.value.exit_status == 5
    assert "HOLDFAST_HOME" in (refused.value.hint or "")
    changed = differences(describe(root), before)
    assert [line for line in changed if not line.startswith("b'home'")] == []
    return manner
