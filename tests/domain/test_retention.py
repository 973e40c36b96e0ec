"""Retention: what rules keep and delete, and invalid rules (ST-2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind
from holdfast.domain.errors import InvalidSetting
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.retention import (
    DEFAULT_RULES,
    RetentionRule,
    age_in_words,
    decide,
    parse_age,
    parse_rules,
    rules_with,
)
from holdfast.domain.settings.schema import check_setting
from holdfast.domain.trees.objects import digest_of

pytestmark = pytest.mark.requirement("ST-2")

HOUR = 3600 * 10**9
NOW = 1000 * 24 * HOUR


def checkpoint(number: int, kind: Kind, age_ns: int, name: str | None = None) -> Checkpoint:
    return Checkpoint(
        number,
        CheckpointId(f"{number:020x}"),
        SessionId("s"),
        None,
        kind,
        NOW - age_ns,
        digest_of(b"tree"),
        SnapshotIntent("why", checkpoint_name=name),
        1,
        1,
        ChangeCounts(),
    )


def dropped(
    checkpoints: list[Checkpoint], rules: Any = DEFAULT_RULES, **protected: str
) -> set[int]:
    chosen = {CheckpointId(f"{int(k[1:]):020x}"): why for k, why in protected.items()}
    decided = decide(checkpoints, now_ns=NOW, protected=chosen, rules=rules)
    assert len(decided) == len(checkpoints)
    assert all(d.reason for d in decided)
    return {d.checkpoint.sequence for d in decided if not d.keep}


@pytest.mark.parametrize(
    ("kind", "hours", "most"),
    [
        (Kind.MERGE, 30 * 24, 50),
        (Kind.END_OF_DAY, 7 * 24, 7),
        (Kind.SAFETY, 24, 10),
    ],
)
def test_the_defaults_are_those_that_were_promised(kind: Kind, hours: int, most: int) -> None:
    young = [checkpoint(n, kind, HOUR) for n in range(1, most + 4)]
    assert dropped(young) == {1, 2, 3}
    aged = [checkpoint(1, kind, hours * HOUR + 1), checkpoint(2, kind, hours * HOUR)]
    assert dropped(aged) == {1}


@pytest.mark.parametrize(
    ("kind", "days"),
    [
        (Kind.TOOL, 7),
        (Kind.INTERVAL, 7),
        (Kind.THRESHOLD, 7),
        (Kind.MESSAGE, 30),
        (Kind.RISKY, 30),
    ],
)
def test_automatic_checkpoints_are_kept_by_age_however_many_there_are(
    kind: Kind, days: int
) -> None:
    young = [checkpoint(n, kind, days * 24 * HOUR) for n in range(1, 1_001)]
    assert dropped(young) == set()
    assert dropped([checkpoint(1, kind, days * 24 * HOUR + 1)]) == {1}


def test_the_state_before_a_message_is_kept_for_a_month() -> None:
    found = [
        checkpoint(1, Kind.TOOL, 30 * 24 * HOUR + 1),
        checkpoint(2, Kind.TOOL, 30 * 24 * HOUR),
        checkpoint(3, Kind.TOOL, 20 * 24 * HOUR),
        checkpoint(4, Kind.END_OF_DAY, 20 * 24 * HOUR),
    ]
    states = {found[0].id, found[1].id, found[3].id}
    decided = decide(found, now_ns=NOW, protected={}, before_messages=states)
    assert {d.checkpoint.sequence for d in decided if d.keep} == {2, 4}
    own = rules_with(parse_rules({"tool": {"age": "1 day"}}))
    decided = decide(found, now_ns=NOW, protected={}, rules=own, before_messages=states)
    assert {d.checkpoint.sequence for d in decided if d.keep} == {4}


def test_manual_initial_and_named_checkpoints_are_kept_forever() -> None:
    old = 500 * 24 * HOUR
    kept = [
        checkpoint(1, Kind.MANUAL, old),
        checkpoint(2, Kind.INITIAL, old),
        checkpoint(3, Kind.TOOL, old, name="before"),
    ]
    assert dropped(kept) == set()
    everything_goes = {kind: RetentionRule(0, 0) for kind in Kind}
    assert dropped(kept, everything_goes) == {1}


def test_what_is_protected_stays_and_the_reason_is_reported() -> None:
    found = [checkpoint(n, Kind.TOOL, 99 * 24 * HOUR) for n in (1, 2)]
    assert dropped(found, _1="HEAD of its session") == {2}
    decided = decide(found, now_ns=NOW, protected={found[0].id: "approved"})
    assert [d.reason for d in decided if d.keep] == ["protected: approved"]


def test_at_least_so_many_stay_however_old_they_are() -> None:
    rules = rules_with(parse_rules({"tool": {"age": "1 hour", "least": 2}}))
    found = [checkpoint(n, Kind.TOOL, 50 * HOUR) for n in (1, 2, 3)]
    assert dropped(found, rules) == {1}


def test_a_clock_that_went_back_makes_nothing_old() -> None:
    assert dropped([checkpoint(1, Kind.TOOL, -900 * 24 * HOUR)]) == set()


NONSENSE: list[tuple[Any, str]] = [
    ({"tool": {"age": "-1 day"}}, "an age cannot be negative"),
    ({"tool": {"most": -1}}, "expects a number from 0"),
    ({"tool": {"most": True}}, "expects a number from 0"),
    ({"tool": {"least": 5, "most": 4}}, "contradicts itself"),
    ({"initial": {"age": "1 day"}}, "always kept"),
    ({"tol": {"age": "1 day"}}, "unknown kind of checkpoint: 'tol'"),
    ({"tool": {"oldest": "1 day"}}, "has no 'oldest'"),
    ({"tool": {}}, "expects"),
    ({"tool": 7}, "expects"),
    ({"tool": {"age": 3}}, "is not an age"),
    ({"tool": {"age": "3 moons"}}, "is not an age"),
    ({"tool": {"age": "99999999 weeks"}}, "longer than a century"),
    ("forever", "expects a table"),
    (["tool"], "expects a table"),
]


@pytest.mark.parametrize(("value", "said"), NONSENSE, ids=[str(value) for value, _ in NONSENSE])
def test_rules_that_make_no_sense_are_refused_by_name(value: Any, said: str) -> None:
    with pytest.raises(InvalidSetting, match="retention") as refused:
        check_setting("retention", value)
    assert said in refused.value.message


def test_forever_takes_a_default_rule_away() -> None:
    rules = rules_with(parse_rules({"tool": "forever"}))
    assert dropped([checkpoint(1, Kind.TOOL, 900 * 24 * HOUR)], rules) == set()


@given(
    age=st.integers(0, 5_000).map(lambda minutes: minutes * 60 * 10**9),
    most=st.none() | st.integers(0, 1_000),
    least=st.integers(0, 3),
    messages=st.none() | st.integers(0, 5_000).map(lambda minutes: minutes * 60 * 10**9),
)
def test_a_rule_is_written_as_it_is_read(
    age: int, most: int | None, least: int, messages: int | None
) -> None:
    rule = RetentionRule(age, most if most is None else most + 3, least, messages)
    plain = rule.to_plain()
    assert parse_rules({"tool": plain}) == ((Kind.TOOL, rule),)
    assert parse_age(age_in_words(age)) == age
