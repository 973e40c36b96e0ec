"""A program works in the tree while a restore runs: nothing of theirs is lost (RB-6).

The other writer acts at one exact call of the restore, so each moment is met on every run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.domain.errors import HoldfastError, RestoreFailed
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.stored_objects import entry_at, list_files, read_content
from holdfast.engine.undo.undo import redo_request
from holdfast.ports.catalog import all_checkpoints
from tests.support.composition import SESSION, Composed, composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris, describe
from tests.support.watched_filesystem import Call, WatchedFilesystem, once

pytestmark = pytest.mark.requirement("RB-6")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "edited", b"old")
    fill(workspace / "deleted", b"old")
    fill(workspace / "dir/kept", b"same")
    return workspace


def _writing(path: Path, content: bytes, mode: int | None = None) -> Callable[[], None]:
    """A program that writes a file when asked to."""

    def write() -> None:
        fill(path, content, mode)

    return write


def _before_first_change(action: Callable[[], None]) -> Callable[[Call], None]:
    """When everything is staged and the first path is about to be moved."""
    return once(lambda call: call.member in ("exchange", "rename_new"), action)


def _safety_content(opened: Composed, safety: str, path: bytes) -> bytes:
    checkpoint = opened.engine.resolve(SESSION, safety)
    entries = dict(list_files(opened.engine.vault.load_tree, checkpoint.tree))
    return b"".join(read_content(opened.engine.vault.objects, entries[path]))


@pytest.mark.parametrize("best_effort", [False, True])
def test_a_file_changed_before_it_is_replaced_is_saved_reported_and_undoable(
    workspace: Path, best_effort: bool
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        fs.before = _before_first_change(_writing(workspace / "edited", b"by a person"))
        outcome = opened.restore(first.id, best_effort=best_effort)
        assert (workspace / "edited").read_bytes() == b"old"
        assert [conflict.path for conflict in outcome.conflicts] == [b"edited"]
        assert _safety_content(opened, outcome.safety, b"edited") == b"by a person"
        opened.undo()
    assert (workspace / "edited").read_bytes() == b"by a person"
    assert debris(workspace) == []


def test_a_file_changed_before_it_is_deleted_is_saved_reported_and_undoable(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "new", b"by the agent")
        at = once(
            lambda call: call.member == "rename" and b"new" in call.names(),
            _writing(workspace / "new", b"by a person", 0o600),
        )
        fs.before = at
        outcome = opened.restore(first.id)
        assert not (workspace / "new").exists()
        assert [conflict.path for conflict in outcome.conflicts] == [b"new"]
        opened.undo()
    assert (workspace / "new").read_bytes() == b"by a person"
    assert (workspace / "new").stat().st_mode & 0o7777 == 0o600


def test_a_file_created_where_one_is_to_return_is_saved_reported_and_undoable(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        (workspace / "deleted").unlink()
        fs.before = _before_first_change(_writing(workspace / "deleted", b"by a person"))
        outcome = opened.restore(first.id)
        assert (workspace / "deleted").read_bytes() == b"old"
        assert [conflict.path for conflict in outcome.conflicts] == [b"deleted"]
        opened.undo()
    assert (workspace / "deleted").read_bytes() == b"by a person"


def test_a_link_created_where_a_file_is_to_return_is_saved_reported_and_undoable(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        (workspace / "deleted").unlink()
        fs.before = _before_first_change(lambda: (workspace / "deleted").symlink_to("dir/kept"))
        outcome = opened.restore(first.id)
        assert (workspace / "deleted").read_bytes() == b"old"
        assert (workspace / "dir/kept").read_bytes() == b"same"
        assert [conflict.path for conflict in outcome.conflicts] == [b"deleted"]
        opened.undo()
    assert os.readlink(workspace / "deleted") == "dir/kept"


def test_a_file_created_in_a_directory_that_is_to_go_stays_and_is_reported(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "made/by/agent", b"x")
        fs.before = once(
            lambda call: call.member == "rmdir" and b"by" in call.names(),
            _writing(workspace / "made/by/person", b"mine"),
        )
        outcome = opened.restore(first.id)
        assert (workspace / "made/by/person").read_bytes() == b"mine"
        assert not (workspace / "made/by/agent").exists()
        assert b"made/by" in [problem.path for problem in outcome.skipped]
        opened.undo()
        assert (workspace / "made/by/agent").read_bytes() == b"x"
        opened.engine.restore(redo_request(opened.engine.vault, SESSION))
    assert (workspace / "made/by/person").read_bytes() == b"mine"


def test_a_directory_that_appears_where_a_file_is_to_return_stops_the_restore_whole(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        (workspace / "deleted").unlink()
        fill(workspace / "edited", b"by the agent")
        fs.before = _before_first_change(_writing(workspace / "deleted/mine", b"by a person"))
        with pytest.raises(HoldfastError):
            opened.restore(first.id)
        assert (workspace / "edited").read_bytes() == b"by the agent"
        assert (workspace / "deleted/mine").read_bytes() == b"by a person"
        assert debris(workspace) == []
        fs.before = lambda call: None
        opened.restore(first.id)
        assert (workspace / "deleted").read_bytes() == b"old"
        opened.undo()
    assert (workspace / "deleted/mine").read_bytes() == b"by a person"


def _replacing_by_directory(path: Path) -> Callable[[], None]:
    """A program that puts a directory in the place of a file in one move."""
    aside = path.parent.parent / "made elsewhere"
    fill(aside / "mine", b"by a person")

    def replace() -> None:
        path.unlink(missing_ok=True)
        aside.rename(path)

    return replace


@pytest.mark.requirement("RB-4")
@pytest.mark.parametrize("best_effort", [False, True])
@pytest.mark.parametrize(("name", "move"), [("edited", "exchange"), ("new", "rename")])
def test_a_directory_that_takes_the_place_of_a_file_in_the_last_moment_is_returned(
    workspace: Path, name: str, move: str, best_effort: bool
) -> None:
    """Between the look at the destination and the move there is time for another program."""
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / name, b"by the agent")
        (workspace / "deleted").unlink()
        fs.before = once(
            lambda call: call.member == move and name.encode() in call.names(),
            _replacing_by_directory(workspace / name),
        )
        if best_effort:
            outcome = opened.restore(first.id, best_effort=True)
            assert [problem.path for problem in outcome.skipped][:1] == [name.encode()]
            assert (workspace / "deleted").read_bytes() == b"old"
        else:
            with pytest.raises(RestoreFailed, match="a directory appeared in its place"):
                opened.restore(first.id)
            assert not (workspace / "deleted").exists()
    assert (workspace / name / "mine").read_bytes() == b"by a person"
    assert debris(workspace) == []


@pytest.mark.requirement("RB-4")
def test_a_directory_that_appears_while_a_restore_is_rolled_back_is_not_lost(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        appear = _replacing_by_directory(workspace / "edited")
        exchanges: list[Call] = []

        def before(call: Call) -> None:
            if call.member == "exchange":
                exchanges.append(call)
                if len(exchanges) == 2:  # the one that rolls the first back
                    appear()

        def after(call: Call) -> None:
            if call is exchanges[0]:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        fs.before = before
        fs.after = lambda call: after(call) if exchanges else None
        with pytest.raises(RestoreFailed, match="rolling it back failed too"):
            opened.restore(first.id)
        assert (workspace / "edited/mine").read_bytes() == b"by a person"
    with composed(workspace) as opened:
        opened.engine.recover()
        assert (workspace / "edited").read_bytes() == b"by the agent"
        opened.undo()
    assert (workspace / "edited/mine").read_bytes() == b"by a person"
    assert debris(workspace) == []


@pytest.mark.requirement("RB-4")
def test_a_file_changed_after_it_was_replaced_is_not_lost_when_the_restore_is_rolled_back(
    workspace: Path,
) -> None:
    """Verification finds the person's bytes; rolling the restore back must not delete them."""
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        fs.after = once(
            lambda call: call.member == "exchange",
            _writing(workspace / "edited", b"by a person"),
        )
        with contextlib.suppress(HoldfastError):
            opened.restore(first.id)
        on_disk = (workspace / "edited").read_bytes()
        stored = {
            _safety_content(opened, checkpoint.id, b"edited")
            for checkpoint in opened.engine.vault.catalog.history(SESSION, records=True)
        }
    assert b"by a person" in stored | {on_disk}
    assert b"by the agent" in stored | {on_disk}
    assert debris(workspace) == []


@pytest.mark.requirement("RB-4")
def test_a_file_that_appears_while_a_restore_is_rolled_back_is_not_lost(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "a-new", b"by the agent")
        (workspace / "deleted").unlink()

        def fail(call: Call) -> None:
            if call.member == "rename_new" and b"deleted" in call.names():
                fs.before = lambda call: None
                fill(workspace / "a-new", b"by a person")
                raise OSError(5, "Input/output error")

        fs.before = fail
        with pytest.raises(HoldfastError):
            opened.restore(first.id)
        stored = set()
        for checkpoint in opened.engine.vault.catalog.history(SESSION, records=True):
            try:
                stored.add(_safety_content(opened, checkpoint.id, b"a-new"))
            except KeyError:
                continue
    with composed(workspace) as opened:
        opened.engine.recover()
        everything = stored | {p.read_bytes() for p in workspace.glob("*") if p.is_file()}
    assert b"by a person" in everything
    assert b"by the agent" in everything
    assert debris(workspace) == []


@pytest.mark.requirement("RB-5")
def test_a_change_of_mode_alone_is_no_conflict_and_undo_keeps_the_bytes(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        fs.before = _before_first_change(lambda: (workspace / "edited").chmod(0o600))
        opened.restore(first.id)
        opened.undo()
    assert (workspace / "edited").read_bytes() == b"by the agent"


def test_an_unrelated_file_written_meanwhile_is_left_alone(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        before = describe(workspace)
        fill(workspace / "edited", b"by the agent")
        fs.before = _before_first_change(_writing(workspace / "mine", b"by a person"))
        outcome = opened.restore(first.id)
    assert outcome.verified
    assert (workspace / "mine").read_bytes() == b"by a person"
    after = describe(workspace)
    del after[b"mine"]
    assert after == before


def _blocked_at_last(
    workspace: Path, fs: WatchedFilesystem, meanwhile: Callable[[], object]
) -> None:
    """A program acts `meanwhile`, and then blocks the last step of a restore."""

    def act() -> None:
        meanwhile()
        (workspace / "x").mkdir()

    fs.before = once(lambda call: call.member == "rename_new" and call.arguments[1] == b"x", act)


def test_a_directory_made_again_meanwhile_is_no_hindrance_to_taking_back(workspace: Path) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        fill(workspace / "x", b"old")
        first = opened.save()
        (workspace / "x").unlink()
        fill(workspace / "gone/file", b"by the agent", 0o600)
        (workspace / "gone").chmod(0o750)
        _blocked_at_last(workspace, fs, lambda: fill(workspace / "gone/other", b"by a person"))
        with pytest.raises(RestoreFailed, match="rolled back"):
            opened.restore(first.id)
        assert (workspace / "gone").stat().st_mode & 0o777 == 0o750
    assert (workspace / "gone/file").read_bytes() == b"by the agent"
    assert (workspace / "gone/other").read_bytes() == b"by a person"
    assert debris(workspace) == []


def test_a_directory_that_another_process_uses_meanwhile_stays_when_all_is_rolled_back(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        fill(workspace / "made/file", b"old")
        fill(workspace / "x", b"old")
        first = opened.save()
        (workspace / "x").unlink()
        (workspace / "made/file").unlink()
        (workspace / "made").rmdir()
        _blocked_at_last(workspace, fs, lambda: fill(workspace / "made/other", b"by a person"))
        with pytest.raises(RestoreFailed, match="rolled back"):
            opened.restore(first.id)
    assert [path.name for path in (workspace / "made").iterdir()] == ["other"]
    assert (workspace / "made/other").read_bytes() == b"by a person"
    assert debris(workspace) == []


def test_what_another_process_removes_meanwhile_does_not_stop_a_rollback(workspace: Path) -> None:
    fs = WatchedFilesystem()

    def meanwhile() -> None:
        shutil.rmtree(workspace / "made")
        fill(workspace / "made", b"a file of a person")
        (workspace / "mode").unlink()

    with composed(workspace, fs=fs.as_port()) as opened:
        fill(workspace / "made/file", b"old")
        fill(workspace / "mode", b"same", 0o640)
        fill(workspace / "x", b"old")
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        (workspace / "x").unlink()
        shutil.rmtree(workspace / "made")
        (workspace / "mode").chmod(0o600)
        _blocked_at_last(workspace, fs, meanwhile)
        with pytest.raises(RestoreFailed, match=r"rolled back$"):
            opened.restore(first.id)
    assert (workspace / "edited").read_bytes() == b"by the agent"
    assert (workspace / "made").read_bytes() == b"a file of a person"
    assert not (workspace / "mode").exists()
    assert debris(workspace) == []


@pytest.mark.usefixtures("ordinary_permissions")
def test_shared_memory_that_nobody_may_read_does_not_stop_a_restore(workspace: Path) -> None:
    fs = WatchedFilesystem()
    shared = workspace / "edited-shm"
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        fill(shared, b"by the agent")
        fs.before = once(
            lambda call: call.member == "rename" and b"edited-shm" in call.names(),
            lambda: shared.chmod(0),
        )
        opened.restore(first.id)
        assert not shared.exists()
        opened.undo()
    assert shared.read_bytes() == b"by the agent"
    assert debris(workspace) == []


def test_what_cannot_be_rolled_back_now_is_reported_and_rolled_back_by_the_next_command(
    workspace: Path,
) -> None:
    fs = WatchedFilesystem()
    in_the_way = workspace / "gone"
    with composed(workspace, fs=fs.as_port()) as opened:
        fill(workspace / "x", b"old")
        first = opened.save()
        (workspace / "x").unlink()
        fill(workspace / "gone/file", b"by the agent")
        _blocked_at_last(workspace, fs, lambda: fill(in_the_way, b"a file of a person"))
        with pytest.raises(RestoreFailed, match="Nothing is lost") as failure:
            opened.restore(first.id)
        assert failure.value.hint is not None
        assert "holdfast status" in failure.value.hint
    with composed(workspace) as opened:
        opened.save()
        assert (workspace / "gone/file").read_bytes() == b"by the agent"
        vault = opened.engine.vault
        entries = [
            entry_at(vault.load_tree, c.tree, b"gone") for c in all_checkpoints(vault.catalog)
        ]
        saved = [
            b"".join(read_content(vault.objects, e)) for e in entries if isinstance(e, FileEntry)
        ]
    assert b"a file of a person" in saved
    assert debris(workspace) == []
