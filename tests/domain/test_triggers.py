"""When a workspace deserves a checkpoint of its own accord."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import Kind
from holdfast.domain.triggers import (
    LONGEST_BURST_NS,
    QUIET_NS,
    SECOND_NS,
    Situation,
    TriggerRules,
    describe,
    due_trigger,
    enough,
    wait_ns,
)

pytestmark = pytest.mark.requirement("AU-4")

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
START = 1_000 * SECOND_NS
RULES = TriggerRules(files=5, interval_ns=1800 * SECOND_NS, end_of_day=time(18, 0))


def situation(**known: object) -> Situation:
    quiet = Situation(
        now_ns=START,
        local=NOON,
        touched=0,
        first_change_ns=0,
        last_change_ns=0,
        interval_began_ns=START,
    )
    return replace(quiet, **known)  # type: ignore[arg-type]


def test_nothing_touched_is_nothing_due() -> None:
    now = situation(now_ns=START + 10_000 * SECOND_NS)
    assert due_trigger(RULES, now) is None
    assert wait_ns(replace(RULES, end_of_day=None), now) is None


def test_enough_files_and_a_second_of_quiet_are_due() -> None:
    now = situation(touched=5, first_change_ns=START, last_change_ns=START)
    assert due_trigger(RULES, now) is None
    assert wait_ns(RULES, now) == QUIET_NS
    assert due_trigger(RULES, replace(now, now_ns=START + QUIET_NS)) is Kind.THRESHOLD
    assert due_trigger(RULES, replace(now, now_ns=START + QUIET_NS, touched=4)) is None


def test_work_that_never_pauses_is_looked_at_anyway() -> None:
    now = situation(touched=50, first_change_ns=START)
    busy = replace(now, now_ns=START + LONGEST_BURST_NS, last_change_ns=START + LONGEST_BURST_NS)
    assert due_trigger(RULES, busy) is Kind.THRESHOLD
    assert due_trigger(RULES, replace(busy, looked_ns=busy.now_ns - SECOND_NS)) is None


def test_what_a_look_found_too_little_is_not_looked_at_again_until_more_is_touched() -> None:
    now = situation(now_ns=START + 2 * SECOND_NS, touched=7, looked_at=7)
    assert due_trigger(RULES, now) is None
    assert due_trigger(RULES, replace(now, touched=8)) is Kind.THRESHOLD


def test_the_interval_counts_from_the_last_checkpoint() -> None:
    now = situation(touched=1, last_change_ns=START)
    assert wait_ns(RULES, now) == RULES.interval_ns
    assert due_trigger(RULES, replace(now, now_ns=START + RULES.interval_ns)) is Kind.INTERVAL


def test_the_day_ends_once() -> None:
    evening = situation(local=NOON.replace(hour=18))
    assert due_trigger(RULES, evening) is Kind.END_OF_DAY
    ended = replace(evening, ended_day="2026-03-01")
    assert due_trigger(RULES, ended) is None
    assert wait_ns(RULES, ended) == 24 * 3600 * SECOND_NS
    assert due_trigger(RULES, replace(ended, local=ended.local.replace(day=2))) is Kind.END_OF_DAY


def test_what_is_switched_off_is_never_due() -> None:
    off = TriggerRules(files=0, interval_ns=0, end_of_day=None)
    late = situation(now_ns=START * 100, touched=900, local=NOON.replace(hour=23))
    assert due_trigger(off, late) is None
    assert wait_ns(off, late) is None


@given(
    touched=st.integers(0, 20),
    looked_at=st.integers(0, 20),
    first=st.integers(0, 3_000),
    last=st.integers(0, 3_000),
    began=st.integers(0, 3_000),
    looked=st.integers(0, 3_000),
    hour=st.integers(0, 23),
    ended=st.sampled_from([None, "2026-03-01"]),
)
def test_nothing_is_due_before_the_wait_is_over_and_something_is_then(
    touched: int,
    looked_at: int,
    first: int,
    last: int,
    began: int,
    looked: int,
    hour: int,
    ended: str | None,
) -> None:
    from datetime import timedelta

    now = Situation(
        3_000 * SECOND_NS,
        NOON.replace(hour=hour),
        touched,
        first * SECOND_NS,
        last * SECOND_NS,
        began * SECOND_NS,
        looked * SECOND_NS,
        looked_at,
        ended,
    )
    wait = wait_ns(RULES, now)
    assert wait is not None
    then = replace(
        now, now_ns=now.now_ns + wait, local=now.local + timedelta(microseconds=-(-wait // 1000))
    )
    assert (wait == 0) == (due_trigger(RULES, now) is not None)
    assert due_trigger(RULES, then) is not None


def test_a_checkpoint_says_why_it_was_made() -> None:
    paths = ["a", "b", "c", "d", "e"]
    assert describe(Kind.THRESHOLD, paths, 0) == "5 paths changed: a, b, c and 2 more"
    assert describe(Kind.INTERVAL, ["a"], 1800 * SECOND_NS) == "Changed within 30 minutes: a"
    assert describe(Kind.END_OF_DAY, [], 0) == "End of the day"


def test_a_threshold_wants_its_number_and_the_others_any_change() -> None:
    assert not enough(RULES, Kind.THRESHOLD, 4)
    assert enough(RULES, Kind.THRESHOLD, 5)
    assert enough(RULES, Kind.INTERVAL, 1)
    assert not enough(RULES, Kind.END_OF_DAY, 0)


def test_the_main_branch_is_looked_at_once_after_each_burst() -> None:
    rules = TriggerRules(files=0, interval_ns=0, merges=True)
    now = situation(last_change_ns=START, first_change_ns=START, branch_looked_ns=START - 1)
    assert wait_ns(rules, now) == QUIET_NS
    later = replace(now, now_ns=START + QUIET_NS)
    assert due_trigger(rules, later) is Kind.MERGE
    assert due_trigger(replace(rules, merges=False), later) is None
    looked = replace(later, branch_looked_ns=later.now_ns)
    assert (due_trigger(rules, looked), wait_ns(rules, looked)) == (None, None)


def test_a_merge_that_is_under_way_is_looked_for_until_it_ends() -> None:
    rules = TriggerRules(files=0, interval_ns=0, merges=True)
    now = situation(last_change_ns=1, branch_looked_ns=START, merge_under_way=True)
    assert wait_ns(rules, now) == LONGEST_BURST_NS
    assert due_trigger(rules, replace(now, now_ns=START + LONGEST_BURST_NS)) is Kind.MERGE
