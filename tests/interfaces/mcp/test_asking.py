"""A deed is confirmed by the person where the client can ask, and by a token elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import Era, http_server, stdio_client

pytestmark = pytest.mark.requirement("MC-1")

Answer = Callable[[str], ElicitResult]
BOTH = pytest.mark.parametrize("era", ["legacy", "auto"])


def call_asking(
    sessions: ServedSessions, era: Era, answer: Answer, name: str, **arguments: Any
) -> tuple[CallToolResult, list[str]]:
    """One call by a client that can ask; what it was asked."""
    asked: list[str] = []

    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return answer(params.message)

    async def run() -> CallToolResult:
        server = make_server(sessions, Admission(time.monotonic_ns))
        async with Client(server, mode=era, elicitation_callback=ask) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(run), asked


def yes(_: str) -> ElicitResult:
    return ElicitResult(action="accept", content={"confirm": True})


@pytest.fixture
def broken(sessions: ServedSessions, workspace: Path) -> Path:
    """A workspace with a good checkpoint and a broken file."""
    with sessions.handlers(None, None) as handlers:
        handlers.session.checkpoint("good")
    fill(workspace / "src" / "app.py", b"broken")
    return workspace


@BOTH
def test_a_person_who_agrees_has_it_done_in_one_call(
    sessions: ServedSessions, broken: Path, era: Era
) -> None:
    result, asked = call_asking(sessions, era, yes, "checkpoint_restore", ref="HEAD")
    assert result.structured_content is not None
    assert result.structured_content["done"] is True
    assert (broken / "src" / "app.py").read_bytes() == b"print(1)\n"
    (question,) = asked
    assert "restore src/app.py" in question
    assert "confirm_token" not in question


@BOTH
@pytest.mark.parametrize(("action", "content"), [("decline", None), ("accept", {"confirm": False})])
def test_a_person_who_does_not_agree_has_nothing_done(
    sessions: ServedSessions,
    broken: Path,
    era: Era,
    action: Literal["accept", "decline"],
    content: dict[str, Any] | None,
) -> None:
    def no(_: str) -> ElicitResult:
        return ElicitResult(action=action, content=content)

    result, asked = call_asking(sessions, era, no, "checkpoint_restore", ref="HEAD")
    assert len(asked) == 1
    assert not result.is_error
    assert "did not agree" in result.content[0].text  # type: ignore[union-attr]
    assert result.structured_content is not None
    assert result.structured_content["confirm_token"] is None
    assert (broken / "src" / "app.py").read_bytes() == b"broken"


def cancel(_: str) -> ElicitResult:
    """As a client does that has no person to ask."""
    return ElicitResult(action="cancel")


@BOTH
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("checkpoint_restore", {"ref": "HEAD"}), ("checkpoint_reset", {}), ("checkpoint_cleanup", {})],
)
def test_a_question_closed_without_an_answer_leaves_the_preview_and_a_token_that_counts(
    sessions: ServedSessions, broken: Path, era: Era, name: str, arguments: dict[str, Any]
) -> None:
    shown, asked = call_asking(sessions, era, cancel, name, **arguments)
    assert len(asked) == 1
    assert not shown.is_error
    assert shown.structured_content is not None
    assert shown.structured_content["done"] is False
    assert (broken / "src" / "app.py").read_bytes() == b"broken"
    token = shown.structured_content["confirm_token"]
    text = shown.content[0].text  # type: ignore[union-attr]
    assert "closed without an answer" in text
    assert f'{name} {{"confirm_token": "{token}"}}' in text

    result, asked = call_asking(sessions, era, cancel, name, confirm_token=token)
    assert asked == []
    assert result.structured_content is not None
    assert result.structured_content["done"] is True


@BOTH
@pytest.mark.requirement("MC-2")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("asks", [True, False], ids=["closes the question", "cannot ask"])
def test_a_client_without_a_person_restores_with_the_token_over_every_transport(
    workspace: Path, era: Era, transport: str, asks: bool
) -> None:
    file = workspace / "src" / "app.py"
    good = file.read_bytes()

    async def closed(context: object, params: ElicitRequestParams) -> ElicitResult:
        return cancel(params.message)

    options: dict[str, Any] = {"elicitation_callback": closed} if asks else {}

    async def call(client: Client, tool: str, **arguments: str) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error
        answered: dict[str, Any] | None = result.structured_content
        assert answered is not None
        return answered

    async def in_two_calls(client: Client) -> None:
        await call(client, "checkpoint_create", reasoning="good", name="good")
        fill(file, b"broken")
        shown = await call(client, "checkpoint_restore", ref="good")
        assert (shown["done"], file.read_bytes()) == (False, b"broken")
        token = shown["confirm_token"]
        done = await call(client, "checkpoint_restore", confirm_token=token)
        assert (done["done"], file.read_bytes()) == (True, good)

    async def run() -> None:
        if transport == "stdio":
            async with stdio_client(workspace, era, **options) as client:
                await in_two_calls(client)
        else:
            with http_server(workspace) as server:
                async with server.client(era, **options) as client:
                    await in_two_calls(client)

    anyio.run(run)


@BOTH
def test_what_has_changed_while_the_person_thought_is_not_done(
    sessions: ServedSessions, broken: Path, era: Era
) -> None:
    changes = iter([b"changed in the meantime", b"changed once more", b"changed for ever"])

    def late(_: str) -> ElicitResult:
        fill(broken / "notes.txt", next(changes, b"settled"))
        return yes("")

    result, asked = call_asking(sessions, era, late, "checkpoint_restore", ref="HEAD")
    text = result.content[0].text  # type: ignore[union-attr]
    if era == "legacy":
        assert "has changed since the preview" in text
        assert (broken / "src" / "app.py").read_bytes() == b"broken"
    else:
        # The question is asked again until what was agreed to is what there is.
        assert len(asked) > 1
        assert (broken / "notes.txt").read_bytes() == b"one\n"


@BOTH
def test_there_is_no_question_when_there_is_nothing_to_do(
    sessions: ServedSessions, workspace: Path, era: Era
) -> None:
    with sessions.handlers(None, None) as handlers:
        handlers.session.checkpoint("good")
    result, asked = call_asking(sessions, era, yes, "checkpoint_restore", ref="HEAD")
    assert asked == []
    assert "already matches" in result.content[0].text  # type: ignore[union-attr]


@BOTH
def test_a_wrong_call_is_corrected_without_a_question(
    sessions: ServedSessions, broken: Path, era: Era
) -> None:
    result, asked = call_asking(sessions, era, yes, "checkpoint_restore", ref="nowhere")
    assert asked == []
    assert result.is_error


@BOTH
@pytest.mark.parametrize("name", ["checkpoint_reset", "checkpoint_cleanup"])
def test_other_deeds_are_asked_about_too(
    sessions: ServedSessions, broken: Path, era: Era, name: str
) -> None:
    result, asked = call_asking(sessions, era, yes, name)
    assert len(asked) == 1
    assert result.structured_content is not None
    assert result.structured_content["done"] is True
