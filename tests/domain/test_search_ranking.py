"""How well a text answers a query."""

from __future__ import annotations

import pytest

from holdfast.domain.search.query import rarity, score

pytestmark = pytest.mark.requirement("SE-8")


def test_a_rare_word_counts_more_than_a_common_one_and_no_word_counts_against() -> None:
    assert rarity(1, 1000) > rarity(10, 1000) > rarity(1000, 1000) > 0
    assert rarity(5000, 1000) > 0
    assert rarity(0, 0) > 0


def test_more_weight_and_a_shorter_text_score_higher_but_repeating_has_an_end() -> None:
    assert score([10.0], [1.0], 1.0) > score([2.0], [1.0], 1.0)
    assert score([2.0], [1.0], 0.5) > score([2.0], [1.0], 4.0)
    assert score([1e9], [1.0], 1.0) < 2.3
    assert score([], [], 1.0) == 0
