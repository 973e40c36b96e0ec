"""Automatic checkpoints are called after what was about to happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.tool_calls import message_description, tool_description


@pytest.mark.requirement("SE-7")
def test_a_description_tells_tool_subject_and_risk() -> None:
    told = tool_description(
        "Before",
        "Bash",
        "npm install left-pad",
        risk="risky",
        reason="rewrites package-lock.json",
    )
    assert told == "Before Bash: npm install left-pad (risky: rewrites package-lock.json)"
    assert tool_description("Before", "Edit", "src/app.py") == "Before Edit: src/app.py"
    assert tool_description("After", "Bash", "") == "After Bash"


@pytest.mark.requirement("SE-7")
def test_secrets_of_the_command_and_of_the_reason_are_masked() -> None:
    told = tool_description(
        "Before", "Bash", "x > token=hunter2", risk="risky", reason="overwrites token=hunter2"
    )
    assert "hunter2" not in told


@pytest.mark.requirement("SE-7")
@given(tool=st.text(), subject=st.text(), reason=st.text() | st.none(), repeat=st.integers(1, 3000))
def test_a_description_is_one_printable_line_of_at_most_200_characters(
    tool: str, subject: str, reason: str | None, repeat: int
) -> None:
    told = tool_description("Before", tool, subject * repeat, risk="notable", reason=reason)
    assert len(told) <= 200
    assert told.isprintable()
    assert told.startswith("Before ")


@pytest.mark.requirement("SE-3")
def test_a_message_is_previewed_with_fifty_characters() -> None:
    assert message_description("fix the\n  tests") == "Before user message: fix the tests"
    assert message_description("x" * 80) == "Before user message: " + "x" * 49 + "…"
    assert message_description("") == "Before user message"
