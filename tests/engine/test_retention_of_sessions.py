"""Which states of a session retention keeps, and how long after its last activity (ST-2)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.retention import Decision
from holdfast.domain.story import Role
from holdfast.engine.retention.cleanup import cleanup
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.ports.story import NewMessage
from tests.support.clocks import DAY_NS
from tests.support.composition import SESSION, Composed, SteppedClock, composed, configure
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("ST-2"), pytest.mark.both_stores]

HOUR_NS = DAY_NS // 24


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"at first")
    return workspace


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(time.time_ns())


def work(opened: Composed, state: str, kind: Kind = Kind.TOOL) -> CheckpointId:
    fill(opened.engine.vault.workspace / "file", state.encode())
    return opened.engine.save(SESSION, make_intent(state), kind=kind).checkpoint.id


def say(opened: Composed, role: Role, text: str) -> None:
    vault = opened.engine.vault
    vault.story.add_messages(SESSION, [NewMessage(role, text, vault.clock.now_ns())])


def cleaned_up(opened: Composed) -> dict[CheckpointId, Decision]:
    decided = cleanup(opened.engine, NoProgress()).decisions
    kept = {one.id for one in all_checkpoints(opened.engine.vault.catalog)}
    assert kept == {d.checkpoint.id for d in decided if d.keep}
    return {d.checkpoint.id: d for d in decided}


def test_a_day_of_many_checkpoints_is_whole_after_three_days(
    workspace: Path, clock: SteppedClock
) -> None:
    with composed(workspace, clock=clock) as opened:
        for number in range(238):
            work(opened, f"{number}", Kind.RISKY if number % 3 else Kind.TOOL)
            clock.now += 2 * 60 * 10**9
        clock.now += 3 * DAY_NS
        assert all(decision.keep for decision in cleaned_up(opened).values())


def test_nothing_of_a_session_active_in_the_last_day_is_thinned(
    workspace: Path, clock: SteppedClock
) -> None:
    configure(workspace, retention={"tool": {"age": "1 minute", "most": 1}})
    with composed(workspace, clock=clock) as opened:
        made = [work(opened, f"{number}") for number in range(5)]
        clock.now += 20 * DAY_NS
        made.append(work(opened, "the session goes on"))
        clock.now += 24 * HOUR_NS
        decided = cleaned_up(opened)
        assert [decided[one].keep for one in made] == [True] * 6
        assert decided[made[1]].reason == "protected: its session was active in the last 24 hours"
        clock.now += 1
        decided = cleaned_up(opened)
        assert [decided[one].keep for one in made] == [True, False, False, False, False, True]
        clock.now += 1
        assert len(cleaned_up(opened)) == 2  # what was thinned is no activity


def test_a_message_alone_is_activity(workspace: Path, clock: SteppedClock) -> None:
    with composed(workspace, clock=clock) as opened:
        made = [work(opened, f"{number}") for number in range(3)]
        clock.now += 20 * DAY_NS
        say(opened, Role.USER, "what does this do?")
        clock.now += 23 * HOUR_NS
        assert len(cleaned_up(opened)) == len(made)
        clock.now += 2 * HOUR_NS
        assert not cleaned_up(opened)[made[1]].keep


@pytest.mark.parametrize("automatic", [True, False])
def test_after_a_week_the_state_before_each_message_is_left_and_after_a_month_none(
    workspace: Path, clock: SteppedClock, automatic: bool
) -> None:
    """Also where no checkpoint is made for a message: then it is the last one before it."""
    with composed(workspace, clock=clock) as opened:
        initial = work(opened, "where it began", Kind.INITIAL)
        before = []
        for turn in range(3):
            if automatic:
                before.append(work(opened, f"before message {turn}", Kind.MESSAGE))
            say(opened, Role.USER, f"message {turn}")
            for number in range(3):
                work(opened, f"turn {turn}, call {number}")
                say(opened, Role.ASSISTANT, f"answer {turn} {number}")
                clock.now += HOUR_NS
            if not automatic:
                before.append(work(opened, f"turn {turn}, its last call"))
        if not automatic:
            say(opened, Role.USER, "the last message")
        head = work(opened, "how it ended")
        clock.now += 7 * DAY_NS + 9 * HOUR_NS
        decided = cleaned_up(opened)
        kept = {one for one, decision in decided.items() if decision.keep}
        assert kept == {initial, head, *before}
        clock.now += 22 * DAY_NS
        assert len(cleaned_up(opened)) == len(kept)
        clock.now += 2 * DAY_NS
        kept = {one for one, decision in cleaned_up(opened).items() if decision.keep}
        assert kept == {initial, head}


@pytest.mark.store_on_disk
def test_where_annotations_cannot_be_read_nothing_is_dropped(
    workspace: Path, clock: SteppedClock
) -> None:
    with composed(workspace, clock=clock) as opened:
        made = [work(opened, f"{number}") for number in range(3)]
        say(opened, Role.USER, "there is a story")
        directory = opened.store.directory
    clock.now += 90 * DAY_NS
    for story in directory.glob("story.db*"):
        story.write_bytes(b"damaged" * 1000)
    with composed(workspace, clock=clock) as opened:
        assert {one for one, decision in cleaned_up(opened).items() if decision.keep} == set(made)


@pytest.mark.requirement("RL-4")
@pytest.mark.parametrize("noted", [b'{"cleaned_ns": "soon", "no_room_ns": null}', b"[1]", b"\xff"])
def test_what_was_noted_of_the_last_cleanup_may_be_damaged(
    workspace: Path, clock: SteppedClock, noted: bytes
) -> None:
    with composed(workspace, clock=clock) as opened:
        made = [work(opened, f"{number}") for number in range(4)]
        (opened.store.directory / "upkeep").write_bytes(noted)
        clock.now += 8 * DAY_NS
        opened.engine.save(SessionId("other"), make_intent("a new session"), kind=Kind.TOOL)
        assert len(list(all_checkpoints(opened.engine.vault.catalog))) == len(made) + 1
        clock.now += DAY_NS
        opened.engine.save(SessionId("other"), make_intent("a day later"), kind=Kind.TOOL)
        left = {one.id for one in all_checkpoints(opened.engine.vault.catalog)}
        assert left & set(made) == {made[0], made[-1]}
        assert opened.store.space.read_upkeep()["cleaned_ns"] == clock.now


def test_a_save_cleans_up_once_a_day_and_notes_it(workspace: Path, clock: SteppedClock) -> None:
    with composed(workspace, clock=clock) as opened:
        made = [work(opened, f"{number}") for number in range(4)]
        clock.now += 8 * DAY_NS
        opened.engine.save(SessionId("other"), make_intent("a new session"), kind=Kind.TOOL)
        assert opened.store.space.read_upkeep()["dropped"] == 0  # so far only the clock says that
        clock.now += DAY_NS
        opened.engine.save(SessionId("other"), make_intent("a day later"), kind=Kind.RISKY)
        left = {one.id for one in all_checkpoints(opened.engine.vault.catalog)}
        assert left & set(made) == {made[0], made[-1]}
        noted = opened.store.space.read_upkeep()
        assert (noted["cleaned_ns"], noted["dropped"]) == (clock.now, 2)
        clock.now += DAY_NS - 1
        opened.engine.save(SessionId("other"), make_intent("the same day"), kind=Kind.RISKY)
        assert opened.store.space.read_upkeep() == noted


@pytest.mark.parametrize("days", [8, 40, 10_000])
def test_a_clock_that_is_far_ahead_for_an_hour_costs_no_state(
    workspace: Path, clock: SteppedClock, days: int
) -> None:
    with composed(workspace, clock=clock) as opened:
        made = {work(opened, f"{number}") for number in range(20)}
        clock.now += DAY_NS
        opened.engine.save(SessionId("other"), make_intent("the next day"), kind=Kind.TOOL)
        clock.now += days * DAY_NS
        opened.engine.save(SessionId("other"), make_intent("far ahead"), kind=Kind.TOOL)
        cleanup(opened.engine, NoProgress(), asked=False)
        clock.now -= days * DAY_NS - HOUR_NS
        opened.engine.save(SessionId("other"), make_intent("right again"), kind=Kind.RISKY)
        for _ in range(3):
            clock.now += DAY_NS
            opened.engine.save(SessionId("other"), make_intent("days later"), kind=Kind.TOOL)
        assert made <= {one.id for one in all_checkpoints(opened.engine.vault.catalog)}
