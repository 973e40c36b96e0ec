"""The library as its users call it: what each question about a session answers."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointSummary, SessionCheckpointer, SnapshotIntent, WorkspaceSnapshot
from holdfast.domain.errors import Refused, UsageError
from tests.support.hostile_trees import fill, noise
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import describe

pytestmark = pytest.mark.both_stores


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    return workspace


@pytest.mark.requirement("CP-1")
def test_a_directory_and_a_session_name_are_all_it_takes(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        made = session.checkpoint("why")
        assert isinstance(made, str)
        assert isinstance(session.get(made), WorkspaceSnapshot)
        assert isinstance(get_snapshot(session, made).intent, SnapshotIntent)
        assert isinstance(session.summaries()[0], CheckpointSummary)
        assert (session.session_id, session.workspace) == ("s", workspace)


@pytest.mark.requirement("CP-4")
def test_a_diff_names_each_changed_path_once(workspace: Path) -> None:
    fill(workspace / "gone", b"1")
    fill(workspace / "same", b"1")
    fill(workspace / "modes", b"1")
    (workspace / "link").symlink_to("a")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        fill(workspace / "file", b"2")
        (workspace / "gone").unlink()
        fill(workspace / "dir/new", b"2")
        (workspace / "modes").chmod(0o600)
        (workspace / "link").unlink()
        (workspace / "link").symlink_to("b")
        second = session.checkpoint("two")
        expected = {
            "dir/new": "added",
            "file": "modified",
            "gone": "removed",
            "link": "modified",
            "modes": "modified",
        }
        assert session.diff() == expected
        assert session.diff(first, second) == expected
        assert session.diff(second, second) == {}
        assert session.diff(second, first)["gone"] == "added"
        session.restore(first)
        assert session.diff() == {}
        assert session.diff(first) == {}


@pytest.mark.requirement("CP-4")
def test_paths_that_are_not_text_go_through_a_diff_and_come_back(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        Path(os.fsdecode(os.fsencode(workspace) + b"/\xff\n")).write_bytes(b"x")
        session.checkpoint("two")
        (path,) = session.diff()
        assert os.fsencode(path) == b"\xff\n"
        session.restore_checkpoint(first, [path])
        assert not os.path.lexists(os.fsencode(workspace) + b"/\xff\n")


@pytest.mark.requirement("CP-4")
def test_history_is_newest_first_bounded_and_without_records_unless_asked(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        made = []
        for number in range(25):
            fill(workspace / "file", str(number).encode())
            made.append(session.checkpoint(f"number {number}"))
        session.restore(made[0])
        assert [s.id for s in session.history()] == made[:-21:-1]
        assert [s.id for s in session.history(3)] == made[:-4:-1]
        assert [s.id for s in session.history(None)] == made[::-1]
        records = session.history(None, records=True)
        assert len(records) == 27
        assert records[0].id == line_end(session)
        assert records[0].intent.reasoning.startswith("Restored to")
        assert [s.kind for s in session.summaries(2, records=True)] == ["restore", "safety"]
        assert session.checkpoint_count == 25


@pytest.mark.requirement("CP-4")
def test_statistics_count_checkpoints_restores_and_bytes(workspace: Path) -> None:
    fill(workspace / "large", noise(200_000))
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        session.checkpoint("two")
        fill(workspace / "file", b"2")
        session.restore(first)
        stats = session.stats
    assert set(stats) == {
        "checkpoints",
        "restores",
        "bytes_stored",
        "bytes_deduped",
        "snapshots",
        "content_blobs",
    }
    assert (stats["checkpoints"], stats["restores"], stats["snapshots"]) == (2, 1, 4)
    assert 200_000 < stats["bytes_stored"] < 400_000
    assert stats["bytes_deduped"] >= 200_000
    assert stats["content_blobs"] >= 3


@pytest.mark.requirement("CP-4")
def test_lookups_by_name_find_or_say_none(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        made = session.checkpoint("why", name="good")
        found = session.get_by_name("good")
        assert found is not None
        assert found.id == made
        assert session.get_by_name("bad") is None
        assert session.head_id == made


@pytest.mark.requirement("CP-5")
def test_values_are_frozen_and_survive_plain_data(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        made = session.checkpoint(
            "x" * 200, name="n", tags=("t",), tool_calls=({"name": "Bash"}, "ls"), goal_id="g"
        )
        snapshot, summary = get_snapshot(session, made), session.summaries()[0]
    for value in (snapshot, summary, snapshot.intent, snapshot.artifacts[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, "other")
    for made_from in (snapshot, summary, snapshot.intent):
        plain = json.loads(json.dumps(made_from.to_dict()))
        assert type(made_from).from_dict(plain) == made_from
    assert summary.reasoning_preview == "x" * 80
    assert summary.file_count == 1
    assert [path for path, _ in snapshot.manifest] == ["file"]


@pytest.mark.requirement("CP-5")
def test_a_snapshot_does_not_hold_the_bytes_of_its_files(workspace: Path) -> None:
    size = 20_000_000
    fill(workspace / "large", noise(size))
    with SessionCheckpointer(workspace, "s") as session:
        made = session.checkpoint("why")
    with SessionCheckpointer(workspace, "s") as session:
        next(iter(get_snapshot(session, made).artifact("large").chunks()))  # imports what it needs
        tracemalloc.start()
        try:
            artifact = get_snapshot(session, made).artifact("large")
            held = tracemalloc.get_traced_memory()[1]
            digest = [len(chunk) for chunk in artifact.chunks()]
            streamed = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert artifact.size == sum(digest) == size
    assert held < size // 10
    assert streamed < size // 2


@pytest.mark.requirement("CP-6")
def test_the_same_state_saved_twice_is_two_checkpoints_of_one_content(workspace: Path) -> None:
    fill(workspace / "dir/large", noise(300_000))
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("why")
        blobs = session.stats["content_blobs"]
        outcome = session.save_checkpoint("why")
        second = outcome.checkpoint.id
        assert first != second
        assert get_snapshot(session, second).parent == first
        assert get_snapshot(session, second).manifest == get_snapshot(session, first).manifest
        assert session.stats["content_blobs"] == blobs
        assert outcome.bytes_stored == 0


@pytest.mark.requirement("CP-7")
def test_a_checkpoint_needs_no_flush_and_is_loaded_again_by_name(workspace: Path) -> None:
    session = SessionCheckpointer(workspace, "s")
    first = session.checkpoint("why")
    # Not closed: what was acknowledged is there for everybody.
    with SessionCheckpointer.load(workspace, "s") as loaded:
        assert loaded.head_id == first
        assert loaded.save() == session.save()
        assert loaded.save().is_dir()
    session.close()


@pytest.mark.requirement("CP-7")
def test_loading_a_session_that_does_not_exist_gives_an_empty_one(workspace: Path) -> None:
    for _ in range(2):
        with SessionCheckpointer.load(workspace, "other") as session:
            assert (session.checkpoint_count, session.head, session.history()) == (0, None, [])
            assert session.diff() == {}
    with SessionCheckpointer(workspace, "s") as session:
        assert list(session.opened.sessions.all()) == []


@pytest.mark.requirement("CP-7")
def test_an_archived_session_is_listed_and_restored_but_takes_no_more(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        assert session.archive() is None
        first = session.checkpoint("why")
        before = describe(workspace)
        assert session.archive() == session.save()
        fill(workspace / "file", b"2")
        with pytest.raises(Refused, match="archived") as refused:
            session.checkpoint("too late")
        assert refused.value.hint
        assert [s.id for s in session.history()] == [first]
    with SessionCheckpointer.load(workspace, "s") as session:
        session.restore(first)
        assert describe(workspace) == before
        session.undo()
        assert (workspace / "file").read_bytes() == b"2"


@pytest.mark.requirement("CP-7")
def test_a_moved_workspace_keeps_its_checkpoints_and_a_copy_gets_its_own(
    workspace: Path, tmp_path: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("why")
    shutil.copytree(workspace, tmp_path / "copy")
    workspace.rename(tmp_path / "moved")
    fill(tmp_path / "moved/file", b"2")
    with SessionCheckpointer.load(tmp_path / "moved", "s") as session:
        session.restore(first)
    assert (tmp_path / "moved/file").read_bytes() == b"1"
    with SessionCheckpointer.load(tmp_path / "copy", "s") as session:
        assert session.history() == []


@pytest.mark.requirement("CP-7")
def test_a_workspace_whose_own_directory_the_agent_deleted_is_found_again(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("why")
    shutil.rmtree(workspace / ".holdfast")
    fill(workspace / "file", b"2")
    with SessionCheckpointer.load(workspace, "s") as session:
        session.restore(first)
    assert (workspace / "file").read_bytes() == b"1"


@pytest.mark.requirement("CP-4")
def test_statistics_say_what_equal_content_did_not_cost_again(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", os.urandom(30_000))
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(3):
            session.checkpoint(f"number {number}")
        stats = session.stats
    assert 30_000 < stats["bytes_stored"] < 32_000
    assert stats["bytes_deduped"] == 60_000


@pytest.mark.requirement("CP-4")
@pytest.mark.parametrize("limit", [-1, 2.5, "5"])
def test_a_limit_that_is_no_number_is_refused_and_not_taken_for_damage(
    workspace: Path, limit: Any
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        for ask in (session.history, session.summaries):
            with pytest.raises(UsageError, match="limit") as refused:
                ask(limit)
            assert refused.value.hint
            assert len(ask(0)) == 0
            assert len(ask(None)) == 1


@pytest.mark.requirement("CP-7")
def test_a_closed_session_says_that_it_is_closed(workspace: Path) -> None:
    session = SessionCheckpointer(workspace, "s")
    made = session.checkpoint("why")
    session.close()
    session.close()
    for ask in (
        lambda: session.checkpoint("late"),
        lambda: session.restore(made),
        lambda: session.head_id,
        session.history,
        session.undo,
        session.archive,
        session.approval,
    ):
        with pytest.raises(UsageError, match="'s' is closed") as refused:
            ask()
        assert refused.value.hint
    assert session.workspace == workspace
    with SessionCheckpointer.load(workspace, "s") as again:
        assert again.head_id == made


@pytest.mark.requirement("RB-7")
def test_chosen_paths_are_a_list_that_is_not_empty(workspace: Path) -> None:
    fill(workspace / "f", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("why")
        fill(workspace / "file", b"2")
        fill(workspace / "f", b"2")
        edited = describe(workspace)
        choices: list[Any] = ["f", b"f", Path("f"), [], (), [5], [None], 5]
        for paths in choices:
            for ask in (session.plan_restore, session.restore_checkpoint):
                with pytest.raises(UsageError) as refused:
                    ask(first, paths)
                assert refused.value.hint
        assert describe(workspace) == edited
        assert session.restore_checkpoint(first, [Path("f")]).files_changed == 1
        assert (workspace / "file").read_bytes() == b"2"
        assert session.restore_checkpoint(first, None).files_changed == 1
