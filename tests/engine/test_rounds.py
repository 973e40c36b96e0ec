"""Approve, reset and the rounds they end (SE-5), on the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.rounds import RoundStatus
from holdfast.engine.approval import rounds
from tests.support.composition import SESSION, Composed, composed

pytestmark = pytest.mark.requirement("SE-5")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file").write_text("initial")
    return workspace


def _rounds(opened: Composed) -> list[tuple[str, RoundStatus]]:
    session = opened.engine.vault.catalog.session(SESSION)
    assert session is not None
    return [(found.name, found.status) for found in rounds(opened.engine.vault, session)]


def _reset(opened: Composed) -> str:
    return opened.engine.restore(opened.engine.reset_request(SESSION)).restored_to


def test_approve_locks_in_and_reset_abandons(workspace: Path) -> None:
    file = workspace / "file"
    with composed(workspace) as opened:
        opened.save("start")
        file.write_text("good")
        good = opened.save("good work")
        outcome = opened.engine.approve(SESSION, "looks right")
        assert (outcome.approved, outcome.saved) == (good, False)
        assert (outcome.merged, outcome.new_round, outcome.count) == ("session_1", "session_2", 2)
        file.write_text("wrecked")
        opened.save("wrecked")
        assert opened.engine.approval(SESSION).has_unapproved
        assert _reset(opened) == good.id
        assert file.read_text() == "good"
        assert _rounds(opened) == [
            ("session_1", RoundStatus.MERGED),
            ("session_2", RoundStatus.ABANDONED),
            ("session_3", RoundStatus.ACTIVE),
        ]
        status = opened.engine.approval(SESSION)
        assert (status.active.name, status.has_unapproved) == ("session_3", False)
        assert status.approved == good.id


def test_what_was_not_saved_is_saved_by_the_approval(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("start")
        (workspace / "file").write_text("never saved")
        outcome = opened.engine.approve(SESSION, None)
        assert (outcome.saved, outcome.count) == (True, 2)
        assert outcome.approved.intent.reasoning == "Approved session_1"
        (workspace / "file").write_text("later")
        _reset(opened)
        assert (workspace / "file").read_text() == "never saved"


def test_nothing_to_approve_is_refused_and_changes_nothing(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("start")
        opened.engine.approve(SESSION, None)
        with pytest.raises(Refused, match="nothing to approve"):
            opened.engine.approve(SESSION, "again")
        assert [name for name, _ in _rounds(opened)] == ["session_1", "session_2"]


def test_without_an_approval_reset_goes_back_to_the_beginning_and_undo_brings_it_back(
    workspace: Path,
) -> None:
    file = workspace / "file"
    with composed(workspace) as opened:
        first = opened.save("start")
        file.write_text("work")
        opened.save("work")
        file.write_text("unsaved work")
        assert _reset(opened) == first.id
        assert file.read_text() == "initial"
        session = opened.engine.vault.catalog.session(SESSION)
        assert session is not None
        (abandoned, _) = rounds(opened.engine.vault, session)
        opened.undo()
        assert file.read_text() == "unsaved work"
        _reset(opened)
        assert abandoned.head is not None
        opened.restore(abandoned.head)
        assert file.read_text() == "unsaved work"


def test_a_reset_of_what_is_unchanged_still_ends_the_round(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("start")
        _reset(opened)
        assert _rounds(opened)[0] == ("session_1", RoundStatus.ABANDONED)


def test_a_restore_inside_a_round_stays_in_it(workspace: Path) -> None:
    with composed(workspace) as opened:
        first = opened.save("start")
        opened.engine.approve(SESSION, None)
        (workspace / "file").write_text("work")
        opened.save("work")
        record = opened.engine.resolve(SESSION, opened.restore(first.id).record)
        assert record.intent.reasoning.startswith("Restored to ")
        assert record.round == 2
        assert opened.engine.approval(SESSION).active.name == "session_2"


def test_the_message_is_kept_with_the_approval(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("start")
        opened.engine.approve(SESSION, "ship it")
        log = opened.engine.vault.catalog.operations(SESSION, kinds=(OperationKind.APPROVE,))
        assert [operation.note for operation in log] == ["ship it"]


def test_a_session_that_does_not_exist_is_named(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("start")
        for call in (
            opened.engine.approval,
            opened.engine.reset_request,
            lambda session: opened.engine.approve(session, None),
        ):
            with pytest.raises(NotFound, match="nobody"):
                call(SessionId("nobody"))
