"""What can be asked; nothing that is typed is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import AUTOMATIC_KINDS, Kind
from holdfast.domain.search.query import (
    MOST_TERMS,
    SearchQuery,
    State,
    TagFilter,
    Term,
    parse_query,
)

pytestmark = pytest.mark.requirement("SE-8")

NOW_NS = 1_800_000_000 * 1_000_000_000
HOUR_NS = 3600 * 1_000_000_000


def _parsed(text: str) -> SearchQuery:
    return parse_query(text, now_ns=NOW_NS)


def test_words_phrases_and_beginnings() -> None:
    assert _parsed('login "connection reset" time*').terms == (
        Term(("login",), forms=True),
        Term(("connection", "reset")),
        Term(("time",), prefix=True),
    )


def test_a_name_is_a_phrase_of_its_words_or_the_whole() -> None:
    assert _parsed("getUserName").terms == (
        Term(("get", "user", "name"), "getusername", forms=True),
    )
    assert _parsed("getUs*").terms == (Term(("get", "us"), "getus", prefix=True),)
    assert _parsed("src/app.py").terms == (Term(("src", "app", "py")),)


def test_filters() -> None:
    query = _parsed(
        "kind:risky,tool session:s tag:nightly tag:w* path:src/auth name:before is:named"
    )
    assert query == SearchQuery(
        kinds=(Kind.RISKY, Kind.TOOL),
        sessions=("s",),
        tags=(TagFilter("nightly"), TagFilter("w", prefix=True)),
        paths=(Term(("src", "auth")),),
        names=(Term(("before",)),),
        states=(State.NAMED,),
    )
    assert _parsed('tag:"two words" name:"before it"').tags == (TagFilter("two words"),)
    assert _parsed("KIND:Risky").kinds == (Kind.RISKY,)
    assert _parsed("kind:auto").kinds == AUTOMATIC_KINDS


@pytest.mark.parametrize(
    ("text", "hours"), [("2h", 2), ("30m", 0.5), ("3d", 72), ("1w", 168), ('"2 hours"', 2)]
)
def test_an_age_is_a_time(text: str, hours: float) -> None:
    assert _parsed(f"after:{text}").after_ns == NOW_NS - int(hours * HOUR_NS)
    assert _parsed(f"before:{text}").before_ns == NOW_NS - int(hours * HOUR_NS)


def test_a_date_is_a_time() -> None:
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    found = _parsed("after:2026-11-15T09:30+00:00").after_ns
    assert found == int(moment.timestamp()) * 1_000_000_000


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("kind:rsky", (Term(("kind", "rsky")),)),
        ("colour:red", (Term(("colour", "red")),)),
        ("after:whenever", (Term(("after", "whenever")),)),
        ("is:lost", (Term(("is", "lost")),)),
        ('"not closed', (Term(("not", "closed")),)),
        ("a AND b", tuple(Term((word,), forms=True) for word in ("a", "and", "b"))),
        ("std::vector", (Term(("std", "vector")),)),
        ("login login", (Term(("login",), forms=True),)),
    ],
)
def test_what_is_no_filter_is_text(text: str, terms: tuple[Term, ...]) -> None:
    assert _parsed(text) == SearchQuery(terms=terms)


@pytest.mark.parametrize("text", ["", "  ", "\t\n", "kind:", "tag: name:"])
def test_what_asks_for_nothing_is_about_everything(text: str) -> None:
    assert _parsed(text) == SearchQuery()


@pytest.mark.parametrize("text", ['"', '""', "*", "☃", "((( ***", "kind: ☃", ":"])
def test_nothing_but_punctuation_has_no_words(text: str) -> None:
    assert _parsed(text) == SearchQuery(is_wordless=True)


@pytest.mark.parametrize("text", ["☃ login", "session:s ☃", '" kind:risky', "after:2h ()"])
def test_punctuation_beside_anything_else_does_not_count(text: str) -> None:
    assert not _parsed(text).is_wordless


def test_more_terms_than_anybody_means_are_not_looked_for() -> None:
    assert len(_parsed(" ".join(f"w{n}" for n in range(500))).terms) == MOST_TERMS


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    query = _parsed(text)
    assert all(term.words for term in (*query.terms, *query.paths, *query.names))
