"""Whatever a client sends is answered: done, or corrected in words, and never with a stack."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.tools.handlers import TOOLS
from holdfast.interfaces.tools.tool import ParameterType, Tool
from tests.support.clocks import StandingClock
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import Era

pytestmark = pytest.mark.requirement("MC-1", "CP-10")

# What has a meaning somewhere, or nearly has one.
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "HEAD",
        "HEAD~1",
        "HEAD~99999999999999999999",
        "HEAD^^^",
        "initial",
        "approved",
        "@{yesterday}",
        "@{-3 hours ago}",
        "@{99999999999 years ago}",
        "@{0000-00-00}",
        "good",
        "src",
        "src/app.py",
        "src/app.py/",
        "./src//app.py",
        "../../etc/passwd",
        "/etc/passwd",
        "/",
        ".",
        ".git/config",
        "nul\0in it",
        "a" * 500,
        "a" * 5_000,
        "/" * 300,
        "\u202e\u2028\x1b[31m",
        "初期化",
        "1",
        "-1",
        "1e999",
        "NaN",
        "[]",
        '["src"]',
        "{}",
        '{"a": 1}',
        "[" * 2_000,
        "true",
        "manual",
        "risky",
        "kind:nothing tag: path:( OR AND NOT",
        '"unfinished',
        "*",
        "%s%n{0}",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.text(st.characters(codec="utf-8"), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
FITTING: dict[ParameterType, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-5, 2_000),
    "number": st.floats(-1, 2),
    "boolean": st.booleans(),
    "strings": st.lists(TEXTS, max_size=3),
    "object": st.dictionaries(
        st.sampled_from(["auto_edit", "retention", "retention.manual", "budget", "x", ""]),
        JSON,
        max_size=2,
    ),
}


@st.composite
def _arguments(draw: st.DrawFn, spec: Tool) -> dict[str, Any]:
    given_ones: dict[str, Any] = {}
    for parameter in spec.parameters:
        if draw(st.booleans()) or parameter.required:
            fits = draw(st.integers(0, 3))
            given_ones[parameter.name] = draw(FITTING[parameter.type] if fits else JSON)
    if draw(st.integers(0, 9)) == 0:
        given_ones[draw(st.sampled_from(["workspace", "session_id", "Ref", "paths[]"]))] = draw(
            JSON
        )
    return given_ones


def _check(name: str, arguments: object, result: CallToolResult) -> None:
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert "Traceback" not in content.text
    assert "failed unexpectedly" not in content.text, (name, arguments, content.text)
    assert 'File "' not in content.text
    assert content.text.strip()
    if result.is_error:
        assert content.text.startswith("Not done ("), (name, arguments, content.text)


def test_every_kind_of_parameter_is_fuzzed() -> None:
    assert set(FITTING) == set(get_args(ParameterType))


@settings(max_examples=6)
@given(data=st.data())
@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_any_arguments_of_any_tool_are_answered(era: Era, data: st.DataObject) -> None:
    calls = [
        (spec.name, data.draw(_arguments(spec), label=spec.name))
        for spec in TOOLS.values()
        for _ in range(2)
    ]

    async def run(sessions: ServedSessions) -> None:
        async with Client(
            make_server(sessions, Admission(StandingClock().monotonic_ns)), mode=era
        ) as client:
            await client.call_tool("checkpoint_create", {"reasoning": "r", "name": "good"})
            for name, arguments in calls:
                _check(name, arguments, await client.call_tool(name, arguments))

    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place) / "project"
        fill(workspace / "src" / "app.py", b"print(1)\n")
        sessions = ServedSessions([workspace], "agent", lambda opened: SessionId("fresh"))
        try:
            anyio.run(run, sessions)
        finally:
            sessions.close()


@settings(max_examples=20)
@given(
    uri=st.builds(
        "holdfast://{}".format,
        st.sampled_from(
            ["checkpoints/{}", "diff/{}/workspace", "diff/HEAD/{}", "timeline/{}", "{}"]
        ).flatmap(lambda form: st.text(st.characters(codec="ascii"), max_size=20).map(form.format)),
    )
)
def test_any_address_is_read_or_refused_in_words(uri: str) -> None:
    async def run(sessions: ServedSessions) -> None:
        async with Client(make_server(sessions, Admission(StandingClock().monotonic_ns))) as client:
            await client.call_tool("checkpoint_create", {"reasoning": "r"})
            try:
                await client.read_resource(uri)
            except MCPError as refused:
                said = refused.error.message
                assert "Traceback" not in said
                assert "failed unexpectedly" not in said

    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place) / "project"
        fill(workspace / "file", b"1")
        sessions = ServedSessions([workspace], "agent", lambda opened: SessionId("fresh"))
        try:
            anyio.run(run, sessions)
        finally:
            sessions.close()


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_token_of_one_session_counts_in_no_other(
    sessions: ServedSessions, workspace: Path, era: Era
) -> None:
    async def run() -> None:
        async with Client(
            make_server(sessions, Admission(StandingClock().monotonic_ns)), mode=era
        ) as client:

            async def call(name: str, /, **arguments: Any) -> CallToolResult:
                return await client.call_tool(name, arguments)

            for session in ("one", "two"):
                await call("checkpoint_create", reasoning="r", name="good", session_id=session)
            fill(workspace / "notes.txt", b"changed\n")
            shown = await call("checkpoint_restore", ref="good", session_id="one")
            assert shown.structured_content is not None
            token = shown.structured_content["confirm_token"]
            for tool, session in (("restore", "two"), ("reset", "one"), ("cleanup", "one")):
                wrong = await call(f"checkpoint_{tool}", confirm_token=token, session_id=session)
                assert wrong.is_error
                assert "(not_confirmed)" in wrong.content[0].text  # type: ignore[union-attr]
            assert (workspace / "notes.txt").read_bytes() == b"changed\n"
            done = await call("checkpoint_restore", confirm_token=token, session_id="one")
            assert not done.is_error
            again = await call("checkpoint_restore", confirm_token=token, session_id="one")
            assert again.is_error

    anyio.run(run)
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
