"""Checkpoints that nothing deletes unasked, each with the reason that people see."""

from __future__ import annotations

import pytest

from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.retention import protections
from holdfast.domain.sessions import Session

ONE = SessionId("one")


def _id(number: int) -> CheckpointId:
    return CheckpointId(f"{number:020x}")


def _restore(sequence: int, safety: int) -> Operation:
    return Operation(sequence, OperationKind.RESTORE, ONE, 0, _id(9), _id(safety))


@pytest.mark.requirement("ST-5", "ST-3")
def test_the_first_head_the_approved_one_and_what_undo_needs_are_protected() -> None:
    session = Session(ONE, 0, head=_id(2), approved=_id(3))
    found = protections(session, _id(1), [_restore(1, 4), _restore(2, 5)])
    assert set(found) == {_id(1), _id(2), _id(3), _id(5)}
    assert "initial" in found[_id(1)]
    assert "HEAD" in found[_id(2)]
    assert "approved round" in found[_id(3)]
    assert "undo" in found[_id(5)]


@pytest.mark.requirement("ST-5")
def test_the_strongest_reason_is_the_one_that_is_reported() -> None:
    session = Session(ONE, 0, head=_id(1), approved=_id(1))
    assert "approved round" in protections(session, _id(1), [_restore(1, 1)])[_id(1)]


@pytest.mark.requirement("ST-5")
def test_an_empty_session_protects_nothing() -> None:
    assert protections(Session(ONE, 0), None, []) == {}


@pytest.mark.requirement("ST-2", "SE-5")
def test_every_approved_checkpoint_and_the_end_of_every_abandoned_round_are_protected() -> None:
    session = Session(ONE, 0, head=_id(9), approved=_id(2))
    operations = [
        Operation(1, OperationKind.APPROVE, ONE, 0, _id(1)),
        Operation(2, OperationKind.RESET, ONE, 0, _id(7), _id(5)),
        Operation(3, OperationKind.APPROVE, ONE, 0, _id(2)),
        Operation(4, OperationKind.RESET, ONE, 0, _id(8), _id(6)),
        _restore(5, 4),
    ]
    found = protections(session, None, operations)
    assert set(found) == {_id(1), _id(2), _id(4), _id(5), _id(6), _id(9)}
    assert "approved round" in found[_id(1)]
    assert "abandoned round" in found[_id(5)]
