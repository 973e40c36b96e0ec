"""The call, the reason and the message behind a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Kind, Position
from holdfast.domain.diff.line_origins import LineState
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import ToolCall, make_intent
from holdfast.domain.tool_calls import Likelihood, likelihood
from holdfast.engine.retention.deletion import delete
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("BX-1"), pytest.mark.both_stores]


def _hooked(
    session: SessionCheckpointer, reason: str, tool: str | None, use: str, **call: object
) -> str:
    """A checkpoint as the hooks of an agent make it around a tool call."""
    calls = [{"tool": tool, **call}] if tool else []
    saved = engine_of(session).save(
        SessionId("agent"),
        make_intent(reason, tool_calls=calls),
        kind=Kind.TOOL,
        position=Position(tool_use_id=use),
    )
    return saved.checkpoint.id


def test_the_call_that_a_checkpoint_was_made_for_wrote_what_the_next_one_has(
    session: SessionCheckpointer, workspace: Path, app: Path
) -> None:
    session.checkpoint("how it began")
    fill(workspace / "other", b"x")
    session.add_message("user", "please add two and three")
    session.add_message("assistant", "I edit app.py")
    _hooked(session, "Before Edit src/app.py", "Edit", "u1", paths=[str(app)])
    fill(app, b"one\ntwo\n")
    session.add_message("assistant", "now a command")
    _hooked(session, "Before Bash: sed", "Bash", "u2", command="sed -i s/a/b/ src/*")
    fill(app, b"one\ntwo\nthree\n")
    _hooked(session, "After Bash: sed", None, "u2")
    fill(app, b"one\ntwo\nthree\nfour\n")
    _hooked(session, "Before Edit notes", "Edit", "u3", paths=["notes"])
    fill(workspace / "notes", b"note\n")
    session.checkpoint("notes are done")

    one, two, three, four = (line.origin for line in session.why("src/app.py").lines)
    assert (one.state, one.message) == (LineState.INITIAL, None)
    assert (two.reasoning, two.tool_use_id) == ("Before Edit src/app.py", "u1")
    assert two.tool_calls == ({"tool": "Edit", "paths": [str(app)]},)
    assert two.message is not None
    assert two.message.content == "I edit app.py"
    assert two.prompt is not None
    assert two.prompt.content == "please add two and three"
    assert (three.reasoning, three.tool_use_id) == ("Before Bash: sed", "u2")
    assert three.message is not None
    assert three.message.content == "now a command"
    # No agent's call: written after one and before the next.
    assert (four.reasoning, four.tool_calls, four.tool_use_id) == ("Before Edit notes", (), None)
    (note,) = (line.origin for line in session.why("notes").lines)
    assert (note.reasoning, note.tool_calls) == (
        "notes are done",
        ({"tool": "Edit", "paths": ["notes"]},),
    )


def test_a_call_whose_save_was_not_needed_is_found_in_the_conversation(
    session: SessionCheckpointer, app: Path
) -> None:
    session.checkpoint("how it began")
    session.add_message("user", "add two")
    for use, name, given in (
        ("u1", "Bash", {"command": "pytest src/app.py"}),
        ("u2", "Read", {"file_path": str(app)}),
        ("u3", "Edit", {"file_path": str(app), "new_string": "two"}),
        ("u4", "Write", {"file_path": "README.md", "content": "see src/app.py"}),
    ):
        call = {"id": use, "name": name, "input": given}
        session.add_message("assistant", f"I call {name}", tool_calls=[call])
        # The state is the same all the time: the hooks make no checkpoint of their own.
        _hooked(session, f"Before {name}", name, use)
    fill(app, b"one\ntwo\n")
    last = {"id": "u5", "name": "Edit", "input": {"file_path": str(app)}}
    session.add_message("assistant", "and again", tool_calls=[last])
    _hooked(session, "Before Edit src/app.py", "Edit", "u5", paths=[str(app)])
    (origin,) = (line.origin for line in session.why("src/app.py", 2).lines)
    assert (origin.reasoning, origin.tool_use_id) == ("I call Edit", "u3")
    assert origin.prompt is not None
    assert origin.prompt.content == "add two"


def test_a_call_is_not_blamed_for_what_a_dropped_checkpoint_had(
    session: SessionCheckpointer, workspace: Path, app: Path
) -> None:
    session.checkpoint("how it began")
    fill(workspace / "other", b"1")
    _hooked(session, "Before Edit src/app.py", "Edit", "u1", paths=["src/app.py"])
    fill(workspace / "other", b"2")
    dropped = _hooked(session, "Before Bash b", "Bash", "u2")
    fill(app, b"one\ntwo\n")
    session.checkpoint("two is there")
    engine = engine_of(session)
    delete(engine, engine.resolve(SessionId("agent"), dropped))
    (origin,) = (line.origin for line in session.why("src/app.py", 2).lines)
    assert (origin.reasoning, origin.tool_calls) == ("two is there", ())


def test_an_attempt_tells_why(session: SessionCheckpointer, app: Path) -> None:
    session.checkpoint("how it began")
    with session.attempt("try two"):
        fill(app, b"one\ntwo\n")
    with session.attempt("try three"):
        fill(app, b"one\ntwo\nthree\n")
    session.checkpoint("both are kept")
    told = [line.origin.reasoning for line in session.why("src/app.py").lines]
    assert told == ["how it began", "try two", "both are kept"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"tool": "Edit", "paths": ["/w/src/app.py"]}, Likelihood.EDIT),
        ({"name": "Write", "input": {"file_path": "src/app.py"}}, Likelihood.EDIT),
        ({"name": "Write", "input": {"file_path": "x", "content": "src/app.py"}}, Likelihood.NONE),
        ({"name": "Edit", "input": {"file_path": "/w/other-src/app.py"}}, Likelihood.NONE),
        ({"name": "Edit", "input": {"file_path": "src/app.pyc"}}, Likelihood.NONE),
        (
            {"name": "apply_patch", "input": "*** Begin Patch\n*** Update File: src/app.py\n@@"},
            Likelihood.EDIT,
        ),
        ({"name": "apply_patch", "input": "*** Update File: b\n+ src/app.py"}, Likelihood.NONE),
        ({"name": "Bash", "input": {"command": "sed -i s/a/b/ src/app.py"}}, Likelihood.COMMAND),
        ({"name": "shell", "input": {"command": ["touch", "/w/src/app.py"]}}, Likelihood.COMMAND),
        ({"name": "Bash", "input": {"command": "cat src/app.python"}}, Likelihood.NONE),
        ({"name": "Read", "input": {"file_path": "src/app.py"}}, Likelihood.NONE),
        ({"name": 7, "input": [[[[[[[[[["src/app.py"]]]]]]]]]]}, Likelihood.NONE),
        ("Edit src/app.py", Likelihood.NONE),
        ({}, Likelihood.NONE),
    ],
)
def test_a_call_counts_by_what_it_is_and_what_it_names(
    call: ToolCall, expected: Likelihood
) -> None:
    assert likelihood(call, b"src/app.py") is expected
