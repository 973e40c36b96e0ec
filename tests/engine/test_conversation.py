"""Messages of a session, the place of checkpoints among them, and what restores do to them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.errors import BudgetReached, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.conversation import conversation
from holdfast.engine.retention.deletion import delete
from tests.behind_the_api import engine_of
from tests.support.composition import configure

pytestmark = pytest.mark.both_stores

S = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("0")
    return workspace


def index_of(session: SessionCheckpointer, checkpoint: str) -> int | None:
    return engine_of(session).resolve(S, checkpoint).message_index


def holding(session: SessionCheckpointer) -> list[str]:
    return [m.content for m in session.messages() if m.rolled_back_by is None]


def work(session: SessionCheckpointer, text: str) -> str:
    """Say something, do something, save it."""
    session.add_message("user", text)
    (session.workspace / "a.txt").write_text(text)
    return session.checkpoint(f"after {text}")


@pytest.mark.requirement("SE-2")
def test_a_message_is_recorded_with_everything_said_about_it(workspace: Path) -> None:
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    with SessionCheckpointer(workspace, "s") as session:
        session.add_message("user", "do it")
        session.add_message("assistant", "", tool_calls=[{"name": "Edit"}, "Bash(ls)"], at=at)
    with SessionCheckpointer(workspace, "s") as session:
        first, second = session.messages()
        assert (first.index, first.role, first.content) == (0, "user", "do it")
        assert second.tool_calls == ({"name": "Edit"}, "Bash(ls)")
        assert second.at_ns == 1_777_636_800_000_000_000
        assert [m.index for m in session.messages(first=1, limit=5)] == [1]


@pytest.mark.requirement("SE-2")
@pytest.mark.parametrize(
    ("role", "content", "calls", "words"),
    [
        ("robot", "x", (), "unknown role: 'robot'"),
        ("user", 5, (), "must be a string"),
        ("user", "x" * 1_000_001, (), "1000001 characters"),
        ("user", "x", "Bash(ls)", "must be a list"),
        ("user", "x", ["y" * 1_000_001], "tool calls"),
        ("user", "x", [{"f": object()}], "JSON"),
    ],
)
def test_a_message_that_cannot_be_kept_is_refused_by_name(
    workspace: Path, role: str, content: str, calls: list[str], words: str
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError, match=words):
            session.add_message(role, content, tool_calls=calls)
        assert session.messages() == []


@pytest.mark.requirement("SE-2")
def test_a_time_or_a_place_that_cannot_be_is_refused(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(UsageError, match="time"):
            session.add_message("user", "x", at=datetime(9999, 1, 1, tzinfo=UTC))
        with pytest.raises(UsageError, match="time"):
            session.add_message("user", "x", at="yesterday")  # type: ignore[arg-type]
        for first, limit in ((-1, None), (1 << 70, None), (0, -1), (0, 1 << 70)):
            with pytest.raises(UsageError, match="not a message index"):
                session.messages(first=first, limit=limit)
        assert session.messages() == []


@pytest.mark.requirement("SE-2")
def test_text_that_is_no_unicode_is_kept_readable(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.add_message("user", "bad \udcff byte \0 end")
        assert session.messages()[0].content == "bad \\udcff byte \0 end"


@pytest.mark.requirement("SE-2")
def test_a_checkpoint_knows_the_last_message_before_it(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        silent = session.checkpoint("before anything was said")
        session.add_message("user", "one")
        session.add_message("assistant", "two")
        assert index_of(session, silent) is None
        assert index_of(session, session.checkpoint("after two")) == 1
        (workspace / "a.txt").write_text("about to be edited")
        given = (
            engine_of(session)
            .save(S, make_intent("why"), kind=Kind.TOOL, position=Position(0, "toolu_1"))
            .checkpoint
        )
        assert (given.message_index, given.tool_use_id) == (0, "toolu_1")
        (workspace / "a.txt").write_text("changed")
        session.approve("good")
        assert index_of(session, "HEAD") == 1


@pytest.mark.requirement("SE-2", "RL-4")
@pytest.mark.store_on_disk
def test_a_story_that_cannot_be_read_costs_no_checkpoint_and_is_reported(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.add_message("user", "one")
    (path,) = holdfast_home.glob("stores/*/story.db")
    path.write_bytes(b"no database at all" * 500)
    for companion in holdfast_home.glob("stores/*/story.db-*"):
        companion.unlink()
    with SessionCheckpointer(workspace, "s") as session:
        first = session.save_checkpoint("all the same")
        assert "holdfast repair" in " ".join(first.warnings)
        (workspace / "a.txt").write_text("changed")
        assert session.restore(first.checkpoint.id) == 1
        delete(engine_of(session), engine_of(session).resolve(S, "HEAD~0"))


@pytest.mark.requirement("SE-4")
def test_after_a_restore_later_messages_are_kept_and_marked(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = work(session, "one")
        work(session, "two")
        session.add_message("assistant", "three")
        session.restore(first)
        assert holding(session) == ["one"]
        assert [m.content for m in session.messages()] == ["one", "two", "three"]
        session.add_message("user", "four")
        assert holding(session) == ["one", "four"]
        session.undo()
        assert holding(session) == ["one", "two", "three"]
        session.redo()
        assert holding(session) == ["one", "four"]


@pytest.mark.requirement("SE-4", "SE-5")
def test_a_reset_rolls_back_what_was_said_since_the_approval(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        work(session, "one")
        session.approve()
        work(session, "two")
        session.reset()
        assert holding(session) == ["one"]


@pytest.mark.requirement("SE-4", "RB-7")
def test_a_restore_of_some_paths_marks_nothing(workspace: Path) -> None:
    (workspace / "b.txt").write_text("b")
    with SessionCheckpointer(workspace, "s") as session:
        first = work(session, "one")
        work(session, "two")
        session.add_message("user", "three")
        session.restore_checkpoint(first, ["a.txt"])
        session.restore_checkpoint("HEAD", ["b.txt"])
        assert holding(session) == ["one", "two", "three"]
        (workspace / "b.txt").write_text("changed")
        session.restore_checkpoint("HEAD", ["b.txt"])
        assert holding(session) == ["one", "two", "three"]
        session.undo()
        assert holding(session) == ["one", "two", "three"]


@pytest.mark.requirement("SE-4")
def test_a_restore_to_before_the_conversation_rolls_all_of_it_back(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        silent = session.checkpoint("before anything was said")
        work(session, "one")
        session.restore(silent)
        assert holding(session) == []


@pytest.mark.requirement("SE-4")
def test_marks_that_a_crash_left_out_are_made_good_by_the_next_look(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = work(session, "one")
        work(session, "two")
        with monkeypatch.context() as patched:
            # As if the process had died right after the restore.
            patched.setattr(conversation, "follow", lambda *_: None)
            session.restore(first)
        session.add_message("user", "said before anybody looked")
        assert holding(session) == ["one", "said before anybody looked"]


@pytest.mark.requirement("SE-4")
def test_other_sessions_and_agents_see_no_marks_of_this_one(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as one, SessionCheckpointer(workspace, "t") as two:
        two.add_message("user", "mine")
        first = work(one, "one")
        work(one, "two")
        one.restore(first)
        assert [m.rolled_back_by for m in two.messages()] == [None]


def transcript(path: Path, *texts: str, start: int = 0) -> Path:
    lines = [
        {
            "type": "user",
            "uuid": f"u{number}",
            "timestamp": f"2026-05-01T12:00:{number:02d}Z",
            "message": {"role": "user", "content": text},
        }
        for number, text in enumerate(texts, start)
    ]
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


@pytest.mark.requirement("SE-2")
def test_a_transcript_is_read_on_from_where_the_last_reading_ended(
    workspace: Path, tmp_path: Path
) -> None:
    path = transcript(tmp_path / "t.jsonl", "one", "two")
    with SessionCheckpointer(workspace, "s") as session:
        assert session.import_transcript(path).added == 2
        assert session.import_transcript(path).added == 0
        saved = session.checkpoint("why")
        assert index_of(session, saved) == 1
        transcript(path, "three", start=2)
        with path.open("a") as file:
            file.write('{"type": "user", "half')
        outcome = session.import_transcript(path, "claude-code")
        assert (outcome.added, outcome.restarted) == (1, False)
        assert [m.content for m in session.messages()] == ["one", "two", "three"]
        # The agent compacted its context and rewrote the file: nothing is there twice.
        rewritten = tmp_path / "again.jsonl"
        transcript(rewritten, "a summary", start=9)
        transcript(rewritten, "one", "two", "three")
        os.replace(rewritten, path)
        assert session.import_transcript(path).added == 1
        assert [m.index for m in session.messages()] == [0, 1, 2, 3]
        assert index_of(session, saved) == 1


def say_much(session: SessionCheckpointer) -> None:
    for _ in range(20):
        session.add_message("user", "y" * 100_000)


@pytest.mark.requirement("SE-2", "ST-3")
def test_what_tools_answered_is_cut_and_a_conversation_never_crowds_saves_out(
    workspace: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 50_000}
    line = {"type": "user", "uuid": "u", "message": {"role": "user", "content": [answer]}}
    path.write_text(json.dumps(line) + "\n")
    configure(workspace, budget=2_000_000)
    with SessionCheckpointer(workspace, "s") as session:
        session.import_transcript(path)
        (message,) = session.messages()
        assert len(message.content) < 5_000
        assert "46000 more characters" in message.content
        with pytest.raises(BudgetReached, match="quarter"):
            say_much(session)
        session.checkpoint("saves go on")


@pytest.mark.requirement("SE-2")
@pytest.mark.store_on_disk
def test_adding_a_message_costs_one_transaction_however_long_the_conversation(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.add_message("user", "first")
        (path,) = Path(os.environ["HOLDFAST_HOME"]).glob("stores/*/story.db")
        plan = apsw.Connection(str(path)).execute(
            "EXPLAIN QUERY PLAN SELECT max(position) FROM messages WHERE session_id='s'"
        )
        assert "message_places" in str(plan.fetchall())
