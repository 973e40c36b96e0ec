"""Secrets do not get into the story of a checkpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.tool_calls import masked


@pytest.mark.requirement("SE-7")
@pytest.mark.parametrize(
    "text",
    [
        "mysql -u root -phunter2 shop",
        "curl -u me:hunter2 https://example.invalid",
        "export API_KEY=hunter2",
        "DB_PASSWORD='hunter2 and more' make",
        'curl -H "Authorization: Bearer hunter2hunter2"',
        "git clone https://me:hunter2@example.invalid/x",
        "deploy --token hunter2 --verbose",
        "deploy --client-secret=hunter2",
        '{"password": "hunter2"}',
        "password: hunter2",
        "echo -----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_in_a_known_place_is_masked(text: str) -> None:
    assert "hunter2" not in masked(text)
    assert "***" in masked(text)


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a" * 36,
        "sk-" + "b" * 40,
        "AKIA" + "A" * 16,
        "glpat-" + "c" * 20,
        "xoxb-1234567890-abc",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    ],
)
def test_a_token_that_its_maker_marked_is_masked_anywhere(token: str) -> None:
    assert token not in masked(f"run {token} now")


@pytest.mark.parametrize(
    "text", ["npm install left-pad", "cat tokens.txt", "pytest -k password", "rm -rf src/secrets"]
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


@given(text=st.text())
def test_any_text_can_be_masked(text: str) -> None:
    assert len(masked(text)) <= 3 * len(text) + 3


@pytest.mark.parametrize(
    "piece", ["a", "password ", "-", "mysql ", "token_", "a:", "://", "curl ", "=", "eyJ", "\t"]
)
def test_no_text_takes_long(piece: str) -> None:
    assert masked(piece * 1_000_000) is not None
