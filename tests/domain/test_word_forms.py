"""Words by their forms: equal stems for what people take for one word."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.search.words import stem

pytestmark = pytest.mark.requirement("SE-8")

ROOT = Path(__file__).parents[2]
# Endings without a word before them; the oracle takes them apart as well.
NO_WORDS = {"ies", "sses", "eed"}


@pytest.mark.parametrize(
    "forms",
    [
        ("token", "tokens"),
        ("refresh", "refreshing", "refreshed", "refreshes"),
        ("delete", "deletes", "deleted", "deleting", "deletion"),
        ("query", "queries", "querying"),
        ("stop", "stopping", "stopped"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["as", "a1b2c3ing", "größen", "x" * 40 + "s", "", "日本"])
def test_what_is_no_english_word_is_its_own_stem(word: str) -> None:
    assert stem(word) == word


def test_stems_are_those_of_the_full_text_index() -> None:
    """SQLite's own tokenizer, over every word of this project's texts."""
    texts = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/holdfast/domain/*.py")]
    found = {w for text in texts for w in re.findall("[a-z]{3,30}", text.read_text().lower())}
    assert len(found) > 2_000
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(w, tokenize='porter ascii')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
    words = sorted(found - NO_WORDS)
    db.executemany("INSERT INTO t(rowid, w) VALUES (?, ?)", enumerate(words))
    expected = {words[int(n)]: term for n, term in db.execute("SELECT doc, term FROM v")}
    assert {word: stem(word) for word in words} == expected


@given(st.text())
def test_any_text_has_a_stem(word: str) -> None:
    assert (stem(word) == "") == (word == "")
