"""Messages of commits say what was meant, and whatever was meant stays text."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind
from holdfast.domain.errors import InvalidSetting, UsageError
from holdfast.domain.git.commits import (
    compose_message,
    require_co_author,
    require_template,
    without_comments,
)
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.settings.schema import DEFAULTS, check_setting

TEMPLATE = DEFAULTS["accept_template"]


def checkpoint(reasoning: str, kind: Kind = Kind.MANUAL, goal: str | None = None) -> Checkpoint:
    return Checkpoint(
        1,
        CheckpointId("c" * 20),
        SessionId("s"),
        None,
        kind,
        0,
        Digest(bytes(32)),
        make_intent(reasoning, goal_id=goal),
        1,
        1,
        ChangeCounts(),
    )


@pytest.mark.requirement("GT-3")
def test_the_newest_reason_is_the_subject_and_all_are_listed_once() -> None:
    told = [checkpoint("first"), checkpoint("second"), checkpoint("first"), checkpoint("last")]
    assert compose_message(told, template=TEMPLATE) == "last\n\n- first\n- second\n- last\n"
    assert compose_message([checkpoint("only")], template=TEMPLATE) == "only\n"


@pytest.mark.requirement("GT-3")
def test_what_was_said_goes_before_what_triggers_said() -> None:
    told = [
        checkpoint("Before Edit of a.py", Kind.TOOL),
        checkpoint("Before user message: fix it", Kind.MESSAGE),
        checkpoint("Restored to x", Kind.RESTORE),
    ]
    message = compose_message(told, template=TEMPLATE)
    assert message == "fix it\n"
    told.append(checkpoint("Fix the login", Kind.MANUAL))
    assert compose_message(told, template=TEMPLATE) == "Fix the login\n"
    assert compose_message(told[:1], template=TEMPLATE) == "Edit of a.py\n"


@pytest.mark.requirement("GT-3")
def test_messages_of_the_person_are_the_reasons_unless_a_checkpoint_has_its_own() -> None:
    told = [checkpoint("Before user message: fix the lo…", Kind.MESSAGE)]
    said = ["fix the login page\nand its tests", "now the docs"]
    message = compose_message(told, template=TEMPLATE, prompts=said)
    assert message.startswith("now the docs\n\n- fix the login page\n  and its tests\n- now")
    told.append(checkpoint("Before fixing: keep this", Kind.MANUAL))
    assert compose_message(told, template=TEMPLATE, prompts=said) == "Before fixing: keep this\n"
    bare = [checkpoint("Before user message", Kind.MESSAGE)]
    assert compose_message(bare, template=TEMPLATE) == "Accept work\n"
    assert compose_message([], template=TEMPLATE) == "Accept work\n"


@pytest.mark.requirement("GT-3")
def test_a_template_arranges_the_message_and_cannot_be_extended_by_a_reason() -> None:
    told = [checkpoint("{session} and {reasons}", goal="login")]
    text = compose_message(told, template="{goals}: {subject}\n\n{checkpoints}\n{session}")
    assert text == f"login: {{session}} and {{reasons}}\n\n- {'c' * 10}\ns\n"
    with pytest.raises(ValueError, match=r"\{oops\}"):
        require_template("{oops}")
    with pytest.raises(InvalidSetting, match="needs a message"):
        check_setting("accept_template", " \n")
    with pytest.raises(InvalidSetting, match="expects text"):
        check_setting("accept_template", 1)


@pytest.mark.requirement("GT-3")
def test_a_message_of_ones_own_replaces_everything_but_the_trailers() -> None:
    text = compose_message(
        [checkpoint("why")], template=TEMPLATE, message="Mine\n\n{reasons}", co_authors=["A <a@b>"]
    )
    assert text == "Mine\n\n{reasons}\n\nCo-authored-by: A <a@b>\n"


@pytest.mark.requirement("GT-3")
@pytest.mark.parametrize("bad", ["", "Ada", "<a@b>", "Ada <a@b> x", "A\nB <a@b>", "A <a b>"])
def test_a_co_author_is_a_name_and_an_address(bad: str) -> None:
    with pytest.raises(UsageError):
        require_co_author(bad)


@pytest.mark.requirement("GT-3", "GT-6")
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_no_reason_brings_a_message_out_of_shape(reasons: list[str]) -> None:
    message = compose_message([checkpoint(reason) for reason in reasons], template=TEMPLATE)
    lines = message.split("\n")
    assert message.endswith("\n")
    assert not message.endswith("\n\n")
    assert lines[0].strip()
    assert len(lines[0]) <= 72
    assert len(lines) == 2 or lines[1] == ""
    assert all(c in "\n\t" or ord(c) >= 32 for c in message)
    message.encode("utf-8")
    for comment in ("#", ";", "//"):
        kept = without_comments(message, comment)
        assert not any(line.startswith(comment) for line in kept.split("\n"))
        assert kept.replace(" ", "") == message.replace(" ", "")


def test_the_newest_of_many_reasons_are_listed() -> None:
    told = [
        dataclasses.replace(checkpoint(f"reason {number}"), sequence=number)
        for number in range(150)
    ]
    message = compose_message(told, template=TEMPLATE)
    assert "- (50 earlier reasons)\n- reason 50\n" in message
    assert message.startswith("reason 149\n")
