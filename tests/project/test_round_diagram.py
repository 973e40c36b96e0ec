"""The diagram of rounds in the guide is the state machine that the code runs on."""

from __future__ import annotations

import pytest

from holdfast.domain.sessions import ENDINGS, RoundStatus
from tests.project.round_diagram import GUIDE, diagram, drawn


@pytest.mark.requirement("SE-5")
def test_the_diagram_in_the_guide_is_current() -> None:
    text = GUIDE.read_text("utf-8")
    assert diagram() in text
    assert drawn(text) == text, "run: python -m tests.project.round_diagram --write"


@pytest.mark.requirement("SE-5")
def test_the_diagram_has_every_status_and_every_ending() -> None:
    words = [*(status.word for status in RoundStatus), *(ending.value for ending in ENDINGS)]
    assert [word for word in words if word not in diagram()] == []
