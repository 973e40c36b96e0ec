"""Where a text says what was looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.search.hits import excerpt, spans
from holdfast.domain.search.query import parse_query

pytestmark = pytest.mark.requirement("SE-8")


def _marked(text: str, query: str) -> str:
    found = excerpt(text, parse_query(query, now_ns=0).terms)
    if found is None:
        return ""
    parts, at = [], 0
    for begin, end in found.spans:
        parts += [found.text[at:begin], f"[{found.text[begin:end]}]"]
        at = end
    return "".join([*parts, found.text[at:]])


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("fix the login now", "login", "fix the [login] now"),
        ("call getUserName twice", "user", "call get[User]Name twice"),
        ("call getUserName twice", "getusername", "call [getUserName] twice"),
        ("call get_user_name twice", "getUserName", "call [get_user_name] twice"),
        ("call getUserName twice", "getus*", "call [getUserName] twice"),
        ("connection reset, reset", '"connection reset"', "[connection reset], reset"),
        ("reset connection", '"connection reset"', ""),
        ("timeouts", "timeout", "[timeouts]"),
        ("timeouts", '"timeout"', ""),
        ("refreshTokens was refreshed", "refresh", "[refresh]Tokens was [refreshed]"),
        ("refreshTokens twice", "refresh_token", "[refreshTokens] twice"),
        ("timeouts", "timeout*", "[timeouts]"),
        ("a\tb\nc", "b", "a [b] c"),
        ("日本語テキスト", "本語", "日[本語]テキスト"),
    ],
)
def test_what_matches_is_marked(text: str, query: str, marked: str) -> None:
    assert _marked(text, query) == marked


def test_a_long_text_is_cut_around_its_first_match() -> None:
    text = "word " * 400 + "needle " + "word " * 400
    shown = _marked(text, "needle")
    assert "[needle]" in shown
    assert shown.startswith("…word")
    assert shown.endswith("…")
    assert len(shown) < 200


@given(st.text(), st.text(min_size=1))
def test_marks_lie_in_the_text_in_order_and_apart(text: str, query: str) -> None:
    terms = parse_query(query, now_ns=0).terms
    end = 0
    for begin, stop in spans(text, terms):
        assert end <= begin < stop <= len(text)
        end = stop
    found = excerpt(text, terms)
    if found is not None:
        assert "\n" not in found.text
        assert all(0 <= a < b <= len(found.text) for a, b in found.spans)


@pytest.mark.parametrize(
    ("said", "query", "marked"),
    [
        ("needle", "needle", "[needle]"),
        ("queries", "querying", "[queries]"),
        ("get_user_name", "getusername", "[get_user_name]"),
        ("getUserName", "get_user_name", "[getUserName]"),
        ("Größe", "grosse", "[Größe]"),
        ("connection reset", '"connection reset"', "[connection reset]"),
        ("日本語", "本語", "日[本語]"),
    ],
)
@pytest.mark.parametrize("straw", ["nettles in the hay ", "x" * 5_000 + " ", "größer "])
@pytest.mark.parametrize("before", [3_000, 3_001, 3_013, 50_000])
def test_a_long_text_is_marked_as_a_short_one_is(
    before: int, straw: str, said: str, query: str, marked: str
) -> None:
    text = (straw * before)[:before] + f" {said} " + straw * 200
    assert marked in _marked(text, query)


@given(
    st.lists(st.sampled_from(["alpha", "beta", "getAlpha", "al_pha", "ALPHA", "é"]), min_size=400),
    st.sampled_from(["alpha", "beta", "alph*", '"alpha beta"', "getalpha", "e", "gamma"]),
)
def test_the_first_mark_of_a_long_text_is_the_first_of_all(said: list[str], query: str) -> None:
    text = " ".join(said)
    terms = parse_query(query, now_ns=0).terms
    everything = spans(text, terms)
    found = excerpt(text, terms)
    assert (found is None) == (everything == [])
    if found is not None and len(terms[0].words) == 1:
        begin, end = everything[0]
        first, last = found.spans[0]
        assert found.text[first:last] == text[begin:end]
        assert (first == begin) == (not found.text.startswith("…"))
