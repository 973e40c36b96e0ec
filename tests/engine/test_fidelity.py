"""Save, wreck everything, save, restore: what comes back is what was there, by another hasher.

Each piece is what at least one tool of this kind loses; they are tried alone, so that a failure
says which, and all together, as they occur.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.support.hostile_trees import PIECES, prepare, wreck
from tests.support.tree_hash import debris, describe, differences

pytestmark = [pytest.mark.requirement("CP-11"), pytest.mark.both_stores, pytest.mark.on_disk]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


@pytest.mark.requirement("CP-12", "RB-9")
@pytest.mark.parametrize("name", PIECES)
def test_a_piece_comes_back_exactly_after_it_was_wrecked(workspace: Path, name: str) -> None:
    pieces = [(name, PIECES[name])]
    # A file that only got another inode or another mode keeps its content, and so its time.
    mtimes = name not in ("special-modes", "hardlinks")
    prepare(workspace, pieces)
    original = describe(workspace, mtimes=mtimes, holes=True)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("as it was")
        wreck(workspace, pieces)
        wrecked = describe(workspace, mtimes=mtimes, holes=True)
        session.checkpoint("wrecked")
        session.restore(first)
        restored = describe(workspace, mtimes=mtimes, holes=True)
        session.undo()
        undone = describe(workspace, mtimes=mtimes, holes=True)
    assert original != wrecked
    assert differences(restored, original) == []
    assert differences(undone, wrecked) == []
    assert debris(workspace) == []


def test_everything_together_comes_back_from_another_process_s_view(workspace: Path) -> None:
    pieces = [(name, piece) for name, piece in PIECES.items() if name != "deep"]
    prepare(workspace, pieces)
    original = describe(workspace, holes=True)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("as it was")
    wreck(workspace, pieces)
    wrecked = describe(workspace, holes=True)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("wrecked")
        session.restore(first)
    assert differences(describe(workspace, holes=True), original) == []
    with SessionCheckpointer(workspace, "s") as session:
        session.undo()
    assert differences(describe(workspace, holes=True), wrecked) == []
    with SessionCheckpointer(workspace, "s") as session:
        session.redo()
    assert differences(describe(workspace, holes=True), original) == []
    assert debris(workspace) == []


def test_a_workspace_emptied_by_the_agent_comes_back_whole(workspace: Path) -> None:
    apart = ("nested-repository", "deep")
    pieces = [(name, piece) for name, piece in PIECES.items() if name not in apart]
    prepare(workspace, pieces)
    original = describe(workspace, mtimes=True, holes=True)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("as it was")
    for entry in list(workspace.iterdir()):
        shutil.rmtree(entry)
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(first)
    assert differences(describe(workspace, mtimes=True, holes=True), original) == []


def test_extended_attributes_are_reported_and_the_bytes_are_kept(workspace: Path) -> None:
    file = workspace / "tagged"
    file.write_bytes(b"bytes")
    os.setxattr(file, "user.origin", b"download")
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("with attributes")
        notes = [s for s in outcome.skipped if s.path == b"tagged"]
        again = session.save_checkpoint("again, from what is remembered")
        file.unlink()
        session.restore(outcome.checkpoint.id)
    assert [note.detail for note in notes] == ["user.origin"]
    assert notes == [s for s in again.skipped if s.path == b"tagged"]
    assert file.read_bytes() == b"bytes"


def test_a_file_with_a_second_name_outside_the_workspace_is_reported(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "inside").write_bytes(b"bytes")
    os.link(workspace / "inside", tmp_path / "outside")
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("linked")
    assert [s.path for s in outcome.skipped if "hardlink" in s.reason.value] == [b"inside"]


_YEAR_2262_NS = (1 << 63) - 1


@pytest.mark.requirement("RL-6", "RB-9")
@pytest.mark.parametrize(
    ("time_ns", "kept_ns"),
    [
        (-1, -1),
        (-(10**18), -(10**18)),
        (4_102_444_800 * 10**9 + 7, 4_102_444_800 * 10**9 + 7),
        (_YEAR_2262_NS, _YEAR_2262_NS),
        (12_000_000_000 * 10**9, _YEAR_2262_NS),
    ],
    ids=["just before 1970", "1938", "2100", "2262", "2350"],
)
def test_files_from_any_time_are_captured(workspace: Path, time_ns: int, kept_ns: int) -> None:
    """A checkpoint knows times of the years 1678 to 2262; others become the nearest of these."""
    (workspace / "dir").mkdir()
    (workspace / "dir/file").write_bytes(b"bytes")
    (workspace / "dir/link").symlink_to("file")
    for path in (workspace / "dir/file", workspace / "dir/link", workspace / "dir"):
        os.utime(path, ns=(time_ns, time_ns), follow_symlinks=False)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("as it was")
        assert session.save_checkpoint("again").checkpoint.changed.modified == 0
        shutil.rmtree(workspace / "dir")
        session.restore(first)
    assert (workspace / "dir/file").read_bytes() == b"bytes"
    for path in (workspace / "dir/file", workspace / "dir/link"):
        assert path.lstat().st_mtime_ns == kept_ns
