"""User messages, each with the checkpoint made before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer, start_session
from holdfast.domain.errors import UsageError
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.both_stores


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SessionCheckpointer]:
    fill(tmp_path / "project" / "main.py", b"0")
    with start_session(tmp_path / "project", "s", title="to-do app") as session:
        yield session


@pytest.mark.requirement("SE-2", "SE-3")
def test_a_user_message_saves_first_and_names_its_checkpoint(session: SessionCheckpointer) -> None:
    said = session.user_message("Create a to-do app with 3 files")
    fill(session.workspace / "main.py", b"1")
    fill(session.workspace / "models.py", b"1")
    session.add_message("assistant", "done")
    second = session.user_message("Add tests")
    assert said.checkpoint is not None
    made = get_snapshot(session, said.checkpoint)
    assert made.intent.reasoning == "Before user message: Create a to-do app with 3 files"
    assert [m.checkpoint for m in session.messages()] == [said.checkpoint, None, second.checkpoint]
    assert session.messages(first=2)[0].checkpoint == second.checkpoint
    assert session.restore(said.checkpoint) == 2
    assert not (session.workspace / "models.py").exists()
    event = next(e for e in session.timeline().events if e.message and e.message.index == 0)
    assert event.message is not None
    assert event.message.checkpoint == said.checkpoint


@pytest.mark.requirement("SE-3", "SE-11")
def test_user_messages_are_saved_whatever_limit_is_set(session: SessionCheckpointer) -> None:
    session.opened.settings.set("max_manual_checkpoints", 1)
    session.checkpoint("by hand")
    said = [session.user_message(f"message {number}").checkpoint for number in range(5)]
    assert len(set(said)) == 5


@pytest.mark.requirement("SE-2", "SE-12")
def test_the_same_message_again_shares_its_checkpoint(session: SessionCheckpointer) -> None:
    first, again = (session.user_message("go on").checkpoint for _ in range(2))
    assert first == again
    assert [m.checkpoint for m in session.messages()] == [first, first]
    fill(session.workspace / "main.py", b"1")
    third = session.user_message("go on").checkpoint
    assert [m.checkpoint for m in session.messages()] == [first, first, third]


@pytest.mark.requirement("SE-2")
def test_a_message_that_nothing_was_saved_for_has_no_checkpoint(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("by hand")
    session.add_message("user", "hello")
    with pytest.raises(UsageError):
        session.user_message(3)  # type: ignore[arg-type]
    assert [m.checkpoint for m in session.messages()] == [None]


@pytest.mark.requirement("SE-13")
def test_a_session_has_a_title_that_can_be_changed(session: SessionCheckpointer) -> None:
    assert session.title == "to-do app"
    session.rename("to-do app, second try")
    assert session.title == "to-do app, second try"
    listed = session.opened.sessions.overview()
    assert [(one.session.title, one.active_session) for one in listed] == [
        ("to-do app, second try", "session_1")
    ]


@pytest.mark.requirement("SE-5")
def test_no_session_is_active_when_everything_is_approved(session: SessionCheckpointer) -> None:
    assert session.approval().active_session == "session_1"
    fill(session.workspace / "main.py", b"1")
    session.approve("good")
    status = session.approval(look=True)
    assert (status.active_session, status.session_ref) == (None, None)
    assert session.opened.sessions.overview()[0].active_session is None
    fill(session.workspace / "main.py", b"2")
    assert session.approval(look=True).active_session == "session_2"


@pytest.mark.requirement("SE-5")
def test_rounds_say_how_many_checkpoints_they_have(session: SessionCheckpointer) -> None:
    fill(session.workspace / "main.py", b"1")
    session.user_message("one")
    session.approve()
    fill(session.workspace / "main.py", b"2")
    session.user_message("two")
    session.user_message("three")
    session.reset()
    assert [(one.name, one.status.value, one.checkpoints) for one in session.rounds()] == [
        ("session_1", "merged", 2),
        ("session_2", "abandoned", 2),
        ("session_3", "active", 0),
    ]
