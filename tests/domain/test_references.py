"""The grammar of references: every form, every near miss, and times that no clock shows."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import UnknownReference
from holdfast.domain.references import (
    ApprovedReference,
    HeadReference,
    InitialReference,
    Reference,
    TextReference,
    TimeReference,
    looks_reserved,
    parse_reference,
)

pytestmark = pytest.mark.requirement("CP-3")

SECOND_NS = 10**9
NOW_NS = 1_800_000_000 * SECOND_NS


def parse(text: str) -> Reference:
    return parse_reference(text, now_ns=NOW_NS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HEAD", HeadReference(0)),
        ("HEAD~", HeadReference(1)),
        ("HEAD~0", HeadReference(0)),
        ("HEAD~12", HeadReference(12)),
        (" HEAD \n", HeadReference(0)),
        ("initial", InitialReference()),
        ("approved", ApprovedReference()),
        ("head", TextReference("head")),
        ("HEAD~-1", TextReference("HEAD~-1")),
        ("HEAD~x", TextReference("HEAD~x")),
        ("HEAD~9999999", TextReference("HEAD~9999999")),
        ("HEADER", TextReference("HEADER")),
        ("before the refactor", TextReference("before the refactor")),
        ("0a1b2c", TextReference("0a1b2c")),
        ("@", TextReference("@")),
        ("@{", TextReference("@{")),
    ],
)
def test_each_form_is_distinguished_from_a_name(text: str, expected: Reference) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "seconds_ago"),
    [
        ("now", 0),
        ("1 second ago", 1),
        ("90 seconds ago", 90),
        ("2 minutes ago", 120),
        ("5min ago", 300),
        ("an hour ago", 3600),
        ("2 hours ago", 7200),
        ("2 HOURS AGO", 7200),
        ("3h ago", 10_800),
        ("a day ago", 86_400),
        ("one week ago", 604_800),
        ("2 weeks ago", 1_209_600),
        ("yesterday", 86_400),
    ],
)
def test_a_time_ago_is_counted_from_now(text: str, seconds_ago: int) -> None:
    assert parse(f"@{{{text}}}") == TimeReference(NOW_NS - seconds_ago * SECOND_NS)


@pytest.mark.parametrize(
    ("now", "text", "then"),
    [
        ("2026-11-15T09:30:07Z", "a month ago", "2026-10-15T09:30:07Z"),
        ("2026-03-31T09:30:07Z", "1 month ago", "2026-02-28T09:30:07Z"),
        ("2024-03-31T09:30:07Z", "one month ago", "2024-02-29T09:30:07Z"),
        ("2026-01-31T23:59:59Z", "2 months ago", "2025-11-30T23:59:59Z"),
        ("2026-01-31T23:59:59Z", "13 Months ago", "2024-12-31T23:59:59Z"),
        ("2026-12-01T00:00:00Z", "12 months ago", "2025-12-01T00:00:00Z"),
        ("2024-02-29T12:00:00Z", "a year ago", "2023-02-28T12:00:00Z"),
        ("2026-11-15T09:30:07Z", "60 years ago", "1966-11-15T09:30:07Z"),
        ("2026-11-15T09:30:07Z", "0 months ago", "2026-11-15T09:30:07Z"),
        ("2026-11-15T09:30:07Z", "999999999 years ago", "0001-01-01T00:00:00Z"),
    ],
)
def test_months_and_years_are_those_of_the_calendar(now: str, text: str, then: str) -> None:
    def moment_ns(written: str) -> int:
        since = datetime.fromisoformat(written) - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(microseconds=1) * 1000

    found = parse_reference(f"@{{{text}}}", now_ns=moment_ns(now) + 123)
    exact = 0 if then.startswith("0001") else 123
    assert found == TimeReference(moment_ns(then) + exact)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01 01:00+01:00", 0),
        ("2026-11-15T09:30:00+00:00", 1_794_735_000),
        ("2026-11-15T09:30:00.5Z", 1_794_735_000.5),
    ],
)
def test_a_moment_with_a_zone_is_exact(text: str, seconds: float) -> None:
    assert parse(f"@{{{text}}}") == TimeReference(round(seconds * SECOND_NS))


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "2 moons ago", "ago", "-5 hours ago", "2026-13-01", "99", "0 0", "\0"],
)
def test_a_time_that_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UnknownReference) as refusal:
        parse(f"@{{{text}}}")
    assert refusal.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "999999999 weeks ago",
        "0001-01-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "9999-12-31",
    ],
)
def test_a_moment_beyond_all_clocks_is_a_moment_or_not_understood(text: str) -> None:
    try:
        found = parse(f"@{{{text}}}")
    except UnknownReference:
        return
    assert isinstance(found, TimeReference)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_reference_is_refused(text: str) -> None:
    with pytest.raises(UnknownReference):
        parse(text)


@given(text=st.text(max_size=20) | st.text(max_size=12).map(lambda inner: f"@{{{inner}}}"))
def test_any_text_is_a_reference_or_refused_by_name(text: str) -> None:
    try:
        found = parse(text)
    except UnknownReference:
        return
    if not looks_reserved(text.strip()):
        assert found == TextReference(text.strip())


@pytest.mark.requirement("CP-3")
@pytest.mark.parametrize("thing", [5, b"HEAD", ["HEAD"]])
def test_what_is_no_text_is_refused_by_name(thing: Any) -> None:
    with pytest.raises(UnknownReference, match="is not a string") as refused:
        parse(thing)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        # It is 08:00 in UTC, 09:00 in Berlin and 03:00 in New York.
        ("today", "UTC", "2027-01-15T00:00:00Z"),
        ("7:30", "UTC", "2027-01-15T07:30:00Z"),
        ("08:00", "UTC", "2027-01-15T08:00:00Z"),
        ("07:30:10", "UTC", "2027-01-15T07:30:10Z"),
        ("08:00:01", "UTC", "2027-01-14T08:00:01Z"),
        ("08:01", "UTC", "2027-01-14T08:01:00Z"),
        ("today", "Europe/Berlin", "2027-01-14T23:00:00Z"),
        ("08:30", "Europe/Berlin", "2027-01-15T07:30:00Z"),
        ("23:59", "America/New_York", "2027-01-15T04:59:00Z"),
    ],
)
def test_a_time_of_day_is_the_last_one_that_clocks_here_showed(
    monkeypatch: pytest.MonkeyPatch, text: str, zone: str, expected: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        at = datetime.fromisoformat(expected)
        assert parse(f"@{{{text}}}") == TimeReference(int(at.timestamp()) * SECOND_NS)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["24:00", "9:5", "09:60", "9", "09:30:60", "09:30:1"])
def test_what_no_clock_shows_is_not_a_time(text: str) -> None:
    with pytest.raises(UnknownReference):
        parse(f"@{{{text}}}")
