"""A trigger that finds nothing changed is given the checkpoint of a moment ago (SE-12)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Kind, Position
from holdfast.domain.errors import LimitReached
from holdfast.domain.intent import make_intent
from tests.support.composition import SESSION, SteppedClock, composed, configure

pytestmark = pytest.mark.requirement("SE-12")

MINUTE_NS = 60 * 10**9


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file").write_bytes(b"at first")
    return workspace


@pytest.mark.parametrize("kind", AUTOMATIC_KINDS)
def test_every_automatic_trigger_reuses_a_checkpoint_of_the_same_tree_and_kind(
    workspace: Path, kind: Kind
) -> None:
    with composed(workspace) as opened:
        made = opened.engine.save(SESSION, make_intent("once"), kind=kind).checkpoint
        reason = "once" if kind is Kind.MESSAGE else "again"  # another message has its own
        outcome = opened.engine.save(SESSION, make_intent(reason), kind=kind)
        assert (outcome.checkpoint, outcome.deduplicated) == (made, True)
        assert len(opened.engine.vault.catalog.history(SESSION)) == 1


@pytest.mark.parametrize("kind", [Kind.MANUAL, Kind.RISKY])
def test_before_a_tool_a_checkpoint_that_is_kept_as_long_serves_as_well(
    workspace: Path, kind: Kind
) -> None:
    with composed(workspace) as opened:
        made = opened.engine.save(SESSION, make_intent("once"), kind=kind).checkpoint
        outcome = opened.engine.save(SESSION, make_intent("again"), kind=Kind.TOOL)
        assert (outcome.checkpoint, outcome.deduplicated) == (made, True)


@pytest.mark.parametrize("kind", [Kind.MESSAGE, Kind.RISKY])
def test_a_message_and_a_risk_get_their_own_checkpoint(workspace: Path, kind: Kind) -> None:
    with composed(workspace) as opened:
        opened.save("by hand")
        outcome = opened.engine.save(SESSION, make_intent("mine"), kind=kind)
        assert (outcome.checkpoint.kind, outcome.deduplicated) == (kind, False)


def test_a_checkpoint_by_hand_is_always_made_unless_reuse_is_asked_for(workspace: Path) -> None:
    with composed(workspace) as opened:
        first, second = opened.save("one"), opened.save("two")
        assert first.id != second.id
        outcome = opened.engine.save(SESSION, make_intent("three"), reuse=True)
        assert (outcome.checkpoint, outcome.deduplicated) == (second, True)


@pytest.mark.requirement("CP-2")
def test_the_library_gives_the_same_one_back_to_who_asks_for_it(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        assert session.checkpoint("two", reuse=True) == first
        assert session.save_checkpoint("two", reuse=True).deduplicated
        named = session.save_checkpoint("three", name="mine", reuse=True)
        assert (named.deduplicated, named.checkpoint.name) == (False, "mine")
        (workspace / "file").write_bytes(b"changed")
        assert not session.save_checkpoint("four", reuse=True).deduplicated
        assert session.checkpoint_count == 3


@pytest.mark.requirement("SE-11")
def test_who_is_content_with_the_one_there_is_needs_no_room_for_another(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=1)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        assert session.checkpoint("two", reuse=True) == first
        (workspace / "file").write_bytes(b"changed")
        with pytest.raises(LimitReached, match="max_manual_checkpoints"):
            session.checkpoint("three", reuse=True)


def test_after_a_minute_or_a_clock_that_went_back_a_new_one_is_made(workspace: Path) -> None:
    clock = SteppedClock(time.time_ns())
    with composed(workspace, clock=clock) as opened:
        opened.save("by hand")
        clock.now += MINUTE_NS - 1
        assert opened.engine.save(SESSION, make_intent("a"), kind=Kind.TOOL).deduplicated
        clock.now += 1
        later = opened.engine.save(SESSION, make_intent("b"), kind=Kind.TOOL)
        assert not later.deduplicated
        clock.now -= MINUTE_NS
        assert not opened.engine.save(SESSION, make_intent("c"), kind=Kind.TOOL).deduplicated


@pytest.mark.parametrize("change", ["content", "mode", "new file", "left out"])
def test_any_change_makes_a_new_one(workspace: Path, change: str) -> None:
    with composed(workspace) as opened:
        opened.save("by hand")
        if change == "content":
            (workspace / "file").write_bytes(b"AT FIRST")
        elif change == "mode":
            (workspace / "file").chmod(0o600)
        elif change == "new file":
            (workspace / "empty").touch()
        else:
            os.mkfifo(workspace / "pipe")  # only the list of what is left out tells
        outcome = opened.engine.save(SESSION, make_intent("again"), kind=Kind.TOOL)
        assert not outcome.deduplicated


def test_a_named_one_is_made_and_carries_its_place_in_the_conversation(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save("by hand")
        intent = make_intent("again", name="wanted")
        position = Position(message_index=7, tool_use_id="toolu_1")
        made = opened.engine.save(SESSION, intent, kind=Kind.TOOL, position=position)
        assert not made.deduplicated
        found = opened.engine.resolve(SESSION, "wanted")
        assert (found.message_index, found.tool_use_id, found.round) == (7, "toolu_1", 1)


def test_what_a_restore_brought_back_is_reused_by_who_asks_for_it(workspace: Path) -> None:
    with composed(workspace) as opened:
        first = opened.save("first")
        (workspace / "file").write_bytes(b"changed")
        opened.save("second")
        record = opened.restore(first.id).record
        outcome = opened.engine.save(SESSION, make_intent("next"), reuse=True)
        assert (outcome.checkpoint.id, outcome.deduplicated) == (record, True)


@pytest.mark.requirement("SE-3", "SE-12")
def test_two_messages_within_a_minute_have_a_checkpoint_each(workspace: Path) -> None:
    with composed(workspace) as opened:
        first, again, other = (
            opened.engine.save(SESSION, make_intent(words), kind=Kind.MESSAGE)
            for words in ("Before user message: hi", "Before user message: hi", "another")
        )
        assert again.deduplicated
        assert again.checkpoint.id == first.checkpoint.id
        assert not other.deduplicated
