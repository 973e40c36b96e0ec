"""Which messages hold after restores, undos and redos, against a naive model of the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.story import Marks, Rollback, Stretch, roll_back, rolled_back_by

pytestmark = pytest.mark.requirement("SE-4")


def live(marks: Marks, count: int) -> list[int]:
    return [index for index in range(count) if rolled_back_by(marks, index) is None]


def restored(
    earlier: list[Rollback], *, operation: int, target: int | None, keeps: int, through: int
) -> Rollback:
    return roll_back(
        earlier,
        operation=operation,
        record=operation * 10,
        target=target,
        keeps=keeps,
        through=through,
    )


def test_messages_after_the_restored_checkpoint_are_rolled_back() -> None:
    done = restored([], operation=5, target=3, keeps=2, through=6)
    assert done.after == (Stretch(3, 6, 5),)
    assert live(done.after, 9) == [0, 1, 2, 7, 8]


def test_a_restore_to_before_the_conversation_rolls_all_of_it_back() -> None:
    assert restored([], operation=5, target=3, keeps=-1, through=1).after == (Stretch(0, 1, 5),)


def test_a_restore_of_some_paths_changes_nothing() -> None:
    first = restored([], operation=5, target=3, keeps=2, through=4)
    done = restored([first], operation=6, target=None, keeps=0, through=9)
    assert done.after == done.before == first.after


def test_undo_brings_messages_back_and_takes_those_said_since() -> None:
    first = restored([], operation=5, target=3, keeps=2, through=4)
    # Its safety checkpoint came right before the record, and knew messages up to 4.
    undo = restored([first], operation=6, target=49, keeps=4, through=6)
    assert live(undo.after, 8) == [0, 1, 2, 3, 4, 7]
    assert rolled_back_by(undo.after, 5) == 6
    redo = restored([first, undo], operation=7, target=59, keeps=6, through=6)
    assert live(redo.after, 8) == [0, 1, 2, 5, 6, 7]
    assert rolled_back_by(redo.after, 3) == 5


def test_going_forward_again_brings_back_what_held_there() -> None:
    # A checkpoint of message 4 was made before the restore to message 1.
    first = restored([], operation=5, target=3, keeps=1, through=4)
    forward = restored([first], operation=6, target=4, keeps=4, through=7)
    assert live(forward.after, 9) == [0, 1, 2, 3, 4, 8]


@pytest.mark.requirement("RB-2")
@given(st.data())
def test_marks_are_those_of_a_conversation_kept_whole_at_every_checkpoint(
    data: st.DataObject,
) -> None:
    """The model keeps, with every checkpoint, the set of messages that held when it was made."""
    said, holds = 0, set[int]()
    checkpoints: list[tuple[int, int, frozenset[int]]] = []
    history: list[Rollback] = []
    clock = 0
    for _ in range(data.draw(st.integers(1, 12))):
        clock += 1
        act = data.draw(st.sampled_from(["say", "save", "restore"]))
        if act == "say":
            holds.add(said)
            said += 1
        elif act == "save" or not checkpoints:
            checkpoints.append((clock, said - 1, frozenset(holds)))
        else:
            checkpoints.append((clock, said - 1, frozenset(holds)))  # the safety checkpoint
            clock += 1
            target, keeps, held = data.draw(st.sampled_from(checkpoints))
            history.append(
                roll_back(
                    history,
                    operation=len(history) + 1,
                    record=clock,
                    target=target,
                    keeps=keeps,
                    through=said - 1,
                )
            )
            holds = set(held)
            assert set(live(history[-1].after, said)) == holds
