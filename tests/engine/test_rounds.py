"""Rounds of work: approved, thrown away, and found again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer, start_session
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import InvalidIntent, NotFound, Refused
from holdfast.domain.intent import make_intent
from holdfast.domain.sessions import RoundStatus
from holdfast.engine.retention.cleanup import cleanup
from holdfast.engine.retention.deletion import delete
from holdfast.engine.sessions.approval import approve, reset_request
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from tests.support.composition import SESSION, SteppedClock, composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe

pytestmark = pytest.mark.both_stores

DAY_NS = 86_400 * 1_000_000_000
NOON_NS = 1_800_000_000 * 1_000_000_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"0")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("how it began")
        yield session


@pytest.mark.requirement("SE-5")
def test_approving_merges_the_round_and_begins_the_next(session: SessionCheckpointer) -> None:
    fill(session.workspace / "file", b"1")
    step = session.checkpoint("a step")
    outcome = session.approve("it works")
    assert (outcome.merged, outcome.new_round) == ("session_1", "session_2")
    assert outcome.approved.id == step
    assert not outcome.saved
    merged, active = session.rounds()
    assert (merged.name, merged.status, merged.approved) == ("session_1", RoundStatus.MERGED, step)
    assert merged.message == "it works"
    assert (active.name, active.status) == ("session_2", RoundStatus.ACTIVE)
    assert session.approval().active.name == "session_2"
    assert session.approval().approved == step
    assert not session.approval().has_unapproved


@pytest.mark.requirement("SE-5")
def test_approving_saves_what_no_checkpoint_has_yet(session: SessionCheckpointer) -> None:
    fill(session.workspace / "file", b"never saved by hand")
    outcome = session.approve()
    assert outcome.saved
    assert outcome.count == 2
    fill(session.workspace / "file", b"later")
    session.restore("approved")
    assert (session.workspace / "file").read_bytes() == b"never saved by hand"


@pytest.mark.requirement("SE-5")
def test_reset_abandons_the_round_and_begins_another(session: SessionCheckpointer) -> None:
    fill(session.workspace / "file", b"good")
    approved = session.approve().approved.id
    fill(session.workspace / "file", b"bad")
    session.checkpoint("a mistake")
    fill(session.workspace / "unsaved", b"never checkpointed")
    outcome = session.reset()
    assert outcome.reset_to == approved
    assert (outcome.abandoned, outcome.new_round) == ("session_2", "session_3")
    assert (session.workspace / "file").read_bytes() == b"good"
    assert not (session.workspace / "unsaved").exists()
    assert [(one.name, one.status.value) for one in session.rounds()] == [
        ("session_1", "merged"),
        ("session_2", "abandoned"),
        ("session_3", "active"),
    ]
    assert not session.approval().has_unapproved


@pytest.mark.requirement("SE-5")
def test_reset_without_any_approval_returns_to_the_first_checkpoint(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"1")
    session.checkpoint("a step")
    outcome = session.reset()
    assert outcome.reset_to == session.history(limit=None)[-1].id
    assert (session.workspace / "file").read_bytes() == b"0"
    assert (outcome.abandoned, outcome.new_round) == ("session_1", "session_2")


@pytest.mark.requirement("SE-5", "RB-2")
def test_restoring_inside_a_round_leaves_a_record_and_stays_in_the_round(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("good", name="good")
    fill(session.workspace / "file", b"1")
    session.checkpoint("bad")
    session.restore("good")
    record = session.history(limit=1, records=True)[0]
    assert record.intent.reasoning == "Restored to good"
    assert session.approval().active.name == "session_1"
    assert len(session.rounds()) == 1


@pytest.mark.requirement("SE-5")
def test_with_nothing_to_approve_it_is_refused_and_nothing_begins(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"1")
    session.approve()
    with pytest.raises(Refused, match="nothing to approve: nothing changed in round 2"):
        session.approve()
    assert len(session.rounds()) == 2


@pytest.mark.requirement("SE-5", "SE-1")
def test_the_initial_checkpoint_of_a_session_is_no_work_to_approve(workspace: Path) -> None:
    with composed(workspace) as made:
        made.engine.save(SESSION, make_intent("Session start"), kind=Kind.INITIAL)
        with pytest.raises(Refused, match="nothing to approve"):
            approve(made.engine, SESSION, None)
        fill(workspace / "file", b"1")
        assert approve(made.engine, SESSION, None).count == 1


@pytest.mark.requirement("SE-5")
def test_after_a_reset_the_initial_checkpoint_counts_in_no_later_round(workspace: Path) -> None:
    with start_session(workspace, "s") as session:
        session.reset()
        with pytest.raises(Refused, match="nothing to approve"):
            session.approve()
        fill(workspace / "file", b"1")
        assert session.approve().count == 1


@pytest.mark.requirement("SE-5")
def test_a_state_that_was_approved_is_not_approved_again_after_work_that_was_rolled_back(
    session: SessionCheckpointer,
) -> None:
    approved = session.approve().approved.id
    fill(session.workspace / "file", b"1")
    session.checkpoint("work")
    session.restore(approved)
    assert not session.approval().has_unapproved
    with pytest.raises(Refused, match="nothing to approve"):
        session.approve()


@pytest.mark.requirement("SE-5")
def test_an_abandoned_round_can_be_brought_back_by_undo_or_by_its_head(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"thrown away")
    fill(session.workspace / "unsaved", b"never checkpointed")
    before = describe(session.workspace)
    session.reset()
    session.undo()
    assert describe(session.workspace) == before
    session.redo()
    assert (session.workspace / "file").read_bytes() == b"0"
    abandoned = session.rounds()[0]
    assert abandoned.status is RoundStatus.ABANDONED
    assert abandoned.head is not None
    session.restore(abandoned.head)
    assert describe(session.workspace) == before
    assert session.approval().active.name == "session_2"
    assert session.approval().has_unapproved


@pytest.mark.requirement("SE-5")
def test_a_session_that_does_not_exist_has_no_rounds(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "nobody") as session:
        for call in (session.approve, session.reset, session.approval, session.rounds):
            with pytest.raises(NotFound, match="nobody"):
                call()


@pytest.mark.requirement("SE-5")
def test_a_message_that_no_checkpoint_could_have_is_refused_whole(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"1")
    for message in ("   ", "x" * 1_000_000):
        with pytest.raises(InvalidIntent):
            session.approve(message)
    assert len(session.rounds()) == 1
    session.approve("bytes \udcff that are no text")
    assert "\\udcff" in (session.rounds()[0].message or "")


@pytest.mark.requirement("SE-5")
def test_what_was_approved_while_a_reset_was_being_considered_is_not_thrown_away(
    session: SessionCheckpointer, workspace: Path
) -> None:
    with open_workspace(workspace, create=False) as opened:
        considered = reset_request(opened.engine.vault, SESSION)
        fill(workspace / "file", b"approved by somebody else")
        session.approve()
        with pytest.raises(Refused, match="approved in the meantime"):
            opened.engine.restore(considered)
    assert (workspace / "file").read_bytes() == b"approved by somebody else"


@pytest.mark.requirement("SE-5")
def test_when_the_last_approved_checkpoint_was_deleted_reset_goes_to_the_one_before(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"first good")
    session.approve()
    fill(session.workspace / "file", b"second good")
    second = session.approve().approved
    with open_workspace(session.workspace, create=False) as opened:
        delete(opened.engine, second)
    session.reset()
    assert (session.workspace / "file").read_bytes() == b"first good"


@pytest.mark.requirement("ST-2", "SE-5")
def test_cleanup_never_drops_the_first_or_any_approved_checkpoint_or_an_abandoned_round(
    workspace: Path,
) -> None:
    clock = SteppedClock(NOON_NS)
    with composed(workspace, clock=clock) as made:
        engine, approved, thrown = made.engine, [], []
        engine.save(SESSION, make_intent("began"), kind=Kind.TOOL)
        first = engine.vault.catalog.first_checkpoint(SESSION)
        assert first is not None
        for number in range(3):
            fill(workspace / "file", f"good {number}".encode())
            clock.now += DAY_NS
            engine.save(SESSION, make_intent("before an edit"), kind=Kind.TOOL)
            approved.append(approve(engine, SESSION, None).approved.id)
            fill(workspace / "file", f"bad {number}".encode())
            thrown.append(engine.restore(reset_request(engine.vault, SESSION)).safety)
        clock.now += 400 * DAY_NS
        fill(workspace / "file", b"now")
        made.save("now")
        cleanup(engine, NoProgress())
        left = {checkpoint.id for checkpoint in all_checkpoints(engine.vault.catalog)}
        assert left >= {first.id, *approved, *thrown}
        for number, identifier in enumerate(approved):
            made.restore(identifier)
            assert (workspace / "file").read_bytes() == f"good {number}".encode()
        for number, identifier in enumerate(thrown):
            made.restore(identifier)
            assert (workspace / "file").read_bytes() == f"bad {number}".encode()


@pytest.mark.requirement("SE-5")
def test_an_approval_counts_what_leads_to_it_and_not_the_lines_that_were_left(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    fill(session.workspace / "file", b"good")
    good = session.checkpoint("good")
    for number in range(3):
        fill(session.workspace / "file", f"experiment {number}".encode())
        session.checkpoint(f"experiment {number}")
        session.restore(good)
    fill(session.workspace / "file", b"better")
    session.checkpoint("better")
    assert session.approval().checkpoints == 5
    assert session.approve().count == 2


@pytest.mark.requirement("SE-5")
def test_an_undone_restore_brings_its_line_back_into_the_approval(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    fill(session.workspace / "file", b"1")
    first = session.checkpoint("one")
    fill(session.workspace / "file", b"2")
    session.checkpoint("two")
    fill(session.workspace / "file", b"not saved")
    session.restore(first)
    session.undo()
    assert session.approve().count == 3  # one, two and what was not saved


@pytest.mark.requirement("SE-5")
def test_a_restore_of_some_paths_and_a_deleted_step_leave_the_count_on_the_line(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    fill(session.workspace / "file", b"1")
    first = session.checkpoint("one")
    fill(session.workspace / "other", b"2")
    second = session.checkpoint("two")
    fill(session.workspace / "file", b"3")
    session.checkpoint("three")
    session.restore_checkpoint(first, ["file"])
    with open_workspace(session.workspace, create=False) as opened:
        delete(opened.engine, opened.engine.resolve(SESSION, second))
    fill(session.workspace / "other", b"4")
    assert session.approve().count == 3  # one, three and what was not saved


@pytest.mark.requirement("SE-5")
def test_what_a_restore_of_some_paths_changed_is_saved_and_approved(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "other", b"1")
    first = session.checkpoint("one")
    fill(session.workspace / "file", b"2")
    fill(session.workspace / "other", b"2")
    session.checkpoint("two")
    session.restore_checkpoint(first, ["file"])
    outcome = session.approve()
    assert outcome.saved
    assert session.head_id == outcome.approved.id == session.history(limit=1)[0].id
    assert session.plan_restore("HEAD").steps == ()


@pytest.mark.requirement("SE-5", "RB-2")
def test_unsaved_changes_that_an_undo_brought_back_are_saved_and_approved(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    fill(session.workspace / "file", b"1")
    step = session.checkpoint("a step")
    fill(session.workspace / "file", b"not saved")
    before = describe(session.workspace)
    session.restore(step)
    session.undo()
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (True, True)
    outcome = session.approve("it works")
    assert (outcome.saved, outcome.count) == (True, 2)
    assert session.head_id == outcome.approved.id == session.history(limit=1)[0].id
    assert session.plan_restore("HEAD").steps == ()
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (False, False)
    session.redo()
    assert (session.workspace / "file").read_bytes() == b"1"
    session.undo()
    assert describe(session.workspace) == before
    fill(session.workspace / "file", b"bad")
    assert session.reset().reset_to == outcome.approved.id
    assert describe(session.workspace) == before


@pytest.mark.requirement("SE-5")
def test_work_that_was_all_restored_away_leaves_nothing_to_approve(workspace: Path) -> None:
    with start_session(workspace, "s") as session:
        fill(workspace / "file", b"1")
        session.checkpoint("an experiment")
        session.restore("initial")
        with pytest.raises(Refused, match="nothing to approve"):
            session.approve()


@pytest.mark.requirement("SE-5")
def test_edits_that_no_checkpoint_has_are_unapproved_for_every_reader(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (False, False)
    fill(session.workspace / "file", b"not saved")
    recorded, looked = session.approval(), session.approval(look=True)
    assert (recorded.has_unapproved, recorded.unsaved) == (False, None)
    assert (looked.has_unapproved, looked.unsaved) == (True, True)
    session.checkpoint("saved")
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (True, False)
    session.approve()
    assert not session.approval(look=True).has_unapproved


@pytest.mark.requirement("SE-5")
def test_a_touched_file_is_no_unsaved_change(session: SessionCheckpointer) -> None:
    session.approve("a start")
    os.utime(session.workspace / "file", ns=(1, 1))
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (False, False)


@pytest.mark.requirement("SE-5")
def test_work_that_is_saved_but_put_back_by_hand_is_both_unapproved_and_unsaved(
    session: SessionCheckpointer,
) -> None:
    session.approve("a start")
    fill(session.workspace / "file", b"1")
    session.checkpoint("work")
    fill(session.workspace / "file", b"0")
    looked = session.approval(look=True)
    assert (looked.has_unapproved, looked.unsaved) == (True, True)


@pytest.mark.requirement("SE-5")
def test_what_is_approved_holds_the_state_beside_the_files_too(
    session: SessionCheckpointer,
) -> None:
    fill(session.workspace / "file", b"1")
    session.checkpoint("a step")
    session.set_agent_state("planner", {"plan": "approved"})
    assert session.approve().saved
    session.set_agent_state("planner", {"plan": "wrecked"})
    fill(session.workspace / "file", b"2")
    session.reset()
    assert session.agent_states() == {"planner": {"plan": "approved"}}
    session.set_agent_state("planner", {"plan": "another"})
    assert session.approve().new_round == "session_4"


@pytest.mark.requirement("SE-5")
def test_other_times_of_files_are_nothing_to_approve(session: SessionCheckpointer) -> None:
    fill(session.workspace / "file", b"1")
    session.approve()
    os.utime(session.workspace / "file", (0, 0))
    assert not session.approval(look=True).has_unapproved
    with pytest.raises(Refused, match="nothing to approve"):
        session.approve()


@pytest.mark.requirement("SE-5", "RB-11")
@pytest.mark.parametrize("approved_before", [False, True])
def test_work_that_an_undo_of_a_reset_brought_back_counts_when_it_is_approved(
    workspace: Path, approved_before: bool
) -> None:
    with start_session(workspace) as session:
        if approved_before:
            fill(workspace / "file", b"approved")
            session.approve()
        for text in (b"1", b"2"):
            fill(workspace / "file", text)
            session.checkpoint(text.decode())
        session.reset()
        session.undo()
        assert (workspace / "file").read_bytes() == b"2"
        outcome = session.approve()
        assert outcome.count == 2
        fill(workspace / "file", b"3")
        session.checkpoint("3")
        assert session.approve().count == 1


@pytest.mark.requirement("SE-5")
def test_the_base_that_a_reset_returned_to_is_no_work_to_approve(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "bare") as session:
        for text in (b"base", b"1"):
            fill(workspace / "file", text)
            session.checkpoint(text.decode())
        session.reset()
        with pytest.raises(Refused, match="nothing to approve"):
            session.approve()
        fill(workspace / "file", b"2")
        session.checkpoint("2")
        assert session.approve().count == 1
