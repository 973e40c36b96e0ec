"""One stream of everything, newest first, with lanes that show which work grew from what."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.sessions import Round, RoundStatus
from holdfast.domain.story import Message, Role
from holdfast.domain.timeline.lanes import make_timeline
from holdfast.domain.timeline.timeline import Cursor, Event, EventType, Outline, Sources, Timeline

pytestmark = pytest.mark.requirement("SE-9")

S = SessionId("s")


def _id(number: int) -> CheckpointId:
    return CheckpointId(f"{number:020x}")


def _row(
    number: int,
    parent: int | None,
    *,
    kind: Kind = Kind.MANUAL,
    message: int | None = None,
    round_number: int = 1,
    at_ns: int | None = None,
) -> Outline:
    return Outline(
        number,
        _id(number),
        None if parent is None else _id(parent),
        kind,
        number * 10 if at_ns is None else at_ns,
        f"reason {number}",
        None,
        0.8,
        0,
        0,
        0,
        None,
        False,
        message,
        None,
        round_number,
    )


def _message(index: int, at_ns: int = 0) -> Message:
    return Message(S, index, Role.USER, f"message {index}", at_ns)


def _whole(sources: Sources, **known: object) -> Timeline:
    return make_timeline(sources, Cursor(), limit=10_000, **known)  # type: ignore[arg-type]


def _told(events: Sequence[Event]) -> list[str]:
    told = []
    for event in events:
        if event.checkpoint is not None:
            told.append(f"{event.type.value} {event.checkpoint.sequence}")
        elif event.message is not None:
            told.append(f"message {event.message.index}")
        else:
            told.append(event.type.value)
    return told


def _newest_first(*rows: Outline) -> list[Outline]:
    return sorted(rows, key=lambda row: -row.sequence)


def test_one_line_of_work_is_one_lane() -> None:
    page = _whole(Sources(_newest_first(_row(1, None), _row(2, 1), _row(3, 2))))
    assert [event.lane for event in page.events] == [0, 0, 0]
    assert [event.begins for event in page.events] == [True, False, False]
    assert [event.ends for event in page.events] == [False, False, True]
    assert page.lanes == 1


def test_work_that_went_on_from_an_older_checkpoint_is_a_lane_of_its_own() -> None:
    rows = [
        _row(1, None),
        _row(2, 1),
        _row(3, 2),
        _row(4, 3, kind=Kind.SAFETY),
        _row(5, 1, kind=Kind.RESTORE),
        _row(6, 5),
    ]
    restore = Operation(9, OperationKind.RESTORE, S, 0, _id(5), _id(4))
    page = _whole(Sources(_newest_first(*rows), restores={_id(5): restore}), head=_id(6))
    assert _told(page.events) == [
        *("checkpoint 6", "restore 5", "checkpoint 3", "checkpoint 2", "checkpoint 1")
    ]
    assert [event.lane for event in page.events] == [0, 0, 1, 1, 0]
    assert page.events[-1].joins == (1,)
    assert page.events[2].passing == (0,)
    assert [event.is_head for event in page.events] == [True, False, False, False, False]


def test_an_undo_leads_back_to_the_line_that_was_left() -> None:
    rows = [
        _row(1, None),
        _row(2, 1),
        _row(3, 2, kind=Kind.SAFETY),
        _row(4, 1, kind=Kind.RESTORE),
        _row(5, 4, kind=Kind.SAFETY),
        _row(6, 3, kind=Kind.RESTORE),
        _row(7, 6),
    ]
    page = _whole(Sources(_newest_first(*rows)))
    lanes = {event.checkpoint.sequence: event.lane for event in page.events if event.checkpoint}
    assert lanes == {7: 0, 6: 0, 4: 1, 2: 0, 1: 0}


def test_an_approval_is_between_the_rounds() -> None:
    rows = [_row(1, None), _row(2, 1), _row(3, 2, round_number=2), _row(4, 3, round_number=2)]
    ended = Round(1, RoundStatus.MERGED, 0, ended_at_ns=-5, approved=_id(2), message="good")
    page = _whole(Sources(_newest_first(*rows), [ended]), rounds=[ended], approved=_id(2))
    assert _told(page.events) == [
        *("checkpoint 4", "checkpoint 3", "approve", "checkpoint 2", "checkpoint 1")
    ]
    assert [event.is_approved for event in page.events] == [False, False, False, True, False]
    assert {event.lane for event in page.events} == {0}


def test_an_approval_of_what_is_newest_comes_first() -> None:
    ended = Round(1, RoundStatus.MERGED, 0, ended_at_ns=0, approved=_id(2))
    page = _whole(Sources(_newest_first(_row(1, None), _row(2, 1)), [ended]))
    assert _told(page.events) == ["approve", "checkpoint 2", "checkpoint 1"]
    assert [event.lane for event in page.events] == [0, 0, 0]
    assert [event.begins for event in page.events] == [True, False, False]


def test_messages_are_where_checkpoints_know_them_whatever_the_clock_says() -> None:
    rows = [_row(1, None, message=0), _row(2, 1, message=2), _row(3, 2, message=2)]
    messages = [_message(index, at_ns=10_000 - index) for index in range(4)]
    page = _whole(Sources(_newest_first(*rows), messages=messages[::-1]))
    assert _told(page.events) == [
        "message 3",
        "checkpoint 3",
        "checkpoint 2",
        "message 2",
        "message 1",
        "checkpoint 1",
        "message 0",
    ]


def test_where_no_index_is_known_messages_are_ordered_by_time() -> None:
    rows = [_row(1, None, at_ns=10), _row(2, 1, at_ns=30)]
    messages = [_message(0, 5), _message(1, 20), _message(2, 40)]
    page = _whole(Sources(_newest_first(*rows), messages=messages[::-1]))
    assert _told(page.events) == [
        *("message 2", "checkpoint 2", "message 1", "checkpoint 1", "message 0")
    ]


def test_a_clock_that_goes_back_changes_no_order() -> None:
    rows = [_row(1, None, at_ns=500), _row(2, 1, at_ns=100), _row(3, 2, at_ns=300)]
    page = _whole(Sources(_newest_first(*rows)))
    assert _told(page.events) == ["checkpoint 3", "checkpoint 2", "checkpoint 1"]


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "[1,2,3,4,5]", '[1,2,3,4,"5",[]]', "[1,2,3,4,5,[1]]"]
)
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Cursor.decode(text)


@st.composite
def _histories(draw: st.DrawFn) -> list[Outline]:
    """Checkpoints that grow from any older one, with restores in between."""
    rows: list[Outline] = []
    for number in range(1, draw(st.integers(1, 30)) + 1):
        before = [row.sequence for row in rows]
        older = st.sampled_from(before) | st.just(before[-1]) if before else st.none()
        kinds = [Kind.MANUAL, Kind.MANUAL, Kind.RESTORE, Kind.SAFETY] if rows else [Kind.MANUAL]
        rows.append(_row(number, draw(older), kind=draw(st.sampled_from(kinds))))
    return rows


@given(_histories(), st.integers(1, 12), st.lists(st.integers(0, 300), max_size=10))
def test_pages_of_any_size_are_the_whole_cut_in_pieces(
    rows: list[Outline], size: int, times: list[int]
) -> None:
    messages = [_message(index, at_ns) for index, at_ns in enumerate(times)]
    newest = Sources(_newest_first(*rows), messages=messages[::-1])
    whole = _whole(newest)
    paged: list[Event] = []
    cursor = Cursor()
    while True:
        older = Sources(
            [row for row in newest.checkpoints if row.sequence < cursor.checkpoint],
            messages=[m for m in newest.messages if m.index < cursor.message],
        )
        page = make_timeline(older, cursor, limit=size)
        assert len(page.events) <= size
        paged += page.events
        if page.next is None:
            break
        cursor = Cursor.decode(page.next)
    assert tuple(paged) == whole.events


@given(_histories())
def test_every_checkpoint_is_drawn_once_and_connected_to_what_it_grew_from(
    rows: list[Outline],
) -> None:
    by_id = {row.id: row for row in rows}
    events = _whole(Sources(_newest_first(*rows))).events
    drawn = [event.checkpoint for event in events if event.checkpoint]
    assert drawn == [row for row in _newest_first(*rows) if row.kind is not Kind.SAFETY]
    place = {event.checkpoint.id: at for at, event in enumerate(events) if event.checkpoint}
    for at, event in enumerate(events):
        assert event.lane not in event.passing
        assert event.lane not in event.joins
        row = event.checkpoint
        assert row is not None
        parent = by_id[row.parent] if row.parent else None
        while parent is not None and parent.kind is Kind.SAFETY:
            parent = by_id[parent.parent] if parent.parent else None
        if parent is None:
            continue
        grown_from = events[place[parent.id]]
        assert event.lane in (grown_from.lane, *grown_from.joins)
        for between in events[at + 1 : place[parent.id]]:
            assert event.lane in between.passing


def test_more_lines_than_anybody_can_tell_apart_share_a_lane() -> None:
    rows = [_row(1, None)] + [_row(number, 1) for number in range(2, 200)]
    events = _whole(Sources(_newest_first(*rows))).events
    assert len(events) == 199
    assert max(event.lane or 0 for event in events) < 64


def test_an_event_is_what_the_restore_was() -> None:
    row = _row(2, 1, kind=Kind.RESTORE)
    for kind in (OperationKind.UNDO, OperationKind.REDO, OperationKind.RESET):
        operation = Operation(1, kind, S, 0, row.id)
        page = _whole(Sources([row, _row(1, None)], restores={row.id: operation}))
        assert page.events[0].type.value == kind.value
    unknown = _whole(Sources([row, _row(1, None)]))
    assert unknown.events[0].type is EventType.RESTORE
