"""Names in code are taken apart, and found whole as well."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.search.words import LONGEST_WORD, names, wholes, words

pytestmark = pytest.mark.requirement("SE-8")


@pytest.mark.parametrize(
    ("text", "parts", "whole"),
    [
        ("getUserName", ["get", "user", "name"], ["getusername"]),
        ("snake_case_name", ["snake", "case", "name"], ["snakecasename"]),
        ("HTTPServer", ["http", "server"], ["httpserver"]),
        ("X-Request-Id", ["x", "request", "id"], ["xrequestid"]),
        ("src/auth/login_test.py", ["src", "auth", "login", "test", "py"], ["logintest"]),
        ("HTTP2Server sha256", ["http2", "server", "sha256"], ["http2server"]),
        ("__init__", ["init"], []),
        ("--dry-run", ["dry", "run"], ["dryrun"]),
        ("Größe naïve", ["große", "naive"], []),
        ("e\u0301coleDe\u0301ja\u0300", ["ecole", "deja"], ["ecoledeja"]),
        ("日本語", ["日", "本", "語"], []),
        ("don't", ["don", "t"], []),
        ("", [], []),
        ('"*():^', [], []),
    ],
)
def test_names_are_taken_apart(text: str, parts: list[str], whole: list[str]) -> None:
    assert words(text) == [part.replace("ß", "ss") for part in parts]
    assert wholes(text) == whole


@given(st.text())
def test_every_word_is_at_its_reported_position(text: str) -> None:
    end = 0
    for name in names(text):
        for word in name.words:
            assert end <= word.start < word.end <= len(text)
            assert 0 < len(word.text) <= LONGEST_WORD
            end = word.end


@given(
    st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd"], max_codepoint=127), min_size=1)
)
def test_a_name_whole_is_its_words_in_one_without_case(text: str) -> None:
    assert "".join(words(text)) == text.lower()[: len("".join(words(text)))] or len(text) > 64
