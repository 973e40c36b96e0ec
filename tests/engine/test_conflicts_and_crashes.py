"""A program works in the tree while a restore dies, or is being recovered from: nothing is lost."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import pytest

from holdfast.domain.errors import HoldfastError
from tests.support.composition import composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris
from tests.support.watched_filesystem import Call, WatchedFilesystem, once

pytestmark = [pytest.mark.requirement("RB-6"), pytest.mark.in_memory]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "edited", b"old")
    fill(workspace / "deleted", b"old")
    return workspace


class _Dead(BaseException):
    """Raised by every call of a process from the moment of its death."""


def _dying_after(move: str) -> WatchedFilesystem:
    dead: list[Call] = []

    def before(call: Call) -> None:
        if dead:
            raise _Dead

    def after(call: Call) -> None:
        if call.member == move:
            dead.append(call)
            raise _Dead

    return WatchedFilesystem(before, after)


@pytest.mark.requirement("RB-3", "RB-4")
@pytest.mark.parametrize("kind", ["directory", "link"])
def test_what_took_the_place_of_a_file_is_not_lost_when_the_restore_dies_holding_it(
    workspace: Path, kind: str
) -> None:
    """Dead after the move, before it could look at what came out."""
    with composed(workspace) as opened:
        first = opened.save()
    fill(workspace / "edited", b"by the agent")
    dying = _dying_after("exchange")
    with contextlib.suppress(_Dead), composed(workspace, fs=dying.as_port()) as opened:
        opened.restore(first.id)
    (staging,) = (workspace / ".holdfast").glob(".holdfast-staging-*")
    (slot,) = staging.iterdir()
    assert slot.read_bytes() == b"by the agent"
    slot.unlink()
    if kind == "directory":
        fill(slot / "mine", b"by a person")
    else:
        slot.symlink_to("somewhere of a person")
    with composed(workspace) as opened:
        opened.engine.recover()
        assert (workspace / "edited").read_bytes() == b"old"
        opened.undo()
    if kind == "directory":
        assert (workspace / "edited/mine").read_bytes() == b"by a person"
    else:
        assert os.readlink(workspace / "edited") == "somewhere of a person"
    assert debris(workspace) == []


@pytest.mark.requirement("RB-4")
def test_a_path_that_was_several_things_in_turn_keeps_all_of_them(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        (workspace / "edited").unlink()
        fill(workspace / "edited/inner", b"by the agent")

        def work(call: Call) -> None:
            if call.member == "rename" and b"inner" in call.names():
                fill(workspace / "edited/inner", b"by a person, inside")
            if call.member == "rename_new" and b"edited" in call.names():
                fill(workspace / "edited", b"by a person, in its place")

        fs.before = work
        outcome = opened.restore(first.id)
        fs.before = lambda call: None
        assert (workspace / "edited").read_bytes() == b"old"
        conflicts = [conflict.path for conflict in outcome.conflicts]
        assert conflicts == [b"edited.meanwhile-1", b"edited/inner"]
        opened.undo()
    assert (workspace / "edited/inner").read_bytes() == b"by a person, inside"
    assert (workspace / "edited.meanwhile-1").read_bytes() == b"by a person, in its place"


def _killed_restore(workspace: Path) -> None:
    """Of two changed files one is back already."""
    with composed(workspace) as opened:
        first = opened.save()
    fill(workspace / "edited", b"by the agent")
    fill(workspace / "deleted", b"by the agent")
    dying = _dying_after("exchange")
    with contextlib.suppress(_Dead), composed(workspace, fs=dying.as_port()) as opened:
        opened.restore(first.id)
    assert (workspace / "deleted").read_bytes() == b"old"
    assert (workspace / "edited").read_bytes() == b"by the agent"


@pytest.mark.requirement("RB-3", "RB-4")
def test_what_another_process_wrote_during_a_recovery_that_could_not_be_rolled_back_is_not_lost(
    workspace: Path,
) -> None:
    _killed_restore(workspace)
    exchanges: list[Call] = []

    def before(call: Call) -> None:
        if call.member == "exchange":
            exchanges.append(call)
            if len(exchanges) == 1:
                fill(workspace / "edited", b"by a person")
            if len(exchanges) == 2:  # taking the first one back
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    def after(call: Call) -> None:
        if call in exchanges[:1]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    fs = WatchedFilesystem(before, after)
    with composed(workspace, fs=fs.as_port()) as opened:
        opened.engine.recover()
    assert len(exchanges) > 2
    assert (workspace / "edited").read_bytes() == b"by a person"
    assert (workspace / "deleted").read_bytes() == b"by the agent"
    assert debris(workspace) == []


@pytest.mark.requirement("RB-3")
def test_a_recovery_that_failed_and_is_killed_before_it_went_the_other_way_is_recovered_from(
    workspace: Path,
) -> None:
    _killed_restore(workspace)
    dead: list[Call] = []
    exchanges: list[Call] = []

    def before(call: Call) -> None:
        if dead:
            raise _Dead
        if call.member == "exchange" and not exchanges:
            exchanges.append(call)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def after(call: Call) -> None:
        if call.member == "unlink" and call.names()[0].endswith(b"/journal"):
            dead.append(call)
            raise _Dead

    fs = WatchedFilesystem(before, after)
    with (
        contextlib.suppress(_Dead, HoldfastError),
        composed(workspace, fs=fs.as_port()) as opened,
    ):
        opened.engine.recover()
    with composed(workspace) as opened:
        opened.engine.recover()
    contents = {(workspace / name).read_bytes() for name in ("edited", "deleted")}
    assert contents in ({b"old"}, {b"by the agent"})


def test_a_closed_directory_that_cannot_go_stays_closed(workspace: Path) -> None:
    def work() -> None:
        fill(workspace / "made/person", b"mine")

    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "made/agent", b"x")
        (workspace / "made").chmod(0o550)
        fs.before = once(lambda call: call.member == "rmdir" and b"made" in call.names(), work)
        outcome = opened.restore(first.id)
    assert [problem.path for problem in outcome.skipped] == [b"made"]
    assert (workspace / "made/person").read_bytes() == b"mine"
    assert (workspace / "made").stat().st_mode & 0o7777 == 0o550
