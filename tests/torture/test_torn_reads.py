"""Part 7: files that change while they are saved, and changes that leave no trace but their bytes.

Beside a writer that never stops, what a checkpoint holds of the file is one state of it, or the
checkpoint says that it may not be. And of rewrites that keep the size, within a tick of the clock
and with their old times put back, none is missed. Both on the disk and in memory, where times tick
differently. A race is not repeated by its number: what is repeated is the manner of writing.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import Checkpoint, SkipReason
from holdfast.engine.restore.plan import read_report
from holdfast.engine.stored_objects import list_files, read_content
from tests.support.composition import Composed, composed
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.disks import kind_of, memory_disk
from tests.torture.restless_writer import MANNERS, SIZE, never_was, writing
from tests.torture.scenes import allow_any_number, remove_tree, write

pytestmark = pytest.mark.requirement("RL-5")

_RENEWED_AFTER = 100


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory on each of the two file systems, and its name for the table. Where there is no
    tmpfs the row says so, and the disk is tried twice."""
    memory = memory_disk()
    if request.param == "disk":
        yield tmp_path, f"disk ({kind_of(tmp_path)})"
    elif memory is None:
        yield tmp_path, f"memory (none here, so {kind_of(tmp_path)} again)"
    else:
        path = Path(tempfile.mkdtemp(prefix="holdfast-torture-", dir=memory))
        yield path, f"memory ({kind_of(path)})"
        remove_tree(path)


def _name(root: tuple[Path, str]) -> str:
    return root[1].split()[0]


def _stored(opened: Composed, checkpoint: Checkpoint, path: bytes) -> bytes:
    vault = opened.engine.vault
    found = dict(list_files(vault.load_tree, checkpoint.tree))
    return b"".join(read_content(vault.objects, found[path]))


class _Watched:
    """A workspace with one file that somebody changes all the time."""

    def __init__(self, root: Path, manner: str, seed: int, home: Path) -> None:
        self.manner = manner
        self._stack = contextlib.ExitStack()
        remove_tree(root)
        remove_tree(home)
        project = root / "project"
        write(project / "file", b"a" * SIZE)
        allow_any_number(project)
        self._stack.enter_context(writing(project / "file", manner, seed))
        self.opened = self._stack.enter_context(composed(project))

    def close(self) -> None:
        self._stack.close()


def test_a_file_that_is_written_all_the_time_is_one_state_or_marked(
    campaign: Campaign, root: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = root
    monkeypatch.setenv("HOLDFAST_HOME", str(path / "home"))
    current: list[_Watched] = []
    counts = {"marked": 0, "mixtures": 0}
    batch = 5 if campaign.is_slice else _RENEWED_AFTER

    def case(case: Case) -> None:
        if case.number % batch == 0 or not current:
            for watched in current:
                watched.close()
            current.clear()
            manner = MANNERS[case.number // batch % len(MANNERS)]
            seed = case.rng().getrandbits(32)
            current.append(_Watched(path / "place", manner, seed, path / "home"))
        watched = current[0]
        checkpoint = watched.opened.save()
        marked = any(
            s.reason is SkipReason.UNSTABLE
            for s in read_report(watched.opened.engine.vault, checkpoint)
        )
        assert marked == checkpoint.partial
        content = _stored(watched.opened, checkpoint, b"file")
        mixture = never_was(content, watched.manner)
        counts["mixtures"] += mixture
        counts["marked"] += marked
        campaign.note = f"{counts['marked']:,} marked, {counts['mixtures']:,} of them mixtures"
        assert marked or not mixture, f"an unmarked mixture, {watched.manner}"

    title = f"a program rewrites, truncates, extends, maps or replaces a file during saves, {said}"
    try:
        scenario = Scenario(7, f"torn-reads-{_name(root)}", title)
        campaign.run(scenario, case, slice_cases=batch * len(MANNERS))
    finally:
        for watched in current:
            watched.close()


class _Rewriter:
    """Changes that keep the size, and as much else as can be kept."""

    def __init__(self, project: Path, rng: random.Random) -> None:
        self._project = project
        self._rng = rng

    def in_place(self, path: Path, data: bytes) -> None:
        with path.open("r+b") as file:
            file.write(data)

    def in_place_with_old_times(self, path: Path, data: bytes) -> None:
        status = path.stat()
        self.in_place(path, data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def truncated_first(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def replaced(self, path: Path, data: bytes) -> None:
        beside = path.with_name("beside")
        beside.write_bytes(data)
        beside.rename(path)

    def replaced_with_old_times(self, path: Path, data: bytes) -> None:
        status = path.stat()
        beside = path.with_name("beside")
        beside.write_bytes(data)
        os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
        beside.rename(path)

    def through_memory(self, path: Path, data: bytes) -> None:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), len(data)) as mapping:
            mapping[:] = data

    def under_another_name(self, path: Path, data: bytes) -> None:
        """Through a second name, which is gone when the save comes."""
        other = path.with_name("other")
        os.link(path, other)
        self.in_place(other, data)
        other.unlink()

    def any(self) -> Callable[[Path, bytes], None]:
        manners = (
            self.in_place,
            self.in_place_with_old_times,
            self.truncated_first,
            self.replaced,
            self.replaced_with_old_times,
            self.through_memory,
            self.under_another_name,
        )
        return self._rng.choice(manners)


def test_a_rewrite_of_the_same_size_in_the_same_tick_is_never_missed(
    campaign: Campaign, root: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = root
    project = path / "project"
    monkeypatch.setenv("HOLDFAST_HOME", str(path / "home"))
    names = [f"{directory}file-{n}" for directory in ("", "dir/", "dir/deep/") for n in range(3)]

    def case(case: Case) -> None:
        """Some rewrites between two saves; by a process that knows the tree, or a new one."""
        rng = case.rng()
        if case.number % _RENEWED_AFTER == 0 or not (path / "home").exists():
            remove_tree(path / "home")
            remove_tree(project)
            for name in names:
                write(project / name, b"%08d" % 0)
            allow_any_number(project)
        with composed(project) as opened:
            for turn in range(4):
                rewriter = _Rewriter(project, rng)
                for name in rng.sample(names, rng.randint(1, 3)):
                    data = b"%08d" % ((case.number * 4 + turn) % 10**8)
                    rewriter.any()(project / name, data)
                expected = {os.fsencode(n): (project / n).read_bytes() for n in names}
                checkpoint = opened.save()
                found = {name: _stored(opened, checkpoint, name) for name in expected}
                assert found == expected, f"turn {turn}"

    title = (
        f"files rewritten with the same size and times within one clock tick, {said}; 4 saves each"
    )
    campaign.run(Scenario(7, f"same-tick-{_name(root)}", title), case, slice_cases=15)
