"""Known words that a mistyped one may have meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.search.words import distance, nearest

pytestmark = pytest.mark.requirement("SE-8")

KNOWN = [("token", 3), ("tokens", 9), ("timeout", 1), ("authentication", 2), ("log", 4), ("lag", 8)]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("tokn", ["token", "tokens"]),
        ("tokns", ["tokens", "token"]),
        ("tiemout", ["timeout"]),
        ("thentic", ["authentication"]),
        ("leg", ["lag", "log"]),
        ("zz", []),
        ("banana", []),
        ("authentcate", ["authentication"]),
    ],
)
def test_the_nearest_come_first_and_of_equals_the_commoner(word: str, near: list[str]) -> None:
    assert nearest(word, KNOWN, 5) == near


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_the_distance_is_the_same_both_ways_and_none_only_of_equals(one: str, other: str) -> None:
    assert distance(one, other, 9) == distance(other, one, 9)
    assert (distance(one, other, 9) == 0) == (one == other)
