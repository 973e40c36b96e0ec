"""Writes that stop half-way, in SQLite too, and saves that are interrupted: the next one is right.

The limit on the size of a process's files simulates a full disk: unlike the file system port it
also reaches the databases.
"""

from __future__ import annotations

import contextlib
import errno
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError
from tests.support.composition import composed, configure
from tests.support.hostile_trees import fill, noise
from tests.support.tree_hash import describe, differences
from tests.support.watched_filesystem import Call, WatchedFilesystem
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.on_disk


@contextmanager
def _no_file_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _largest_file(store: Path) -> int:
    return max(path.stat().st_size for path in store.rglob("*") if path.is_file())


@pytest.mark.requirement("CP-7", "ST-3")
@pytest.mark.parametrize("same_process", [True, False])
def test_a_save_that_finds_no_room_half_way_leaves_what_was_acknowledged(
    tmp_path: Path, same_process: bool
) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"0")
    session = SessionCheckpointer(workspace, "s")
    known = {session.checkpoint("first"): describe(workspace)}
    unnamed: list[str] = []
    refused = 0
    for number in range(60):
        fill(workspace / "file", noise(2_000 + number * 50, number))
        fill(workspace / f"dir-{number}/file", b"%d" % number)
        limit = _largest_file(session.save()) + number * 700 - 8_000
        try:
            with _no_file_larger_than(max(limit, 4_096)):
                known[session.checkpoint(f"number {number}")] = describe(workspace)
        except HoldfastError:
            refused += 1
        except Exception as error:
            unnamed.append(f"{number}: {error!r}")
        if not same_process:
            session.close()
            session = SessionCheckpointer(workspace, "s")
    assert set(known) == {s.id for s in session.history(None)}
    for checkpoint, state in known.items():
        session.restore(checkpoint)
        assert differences(describe(workspace), state) == []
    session.close()
    assert refused > 5
    assert len(known) > 5
    assert not unnamed, "\n".join(unnamed)


@pytest.mark.requirement("RB-3")
def test_a_restore_that_finds_no_room_half_way_is_rolled_back_or_done(tmp_path: Path) -> None:
    story = Story(tmp_path / "project")
    with composed(story.workspace) as opened:
        store = opened.store.directory
    unnamed: list[str] = []
    for number in range(40):
        story.go_to(story.bad)
        limit = _largest_file(store) + number * 500 - 10_000
        try:
            with composed(story.workspace) as opened, _no_file_larger_than(max(limit, 1)):
                opened.restore(story.good)
        except HoldfastError:
            pass
        except Exception as error:
            unnamed.append(f"{number}: {error!r}")
        found = story.recover()
        assert found in (story.old, story.new), (number, differences(found, story.new))
    story.check()
    assert not unnamed, "\n".join(unnamed)


def _interrupt(call: Call) -> None:
    raise KeyboardInterrupt


def _fail(call: Call) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.requirement("CP-7")
@pytest.mark.parametrize("trouble", [_interrupt, _fail])
def test_a_save_after_one_that_was_cut_short_holds_everything(
    tmp_path: Path, trouble: Callable[[Call], None]
) -> None:
    """In the same process: what the cut save thought it had stored must not be believed."""
    workspace = tmp_path / "project"
    fs = WatchedFilesystem()
    fill(workspace / "large", noise(1_500_000))
    configure(workspace, max_manual_checkpoints=0)
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.save()
        finished = False
        for at in range(1, 200):
            fill(workspace / "file", b"version %d" % at)
            fill(workspace / f"dir/{at % 7}", noise(3_000, at))

            def cut(call: Call, at: int = at) -> None:
                if call.number == at and call.member != "close":
                    trouble(call)

            fs.calls, fs.before = 0, cut
            with contextlib.suppress(HoldfastError, OSError, KeyboardInterrupt):
                opened.save()
            finished = fs.calls < at
            fs.before = lambda call: None
            state = describe(workspace)
            made = opened.save()
            assert not made.partial
            fill(workspace / "file", b"wrecked")
            (workspace / f"dir/{at % 7}").unlink()
            opened.restore(made.id)
            assert differences(describe(workspace), state) == [], at
            if finished:
                break
        assert finished
        assert list(opened.engine.vault.objects.check(data=True)) == []
