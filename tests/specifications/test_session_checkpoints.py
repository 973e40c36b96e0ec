"""Session checkpoints (Sunwell RFC-128): its checks, rewritten against the public library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import CheckpointSummary, SessionCheckpointer, WorkspaceSnapshot
from tests.support.session_states import get_snapshot

GREETING = "print('good day')"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    sources = tmp_path / "project/src"
    sources.mkdir(parents=True)
    (sources / "main.py").write_text(GREETING)
    (sources / "sums.py").write_text("def double(n): return 2 * n")
    return tmp_path / "project"


@pytest.fixture
def checkpointer(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "an-agent") as opened:
        yield opened


@pytest.mark.requirement("CP-2", "CP-3", "CP-4")
class TestSaveAndRestore:
    def test_a_checkpoint_becomes_head_with_its_intent(
        self, checkpointer: SessionCheckpointer
    ) -> None:
        made = checkpointer.checkpoint("As it was given to me", confidence=0.9)
        assert checkpointer.head is not None
        assert checkpointer.head.id == checkpointer.head_id == made
        assert checkpointer.head.intent.reasoning == "As it was given to me"
        assert checkpointer.head.intent.confidence == 0.9

    def test_a_restore_brings_the_content_back(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        made = checkpointer.checkpoint("Before the change")
        (workspace / "src/main.py").write_text("print('broken')")
        assert checkpointer.restore(made) == 1
        assert (workspace / "src/main.py").read_text() == GREETING

    def test_a_diff_names_what_changed_and_how(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        first = checkpointer.checkpoint("The beginning")
        (workspace / "src/main.py").write_text("print('changed')")
        (workspace / "src/new.py").touch()
        (workspace / "src/sums.py").unlink()
        second = checkpointer.checkpoint("After the change")
        assert checkpointer.diff(first, second) == {
            "src/main.py": "modified",
            "src/new.py": "added",
            "src/sums.py": "removed",
        }
        assert checkpointer.diff() == checkpointer.diff(first) == checkpointer.diff(first, second)

    def test_history_begins_with_the_newest(self, checkpointer: SessionCheckpointer) -> None:
        for name in ("one", "two", "three"):
            checkpointer.checkpoint(f"State {name}", name=name)
        names = [found.intent.checkpoint_name for found in checkpointer.history()]
        assert names == ["three", "two", "one"]
        assert len(checkpointer.history(limit=2)) == 2
        assert [one.checkpoint_name for one in checkpointer.summaries()] == names

    def test_without_an_argument_a_restore_goes_to_the_checkpoint_before(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        with pytest.raises(ValueError, match="no checkpoint"):
            checkpointer.restore()
        first = checkpointer.checkpoint("First")
        with pytest.raises(ValueError, match="no checkpoint before"):
            checkpointer.restore()
        (workspace / "src/main.py").write_text("print('second')")
        checkpointer.checkpoint("Second")
        checkpointer.restore()
        assert (workspace / "src/main.py").read_text() == GREETING
        assert checkpointer.head_id == first
        with pytest.raises(ValueError, match="nowhere"):
            checkpointer.restore("nowhere")

    def test_head_after_a_restore_is_the_checkpoint_restored_to(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        first = checkpointer.checkpoint("First", name="first")
        (workspace / "src/main.py").write_text("print('second')")
        checkpointer.checkpoint("Second")
        checkpointer.restore("first")
        assert checkpointer.head is not None
        assert checkpointer.head.id == checkpointer.head_id == first
        assert checkpointer.head.intent.checkpoint_name == "first"

    def test_unknown_ids_and_empty_sessions_give_nothing_instead_of_an_error(
        self, checkpointer: SessionCheckpointer
    ) -> None:
        assert checkpointer.diff() == {}
        made = checkpointer.checkpoint("First", name="first")
        assert checkpointer.get("0" * 20) is None
        assert get_snapshot(checkpointer, made) == checkpointer.get_by_name("first")
        assert checkpointer.get_by_name("second") is None
        assert checkpointer.diff() == {}


@pytest.mark.requirement("CP-1")
def test_a_filter_chooses_the_files_and_can_be_read_back(workspace: Path) -> None:
    def only_main(path: Path) -> bool:
        return path.name == "main.py"

    with SessionCheckpointer(workspace, "filtered", file_filter=only_main) as opened:
        opened.checkpoint("One file only")
        assert opened.head is not None
        assert [one.path for one in opened.head.artifacts] == ["src/main.py"]
        assert (opened.workspace, opened.session_id) == (workspace, "filtered")
        assert opened.file_filter is only_main
    with SessionCheckpointer(workspace, "whole") as opened:
        assert opened.file_filter is None


@pytest.mark.requirement("CP-5")
class TestValues:
    def test_a_snapshot_comes_back_from_plain_data_with_the_contents_it_is_given(
        self, checkpointer: SessionCheckpointer
    ) -> None:
        checkpointer.checkpoint("Now", name="now", tool_calls=("write_file",))
        [snapshot] = checkpointer.history()
        contents = {one.content_hash: one.content for one in snapshot.artifacts}
        plain = json.loads(json.dumps(snapshot.to_dict()))
        again = WorkspaceSnapshot.from_dict(plain, contents)
        assert again == snapshot
        assert again.artifact("src/main.py").content == GREETING
        assert again.artifact("src/main.py").read_bytes() == GREETING.encode()
        assert dict(again.manifest) == {one.path: one.content_hash for one in snapshot.artifacts}
        bare = WorkspaceSnapshot.from_dict(plain)
        assert bare == snapshot
        with pytest.raises(LookupError, match=r"src/main\.py"):
            _ = bare.artifact("src/main.py").content

    def test_content_that_is_no_text_survives_as_text_too(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        (workspace / "picture").write_bytes(b"\x00\xff\xfe")
        made = checkpointer.checkpoint("With a picture")
        snapshot = get_snapshot(checkpointer, made)
        [digest] = [h for path, h in snapshot.manifest if path == "picture"]
        contents = {digest: snapshot.artifact("picture").content}
        again = WorkspaceSnapshot.from_dict(snapshot.to_dict(), contents)
        assert again.artifact("picture").read_bytes() == b"\x00\xff\xfe"

    def test_a_summary_of_a_snapshot_is_the_one_that_is_listed(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        first = checkpointer.checkpoint("why " * 50, name="first", confidence=0.4, tags=("t",))
        (workspace / "src/main.py").write_text("print('second')")
        checkpointer.checkpoint("Second")
        checkpointer.restore("first")
        made = [CheckpointSummary.from_snapshot(s) for s in checkpointer.history(records=True)]
        assert made == checkpointer.summaries(records=True)
        [oldest] = [one for one in made if one.id == first]
        assert oldest.checkpoint_name == "first"
        assert oldest.reasoning_preview == ("why " * 50)[:80]
        assert (oldest.file_count, oldest.confidence, oldest.parent) == (2, 0.4, None)


@pytest.mark.requirement("CP-7")
class TestPersistence:
    def test_a_saved_session_is_loaded_whole(
        self, workspace: Path, checkpointer: SessionCheckpointer
    ) -> None:
        checkpointer.checkpoint("Good enough", name="good", confidence=0.85)
        assert checkpointer.save().is_dir()
        with SessionCheckpointer.load(workspace, "an-agent") as loaded:
            assert loaded.checkpoint_count == 1
            assert loaded.head is not None
            assert loaded.head.intent.checkpoint_name == "good"
            assert loaded.head.intent.confidence == 0.85

    def test_loading_what_was_never_saved_gives_an_empty_session(self, workspace: Path) -> None:
        with SessionCheckpointer.load(workspace, "new") as loaded:
            assert (loaded.checkpoint_count, loaded.head, loaded.history()) == (0, None, [])
            assert loaded.archive() is None
            loaded.checkpoint("It can be used")

    def test_a_deleted_session_leaves_nothing_and_the_others_alone(
        self, workspace: Path, checkpointer: SessionCheckpointer
    ) -> None:
        kept = checkpointer.checkpoint("Keep this")
        with SessionCheckpointer(workspace, "other") as other:
            (workspace / "src/only.py").write_text("only = 'the other session has this'")
            other.checkpoint("Delete this")
            assert other.delete_session() == 1
            assert (other.checkpoint_count, other.head) == (0, None)
        sessions = checkpointer.opened.sessions
        assert [one.id for one in sessions.listed()] == ["an-agent"]
        assert checkpointer.head_id == kept
        assert (workspace / "src/only.py").exists()


@pytest.mark.requirement("CP-4", "CP-6")
class TestDeduplication:
    def test_content_that_was_saved_before_is_counted_and_not_stored_again(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        size = sum(path.stat().st_size for path in (workspace / "src").iterdir())
        checkpointer.checkpoint("First")
        assert checkpointer.stats["bytes_deduped"] == 0
        checkpointer.checkpoint("Second")
        stats = checkpointer.stats
        assert stats["bytes_deduped"] == size
        (workspace / "src/main.py").write_text("print('changed')")
        checkpointer.checkpoint("Third")
        (workspace / "src/main.py").write_text(GREETING)
        checkpointer.checkpoint("As the first")
        unchanged = (workspace / "src/sums.py").stat().st_size
        assert checkpointer.stats["bytes_deduped"] == size + unchanged + size

    def test_a_file_of_another_session_was_in_the_store_already(
        self, checkpointer: SessionCheckpointer, workspace: Path
    ) -> None:
        checkpointer.checkpoint("First")
        size = sum(path.stat().st_size for path in (workspace / "src").iterdir())
        with SessionCheckpointer(workspace, "other") as other:
            other.checkpoint("The same files")
            assert other.stats["bytes_deduped"] == size
        assert checkpointer.stats["bytes_deduped"] == 0
