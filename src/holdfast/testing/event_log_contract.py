"""What every event log must do: the contract of `holdfast.ports.event_log`, as tests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from holdfast.domain.events import Event, EventType, NewEvent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.ports.event_log import EventCursors, EventLog


def new_event(number: int) -> NewEvent:
    return NewEvent(
        f"key {number}",
        EventType.CHECKPOINT,
        number,
        SessionId("one"),
        CheckpointId(f"{number:020x}"),
        {"operation": number, "kind": "checkpoint"},
    )


class EventLogContract:
    """Subclass it, and say how a log is opened in a directory."""

    def open_log(self, directory: Path) -> EventLog:
        raise NotImplementedError

    def test_a_new_log_is_empty_and_was_read_nowhere(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            assert list(log.after(0, 10)) == []
            assert log.cursors() == EventCursors()
            assert log.newest() > 0

    def test_events_get_rising_numbers_and_say_what_was_given(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            below = log.newest()
            with log.exclusive():
                log.take_in([new_event(1), new_event(2)], EventCursors(operation=2))
                log.take_in([NewEvent("x", EventType.SETTINGS, 3)], EventCursors(operation=3))
            first, second, third = found = log.after(0, 10)
            assert below < first.number < second.number < third.number == log.newest()
            given = new_event(1)
            assert first == Event(
                first.number,
                given.type,
                given.at_ns,
                given.session_id,
                given.checkpoint,
                given.about,
            )
            assert (third.session_id, third.checkpoint, third.about) == (None, None, {})
            assert list(log.after(first.number, 1)) == [second]
            assert list(log.after(first.number, 10)) == list(found)[1:]
            assert list(log.after(third.number, 10)) == []

    def test_a_key_is_taken_in_once(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            with log.exclusive():
                log.take_in([new_event(1)], EventCursors(operation=1))
                log.take_in([new_event(1), new_event(2)], EventCursors(operation=2))
            assert [event.at_ns for event in log.after(0, 10)] == [1, 2]

    def test_where_sources_were_read_to_is_kept(self, tmp_path: Path) -> None:
        reached = EventCursors(
            5, "mark", "story", 6, 7, 8, (1, 2), {"one": "active"}, {"budget": "abc"}
        )
        with closing(self.open_log(tmp_path)) as log:
            with log.exclusive():
                log.take_in([], reached)
            assert log.cursors() == reached
