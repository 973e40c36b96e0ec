"""The timeline of a session, from catalog and story, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.views.timeline import timeline_view
from holdfast.domain.checkpoints import Position
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.story import ActivityKind, ActivityStatus, NewActivity, Role
from holdfast.domain.timeline.timeline import Event, Timeline
from holdfast.engine.history.timeline import timeline
from holdfast.engine.sessions.approval import approve, reset_request
from holdfast.ports.story import NewMessage
from tests.behind_the_api import engine_of
from tests.support.composition import SESSION, SteppedClock, composed
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("SE-9"), pytest.mark.both_stores]

NOON_NS = 1_800_000_000 * 1_000_000_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"0")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "s") as session:
        yield session


def _words(event: Event) -> str:
    if event.message is not None:
        return event.message.content
    if event.checkpoint is not None:
        return event.checkpoint.reasoning
    if event.annotation is not None:
        return event.annotation.text
    if event.activity is not None:
        return event.activity.reason
    assert event.ended is not None
    return f"{event.ended.name} {event.ended.message}"


def _stream(page: Timeline) -> list[tuple[str, str]]:
    return [(event.type.value, _words(event)) for event in page.events]


def test_everything_that_happens_is_in_one_stream(workspace: Path) -> None:
    clock = SteppedClock(NOON_NS)
    with composed(workspace, clock=clock) as made:
        engine, story = made.engine, made.engine.vault.story

        def say(text: str) -> None:
            clock.now += 10
            story.add_messages(SESSION, [NewMessage(Role.USER, text, clock.now)])

        def save(reason: str, message: int) -> CheckpointId:
            clock.now += 10
            intent = make_intent(reason)
            return engine.save(SESSION, intent, position=Position(message)).checkpoint.id

        say("please begin")
        first = save("begin", 0)
        say("go on")
        fill(workspace / "file", b"1")
        save("went on", 1)
        clock.now += 10
        story.annotate(SESSION, first, "this was fine", author="me", at_ns=clock.now)
        clock.now += 10
        new = NewActivity(
            SESSION, ActivityKind.EDIT, "edit file", first, clock.now, "1", (b"file",)
        )
        story.settle(story.begin(new).number, ActivityStatus.KEPT, at_ns=clock.now)
        clock.now += 10
        approve(engine, SESSION, "good so far")
        fill(workspace / "file", b"2")
        save("wreck", 1)
        clock.now += 10
        engine.restore(reset_request(engine.vault, SESSION))
        say("better so")
        from holdfast.engine.history.timeline import timeline

        page = timeline(engine.vault, SESSION, limit=100, before=None)
    assert _stream(page) == [
        ("message", "better so"),
        ("reset", f"Reset to {page.approved[:10] if page.approved else ''}"),
        ("checkpoint", "wreck"),
        ("approve", "session_1 good so far"),
        ("edit", "edit file"),
        ("annotation", "this was fine"),
        ("checkpoint", "went on"),
        ("message", "go on"),
        ("checkpoint", "begin"),
        ("message", "please begin"),
    ]
    assert page.next is None
    assert [one.status.value for one in page.rounds] == ["merged", "abandoned", "active"]
    data = timeline_view(page)
    assert data["events"][1]["abandoned"] == "session_2"
    assert data["events"][3]["message"] == "good so far"
    assert data["events"][4]["paths"] == ["file"]
    assert {"type", "at", "lane", "passing", "joins", "begins", "ends"} <= data["events"][0].keys()


def test_pages_lead_from_one_to_the_next_until_everything_was_reported(
    session: SessionCheckpointer,
) -> None:
    story = engine_of(session).vault.story
    for number in range(7):
        fill(session.workspace / "file", str(number).encode())
        session.checkpoint(f"state {number}")
        new = NewMessage(Role.ASSISTANT, f"message {number}", 0)
        story.add_messages(SessionId("s"), [new])
        if number % 2:
            session.restore()
    whole = session.timeline(limit=1000)
    for size in (1, 2, 3, 5):
        page = session.timeline(limit=size)
        events = list(page.events)
        while page.next is not None:
            page = session.timeline(limit=size, before=page.next)
            events += page.events
        assert tuple(events) == whole.events


@pytest.mark.parametrize("count", [250, 251, 1_000])
def test_a_long_timeline_is_the_same_at_once_and_in_pages(workspace: Path, count: int) -> None:
    clock = SteppedClock(NOON_NS)
    with composed(workspace, clock=clock) as made:
        engine, story = made.engine, made.engine.vault.story
        half = count // 2
        said = [NewMessage(Role.USER, f"said {n}", NOON_NS + n) for n in range(count)]
        story.add_messages(SESSION, said[:half])
        engine.save(SESSION, make_intent("in the middle"), position=Position(half - 1))
        story.add_messages(SESSION, said[half:])
        whole = timeline(engine.vault, SESSION, limit=10_000, before=None)
        told: list[Event] = []
        following: str | None = None
        while following is not None or not told:
            page = timeline(engine.vault, SESSION, limit=90, before=following)
            told += page.events
            following = page.next
    expected = [f"said {n}" for n in range(count)]
    expected.insert(half, "in the middle")
    assert [_words(event) for event in whole.events] == expected[::-1]
    assert whole.next is None
    assert told == list(whole.events)


def test_a_session_without_checkpoints_has_an_empty_timeline(session: SessionCheckpointer) -> None:
    assert session.timeline().events == ()


def test_a_limit_or_a_place_that_is_none_is_refused(session: SessionCheckpointer) -> None:
    session.checkpoint("one")
    for wrong in (0, -1, True):
        with pytest.raises(UsageError):
            session.timeline(limit=wrong)
    with pytest.raises(UsageError, match="not a position in a timeline"):
        session.timeline(before="yesterday")
    with pytest.raises(UsageError, match="not a position in a timeline"):
        session.timeline(before=3)  # type: ignore[arg-type]
    assert len(session.timeline(limit=10**30).events) == 1


@pytest.mark.requirement("CP-8")
def test_a_timeline_is_of_one_session(session: SessionCheckpointer, workspace: Path) -> None:
    session.checkpoint("mine")
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("theirs")
    assert [words for _, words in _stream(session.timeline())] == ["mine"]


@pytest.mark.store_on_disk
def test_a_damaged_story_costs_the_messages_and_the_page_says_so(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        engine_of(session).vault.story.add_messages(
            SessionId("s"), [NewMessage(Role.USER, "hello", 0)]
        )
        store = session.save()
    for path in store.glob("story.db*"):
        path.write_bytes(b"no database" * 1000)
    with SessionCheckpointer(workspace, "s") as session:
        page = session.timeline()
        assert _stream(page) == [("checkpoint", "one")]
        assert "messages and notes are missing" in page.warnings[0]
