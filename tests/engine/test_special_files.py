"""What is not a plain file, or may not be read, is reported and never opened (RL-6)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.errors import HoldfastError
from holdfast.engine.restore.plan import read_report
from tests.support.composition import composed
from tests.support.hostile_trees import descended, fill, remove_deep
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe, differences
from tests.support.watched_filesystem import Call, WatchedFilesystem

pytestmark = [pytest.mark.requirement("RL-6"), pytest.mark.on_disk]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "plain", b"1")
    return workspace


@pytest.fixture
def special(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> set[bytes]:
    os.mkfifo(workspace / "fifo")
    monkeypatch.chdir(workspace)  # a socket's path is limited to a hundred bytes
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    listener.close()
    names = {b"fifo", b"socket"}
    if os.geteuid() == 0:
        os.mknod(workspace / "null", 0o600 | 0o020000, os.makedev(1, 3))
        names.add(b"null")
    return names


def test_special_files_are_reported_and_never_opened(workspace: Path, special: set[bytes]) -> None:
    opened_names: set[bytes] = set()

    def note(call: Call) -> None:
        if call.member == "open":
            opened_names.update(call.names())

    fs = WatchedFilesystem(before=note)
    with composed(workspace, fs=fs.as_port()) as opened:
        made = opened.save()
        skipped = {
            s.path for s in read_report(opened.engine.vault, made) if s.reason is SkipReason.SPECIAL
        }
        fill(workspace / "plain", b"2")
        opened.save()
        opened.restore(made.id)
    assert skipped == special
    assert not opened_names & special
    assert not made.partial
    assert (workspace / "plain").read_bytes() == b"1"
    assert (workspace / "fifo").is_fifo()


@pytest.mark.parametrize("name", [".gitignore", ".holdfastignore", "CACHEDIR.TAG", "pyvenv.cfg"])
def test_pipes_in_place_of_files_that_decide_about_others_are_never_opened(
    workspace: Path, name: str
) -> None:
    _require_never_opened(workspace, "sub/" + name, "sub/beside")


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_pipes_that_are_named_like_a_database_or_its_parts_are_never_opened(
    workspace: Path, suffix: str
) -> None:
    _require_never_opened(workspace, "pipe", "pipe" + suffix)
    _require_never_opened(workspace, "data" + suffix, "data")


def _require_never_opened(workspace: Path, pipe: str, beside: str) -> None:
    opened_names: set[bytes] = set()

    def note(call: Call) -> None:
        if call.member == "open":
            opened_names.update(call.names())

    fill(workspace / beside, b"SQLite format 3\0" + bytes(4080))
    os.mkfifo(workspace / pipe)
    with composed(workspace, fs=WatchedFilesystem(before=note).as_port()) as opened:
        for _ in range(2):
            made = opened.save()
            reasons = {s.path: s.reason for s in read_report(opened.engine.vault, made)}
            assert reasons[pipe.encode()] is SkipReason.SPECIAL
            fill(workspace / beside, b"SQLite format 3\0" + bytes(8176))
    assert os.path.basename(pipe).encode() not in opened_names


def test_a_fifo_swapped_in_between_look_and_open_does_not_hang_the_scan(workspace: Path) -> None:
    def swap(call: Call) -> None:
        if call.member == "stat" and b"plain" in call.names():
            (workspace / "plain").unlink(missing_ok=True)
            os.mkfifo(workspace / "plain")
            fs.after = lambda call: None

    fs = WatchedFilesystem(after=swap)
    with composed(workspace, fs=fs.as_port()) as opened:
        made = opened.save()
        said = [s.path for s in read_report(opened.engine.vault, made)]
    assert b"plain" in said


@pytest.mark.usefixtures("ordinary_permissions")
def test_unreadable_paths_are_reported_and_make_the_checkpoint_partial(workspace: Path) -> None:
    fill(workspace / "locked-file", b"x", 0o000)
    fill(workspace / "locked/inner", b"x")
    (workspace / "locked").chmod(0o000)
    try:
        with SessionCheckpointer(workspace, "s") as session:
            outcome = session.save_checkpoint("why")
            assert {s.path for s in outcome.failures} == {b"locked-file", b"locked"}
            assert outcome.checkpoint.partial
            fill(workspace / "plain", b"2")
            session.restore(outcome.checkpoint.id)
        assert (workspace / "plain").read_bytes() == b"1"
        assert (workspace / "locked-file").stat().st_mode & 0o777 == 0
        assert (workspace / "locked").stat().st_mode & 0o777 == 0
    finally:
        (workspace / "locked").chmod(0o700)


@pytest.mark.usefixtures("ordinary_permissions")
def test_a_file_its_owner_locked_comes_back_and_undo_locks_it_again(workspace: Path) -> None:
    fill(workspace / "dir/inner", b"x")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("readable")
        (workspace / "plain").chmod(0o000)
        (workspace / "dir").chmod(0o000)
        session.restore(first)
        assert (workspace / "plain").read_bytes() == b"1"
        assert (workspace / "dir/inner").read_bytes() == b"x"
        session.undo()
        modes = [(workspace / name).stat().st_mode & 0o777 for name in ("plain", "dir")]
        session.redo()
        assert (workspace / "plain").read_bytes() == b"1"
        assert (workspace / "dir/inner").read_bytes() == b"x"
    assert modes == [0, 0]


@pytest.mark.usefixtures("ordinary_permissions")
def test_undo_closes_a_directory_again_above_one_that_had_to_be_opened_up(workspace: Path) -> None:
    fill(workspace / "vault/inner/file", b"x")
    (workspace / "vault/inner").chmod(0o000)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("the inner directory cannot be read")
        (workspace / "vault").chmod(0o000)
        session.restore(first)
        session.undo()
        outer = (workspace / "vault").stat().st_mode & 0o777
        (workspace / "vault").chmod(0o700)
        inner = (workspace / "vault/inner").stat().st_mode & 0o777
        (workspace / "vault/inner").chmod(0o700)
        assert session.stats["restores"] == 2
    assert (outer, inner) == (0, 0)
    assert (workspace / "vault/inner/file").read_bytes() == b"x"


@pytest.mark.usefixtures("ordinary_permissions")
def test_files_in_read_only_directories_come_back_and_the_directories_stay_read_only(
    workspace: Path,
) -> None:
    fill(workspace / "ro/deep/file", b"old")
    fill(workspace / "ro/gone", b"old")
    (workspace / "ro/deep").chmod(0o555)
    (workspace / "ro").chmod(0o555)
    original = describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        (workspace / "ro").chmod(0o755)
        (workspace / "ro/gone").unlink()
        (workspace / "ro/deep").chmod(0o755)
        fill(workspace / "ro/deep/file", b"new")
        fill(workspace / "ro/deep/extra/more", b"new")
        (workspace / "ro/deep/extra").chmod(0o555)
        (workspace / "ro/deep").chmod(0o555)
        (workspace / "ro").chmod(0o555)
        wrecked = describe(workspace)
        session.restore(first)
        assert differences(describe(workspace), original) == []
        session.undo()
        assert differences(describe(workspace), wrecked) == []
        session.restore_checkpoint(first, ["ro/deep/file"])
        partly = wrecked | {b"ro/deep/file": original[b"ro/deep/file"]}
        assert differences(describe(workspace), partly) == []
        for name in ("ro", "ro/deep", "ro/deep/extra"):
            (workspace / name).chmod(0o755)


@pytest.mark.usefixtures("ordinary_permissions")
def test_a_workspace_that_may_not_be_written_can_be_saved(workspace: Path) -> None:
    workspace.chmod(0o555)
    try:
        with SessionCheckpointer(workspace, "s") as session:
            first = session.checkpoint("read-only")
        with SessionCheckpointer.load(workspace, "s") as session:
            assert [path for path, _ in get_snapshot(session, first).manifest] == ["plain"]
    finally:
        workspace.chmod(0o755)


@pytest.mark.usefixtures("ordinary_permissions")
def test_a_workspace_that_may_not_be_read_is_refused_by_name(workspace: Path) -> None:
    workspace.chmod(0o000)
    try:
        with (
            pytest.raises(HoldfastError) as refused,
            SessionCheckpointer(workspace, "s") as session,
        ):
            session.checkpoint("why")
        assert refused.value.hint
    finally:
        workspace.chmod(0o755)


def test_a_tree_deeper_than_any_limit_is_saved_as_far_as_it_goes(
    workspace: Path, request: pytest.FixtureRequest
) -> None:
    with descended(workspace, 1_500, create=True):
        pass
    request.addfinalizer(lambda: remove_deep(workspace / "d"))
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("deep")
        fill(workspace / "plain", b"2")
        session.restore(outcome.checkpoint.id)
    assert (workspace / "plain").read_bytes() == b"1"
    assert SkipReason.TOO_DEEP in {s.reason for s in outcome.skipped}
    assert outcome.checkpoint.partial
