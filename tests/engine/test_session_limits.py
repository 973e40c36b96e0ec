"""How many checkpoints a session takes: by hand in all, automatically in an hour."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Kind
from holdfast.domain.errors import InvalidSetting, LimitReached
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.domain.settings import Settings, check_setting
from tests.support.composition import SESSION, Composed, SteppedClock, composed, configure

HOUR_NS = 3600 * 10**9

pytestmark = pytest.mark.requirement("SE-11")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file").write_bytes(b"at first")
    return workspace


def _automatic(opened: Composed, reason: str, kind: Kind = Kind.TOOL) -> SaveOutcome:
    """A trigger after a change: without one it would be given the checkpoint there is."""
    (opened.engine.vault.workspace / "changed").write_text(reason)
    return opened.engine.save(SESSION, make_intent(reason), kind=kind)


def _history(opened: Composed) -> list[str]:
    found = opened.engine.vault.catalog.history(SESSION)
    return [checkpoint.intent.reasoning for checkpoint in found]


def test_the_limits_are_fifty_by_hand_and_thirty_an_hour_unless_set() -> None:
    assert Settings().max_manual_checkpoints == 50
    assert Settings().max_automatic_per_hour == 30


@pytest.mark.parametrize("value", [-1, 1.5, True, "many", 10**10])
def test_a_limit_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting, match="max_manual_checkpoints"):
        check_setting("max_manual_checkpoints", value)


def test_one_by_hand_too_many_is_refused_by_the_name_of_the_setting_and_stores_nothing(
    workspace: Path,
) -> None:
    configure(workspace, max_manual_checkpoints=3)
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(3):
            session.checkpoint(f"number {number}")
        before = session.stats
        (workspace / "file").write_bytes(b"not stored")
        with pytest.raises(LimitReached, match="max_manual_checkpoints") as refused:
            session.checkpoint("one too many")
        assert refused.value.hint is not None
        assert "config set max_manual_checkpoints" in refused.value.hint
        assert session.stats == before


def test_deleting_one_makes_room_for_another(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=2)
    with composed(workspace) as opened:
        first = opened.save("first")
        opened.save("second")
        opened.engine.delete(SESSION, first)
        opened.save("third")
        with pytest.raises(LimitReached):
            opened.save("fourth")


def test_each_session_has_its_own_count_and_restores_do_not_count(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=2)
    for name in ("one", "other"):
        with SessionCheckpointer(workspace, name) as session:
            first = session.checkpoint("first")
            (workspace / "file").write_text(name)
            session.restore(first)
            session.checkpoint("second")


def test_no_limit_is_set_by_zero(workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0, max_automatic_per_hour=0)
    with composed(workspace) as opened:
        for number in range(60):
            opened.save(f"{number}")
        for number in range(40):
            assert _automatic(opened, f"{number}").replaced is None


def test_an_automatic_one_too_many_in_an_hour_takes_the_place_of_the_one_before(
    workspace: Path,
) -> None:
    configure(workspace, max_automatic_per_hour=3)
    clock = SteppedClock(time.time_ns())
    with composed(workspace, clock=clock) as opened:
        opened.save("by hand")
        for number in range(3):
            _automatic(opened, f"tool {number}")
        (workspace / "file").write_bytes(b"what the fourth saw")
        newest = opened.engine.vault.catalog.newest_of(SESSION, AUTOMATIC_KINDS)
        assert newest is not None
        outcome = _automatic(opened, "tool 3", Kind.RISKY)
        assert outcome.replaced == newest.id
        assert outcome.checkpoint.parent == newest.parent
        assert _history(opened) == ["tool 3", "tool 1", "tool 0", "by hand"]
        (workspace / "file").write_bytes(b"later")
        opened.restore(outcome.checkpoint.id)
        assert (workspace / "file").read_bytes() == b"what the fourth saw"


def test_an_hour_later_there_is_room_again(workspace: Path) -> None:
    configure(workspace, max_automatic_per_hour=2)
    clock = SteppedClock(time.time_ns())
    with composed(workspace, clock=clock) as opened:
        _automatic(opened, "first")
        _automatic(opened, "second", Kind.INTERVAL)
        clock.now += HOUR_NS + 1
        assert _automatic(opened, "third").replaced is None
        assert _history(opened) == ["third", "second", "first"]


@pytest.mark.requirement("ST-2")
def test_the_first_and_named_checkpoints_are_never_replaced(workspace: Path) -> None:
    configure(workspace, max_automatic_per_hour=1)
    with composed(workspace) as opened:
        assert _automatic(opened, "where it began").replaced is None
        named = make_intent("worth a name", name="kept")
        assert opened.engine.save(SESSION, named, kind=Kind.TOOL).replaced is None
        assert _automatic(opened, "after it").replaced is None
        assert _automatic(opened, "and again").replaced is not None
        assert _history(opened) == ["and again", "worth a name", "where it began"]


def test_a_line_that_was_left_keeps_its_only_copy(workspace: Path) -> None:
    configure(workspace, max_automatic_per_hour=1)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("first")
    with composed(workspace) as opened:
        only_copy = _automatic(opened, "the one experiment").checkpoint
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(first)
    with composed(workspace) as opened:
        _automatic(opened, "the other experiment")
        kept = opened.engine.vault.catalog.checkpoint(SESSION, only_copy.id)
    assert kept is not None


def test_checkpoints_by_hand_are_never_replaced_by_automatic_ones(workspace: Path) -> None:
    configure(workspace, max_automatic_per_hour=1)
    with composed(workspace) as opened:
        opened.save("at first")
        _automatic(opened, "tool 0")
        opened.save("by hand")
        outcome = _automatic(opened, "tool 1")
        assert _history(opened) == ["tool 1", "by hand", "at first"]
        hand, first = opened.engine.vault.catalog.history(SESSION)[1:]
        assert outcome.checkpoint.parent == hand.id
        assert hand.parent == first.id
