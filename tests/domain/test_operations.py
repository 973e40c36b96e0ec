"""Undo and redo lists, against two stacks."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind, undo_lists

WORDS = ["restore", "reset", "undo", "redo"]
OTHER_KINDS = [kind for kind in OperationKind if kind not in RESTORING_KINDS]


def operation(sequence: int, kind: OperationKind, reverses: int | None = None) -> Operation:
    return Operation(sequence, kind, SessionId("s"), at_ns=0, reverses=reverses)


@given(
    actions=st.lists(
        st.sampled_from(["restore", "reset", "undo", "redo", *OTHER_KINDS]), max_size=30
    ),
    order=st.randoms(use_true_random=False),
)
def test_the_lists_are_those_of_two_stacks_whatever_order_the_log_is_read_in(
    actions: list[str], order: random.Random
) -> None:
    undo_stack: list[int] = []
    redo_stack: list[int] = []
    log: list[Operation] = []
    for sequence, action in enumerate(actions, start=1):
        if action in ("restore", "reset"):
            log.append(operation(sequence, OperationKind(action)))
            undo_stack.append(sequence)
            redo_stack.clear()
        elif action == "undo" and undo_stack:
            log.append(operation(sequence, OperationKind.UNDO, undo_stack.pop()))
            redo_stack.append(sequence)
        elif action == "redo" and redo_stack:
            log.append(operation(sequence, OperationKind.REDO, redo_stack.pop()))
            undo_stack.append(sequence)
        elif isinstance(action, OperationKind):
            log.append(operation(sequence, action))
    order.shuffle(log)
    lists = undo_lists(log)
    assert [op.sequence for op in lists.undoable] == undo_stack
    assert [op.sequence for op in lists.redoable] == redo_stack


def test_an_undo_of_something_unknown_changes_no_other_entry() -> None:
    log = [operation(1, OperationKind.RESTORE), operation(2, OperationKind.UNDO, reverses=99)]
    lists = undo_lists(log)
    assert [op.sequence for op in lists.undoable] == [1]
