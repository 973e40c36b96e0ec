"""Which workspace and which session a call works on, and what is not served."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.tools.handlers import TOOLS
from tests.interfaces.cli.command_line import CommandLine
from tests.support.clocks import pass_days
from tests.support.composition import configure
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import Era, stdio_client
from tests.support.workspace_state import state_of


def call(sessions: ServedSessions, name: str, **arguments: Any) -> CallToolResult:
    async def run() -> CallToolResult:
        async with Client(make_server(sessions, Admission(time.monotonic_ns))) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(run)


def text_of(result: CallToolResult) -> str:
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text


@pytest.mark.requirement("MC-1")
def test_a_call_chooses_among_the_workspaces_that_are_served(
    workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    fill(other / "file", b"1")
    served = ServedSessions([workspace, other], "agent", lambda opened: SessionId("x"))
    inside = str(other / "deep" / "inside")
    assert not call(served, "checkpoint_create", reasoning="r", workspace=inside).is_error
    assert call(served, "checkpoint_list").structured_content == {
        "checkpoints": [],
        "next_cursor": None,
    }
    served.close()
    with SessionCheckpointer(other, "agent") as session:
        assert session.checkpoint_count == 1


@pytest.mark.requirement("MC-1")
@pytest.mark.parametrize("outer_first", [True, False])
def test_of_workspaces_within_each_other_the_inner_one_is_meant(
    workspace: Path, *, outer_first: bool
) -> None:
    inner = workspace / "service"
    fill(inner / "file", b"1")
    both = [workspace, inner] if outer_first else [inner, workspace]
    served = ServedSessions(both, "agent", lambda opened: SessionId("x"))
    for place in (inner, inner / "file"):
        call(served, "checkpoint_create", reasoning="r", workspace=str(place))
    served.close()
    with SessionCheckpointer(inner, "agent") as session:
        assert session.checkpoint_count == 2


@pytest.mark.requirement("MC-1", "MC-3")
def test_a_directory_that_the_workspace_leaves_out_is_not_it(
    sessions: ServedSessions, workspace: Path
) -> None:
    fill(workspace / ".gitignore", b"build/\n")
    fill(workspace / "build/deep/work", b"1")
    place = str(workspace / "build" / "deep")
    result = call(sessions, "checkpoint_create", reasoning="r", workspace=place)
    assert result.is_error
    assert "nothing in it is saved there" in text_of(result)
    (workspace / ".gitignore").unlink()
    assert not call(sessions, "checkpoint_create", reasoning="r", workspace=place).is_error


@pytest.mark.requirement("MC-1")
def test_a_server_that_is_started_in_a_worktree_which_the_project_ignores_serves_that(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "project") as session:
        fill(workspace / ".gitignore", b".worktrees/\n")
        session.checkpoint("so that the project has a store")
    worktree = workspace / ".worktrees" / "feature"
    fill(worktree / ".git", b"gitdir: elsewhere\n")
    fill(worktree / "deep/work", b"1")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    assert _told_by_server_in(worktree / "deep")["workspace"] == str(worktree)
    assert _told_by_server_in(workspace)["workspace"] == str(workspace)


def _told_by_server_in(directory: Path) -> dict[str, Any]:
    """What a server says of itself that an agent has started there, and that has saved once."""
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "holdfast", "mcp"],
        env=dict(os.environ),
        cwd=str(directory),
    )

    async def run() -> CallToolResult:
        async with Client(server) as client:
            await client.call_tool("checkpoint_create", {"reasoning": "r"})
            return await client.call_tool("checkpoint_stats", {})

    stats: dict[str, Any] | None = anyio.run(run).structured_content
    assert stats is not None
    return stats


@pytest.mark.requirement("MC-1", "MC-3")
@pytest.mark.parametrize("name", [name for name, spec in TOOLS.items() if spec.read_only])
def test_a_tool_that_only_reads_makes_nothing_where_nothing_is(
    sessions: ServedSessions, workspace: Path, holdfast_home: Path, name: str
) -> None:
    needed = {p.name: p.example for p in TOOLS[name].parameters if p.required}
    before = state_of(workspace)
    result = call(sessions, name, **needed)
    assert "checkpoint_create" in text_of(result)
    assert state_of(workspace) == before
    assert not (holdfast_home / "stores").exists()


@pytest.mark.requirement("MC-1")
@pytest.mark.parametrize("address", ["checkpoints", "checkpoints/HEAD", "diff/a/b", "timeline"])
def test_reading_an_address_makes_nothing_where_nothing_is(
    sessions: ServedSessions, workspace: Path, address: str
) -> None:
    async def run() -> None:
        async with Client(make_server(sessions, Admission(time.monotonic_ns))) as client:
            with suppress(MCPError):
                await client.read_resource(f"holdfast://{address}")

    before = state_of(workspace)
    anyio.run(run)
    assert state_of(workspace) == before


@pytest.mark.requirement("MC-1", "MC-3")
@pytest.mark.parametrize(
    "wanted", ["/etc", "..", "\0", 7, ["a"], "/tmp/../etc", "~root", "~nobody-here", "x" * 9000]
)
def test_nothing_else_is_served(sessions: ServedSessions, wanted: Any) -> None:
    result = call(sessions, "checkpoint_create", reasoning="r", workspace=wanted)
    assert result.is_error
    assert "What to do" in text_of(result)


@pytest.mark.requirement("MC-1")
def test_a_link_out_of_the_workspace_does_not_lead_out(
    sessions: ServedSessions, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    fill(outside / "secret", b"s")
    (workspace / "link").symlink_to(outside)
    result = call(sessions, "checkpoint_create", reasoning="r", workspace=str(workspace / "link"))
    assert result.is_error


@pytest.mark.requirement("MC-1")
def test_a_call_names_its_session_and_sessions_do_not_mix(
    sessions: ServedSessions, workspace: Path
) -> None:
    assert not call(sessions, "checkpoint_create", reasoning="r", session_id="one").is_error
    assert not call(sessions, "checkpoint_create", reasoning="s", session_id="two").is_error
    listed = call(sessions, "checkpoint_list", session_id="two").structured_content
    assert listed is not None
    assert [one["reasoning"] for one in listed["checkpoints"]] == ["s"]
    for wrong in (7, "\n", "x" * 300):
        assert call(sessions, "checkpoint_list", session_id=wrong).is_error


@pytest.mark.requirement("MC-1", "CP-8")
def test_a_session_that_is_not_there_is_an_error_that_names_the_near_ones_and_makes_none(
    sessions: ServedSessions, workspace: Path
) -> None:
    call(sessions, "checkpoint_create", reasoning="r", session_id="refactor")
    for tool in ("checkpoint_list", "checkpoint_stats", "checkpoint_approve", "checkpoint_reset"):
        result = call(sessions, tool, session_id="refctor")
        assert result.is_error
        assert "did you mean: refactor" in text_of(result)
    with SessionCheckpointer(workspace, "refactor") as session:
        known = session.opened.sessions.all()
    assert [one.id for one in known] == ["refactor"]


@pytest.mark.requirement("MC-1")
def test_without_a_name_the_session_is_that_of_the_command_line(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOLDFAST_SESSION", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    holdfast = [sys.executable, "-m", "holdfast", "-C", str(workspace)]
    made = subprocess.run(
        [*holdfast, "checkpoint", "by hand", "--json"], capture_output=True, check=True
    )

    async def run() -> CallToolResult:
        async with stdio_client(workspace) as client:
            return await client.call_tool("checkpoint_list", {})

    found = anyio.run(run).structured_content
    assert found is not None
    assert [one["id"] for one in found["checkpoints"]] == [json.loads(made.stdout)["id"]]


@pytest.mark.requirement("MC-1")
@pytest.mark.parametrize("variable", ["HOLDFAST_WORKSPACE", "CLAUDE_PROJECT_DIR"])
def test_the_environment_of_the_agent_names_workspace_and_session(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(workspace))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "of-the-agent")
    stats = _told_by_server_in(tmp_path)
    assert (stats["workspace"], stats["session_id"]) == (str(workspace), "of-the-agent")


@pytest.mark.requirement("MC-1")
def test_changed_settings_hold_from_the_next_call_on(
    sessions: ServedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(sessions, "checkpoint_create", reasoning="r")
    settings = {"retention": {"manual": {"most": 1}}}
    assert not call(sessions, "checkpoint_auto_configure", settings=settings).is_error
    for number in range(4):
        call(sessions, "checkpoint_create", reasoning=f"step {number}")
    pass_days(monkeypatch, 2)
    preview = call(sessions, "checkpoint_cleanup").structured_content
    assert preview is not None
    assert preview["total_dropped"] > 0


@pytest.mark.requirement("MC-1", "CP-12")
def test_settings_that_another_process_changed_hold_from_the_next_call_on(
    sessions: ServedSessions, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", b"KEY=1\n")

    def saved() -> list[str]:
        assert not call(sessions, "checkpoint_create", reasoning="r").is_error
        shown = call(sessions, "checkpoint_show", ref="HEAD", files=True).structured_content
        assert shown is not None
        return list(shown["paths"])

    assert ".env" not in saved()
    configure(workspace, include=[".env"])
    assert ".env" in saved()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fill(tmp_path / "holdfast" / "config.toml", b"include = 3\n")
    told = call(sessions, "checkpoint_create", reasoning="r")
    assert told.is_error
    assert "config.toml: include" in text_of(told)
    (tmp_path / "holdfast" / "config.toml").unlink()
    assert ".env" in saved()


@pytest.mark.requirement("MC-1", "ST-4")
def test_a_store_that_was_repaired_meanwhile_is_used_as_it_is_now(
    sessions: ServedSessions, workspace: Path, tmp_path: Path
) -> None:
    call(sessions, "checkpoint_create", reasoning="one")
    with open_workspace(workspace, create=False) as opened:
        with opened.store.hold():
            opened.store.space.fold_logs()
        catalog = opened.store.directory / "catalog.db"
    for suffix in ("-wal", "-shm"):
        catalog.with_name(f"catalog.db{suffix}").unlink()
    shutil.copy2(catalog, tmp_path / "rebuilt")
    (tmp_path / "rebuilt").replace(catalog)  # as a repair does
    assert not call(sessions, "checkpoint_create", reasoning="two").is_error
    listed = call(sessions, "checkpoint_list").structured_content
    assert listed is not None
    assert [each["reasoning"] for each in listed["checkpoints"]] == ["two", "one"]


@pytest.mark.requirement("MC-2")
@pytest.mark.parametrize(
    "arguments",
    [
        ["mcp", "missing-directory"],
        ["mcp", "--issuer", "https://x.example"],
        ["mcp", "--http", "--port", "many"],
        ["mcp", "--http", "--host", "0.0.0.0"],
        ["mcp", "--http", "--port", "99999"],
        ["mcp", "/"],
    ],
)
def test_what_cannot_be_served_is_said_at_once(workspace: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "-C", str(workspace), "--json", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (2, 4, 5)
    assert json.loads(done.stderr)["error"]["message"]
    assert done.stdout == ""


@pytest.mark.requirement("MC-1", "CL-1")
def test_a_session_that_the_server_starts_is_named_after_mcp(workspace: Path) -> None:
    async def save() -> None:
        async with stdio_client(workspace) as client:
            made = await client.call_tool("checkpoint_create", {"reasoning": "by an agent"})
            assert not made.is_error

    anyio.run(save)
    cli = CommandLine(workspace)
    (session,) = cli.json("sessions")
    assert session["id"].startswith("mcp-2")
    assert cli.json("checkpoint", "by a person")["session_id"] == session["id"]
    listed = cli.json("log", "--session", session["id"])
    assert [one["reasoning"] for one in listed] == ["by a person", "by an agent"]


@pytest.mark.requirement("MC-2", "CL-3")
@pytest.mark.parametrize("option", ["--host", "--port", "--issuer", "--url", "--jwks-url"])
def test_an_option_of_http_without_http_is_refused(workspace: Path, option: str) -> None:
    answer = CommandLine(workspace)("mcp", option, "7347")
    assert answer.status == 2
    assert f"{option} requires --http" in answer.err


@pytest.mark.requirement("MC-1", "MC-2")
@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_wrong_prompt_is_the_callers_mistake(sessions: ServedSessions, era: Era) -> None:
    async def run() -> None:
        server = make_server(sessions, Admission(time.monotonic_ns))
        async with Client(server, mode=era) as client:
            for name in ("nowhere", "recover_work", "x" * 5000):
                with pytest.raises(MCPError) as refused:
                    await client.get_prompt(name, {})
                assert refused.value.error.code == INVALID_PARAMS
                assert len(refused.value.error.message) <= 300

    anyio.run(run)
