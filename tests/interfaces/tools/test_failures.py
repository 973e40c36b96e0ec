"""A failed call says what failed as data too: damage, a full disk, and what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from mcp import Client

from holdfast import SessionCheckpointer
from holdfast.api.stores import store_directory
from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.server import Admission, make_server
from holdfast.interfaces.mcp.sessions import ServedSessions
from holdfast.interfaces.tools.handlers import ToolFailure
from holdfast.interfaces.tools.maintenance import Statistics
from holdfast.interfaces.tools.save import Created
from holdfast.tools import ToolHandlers
from tests.behind_the_api import engine_of
from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.tools.calls import done
from tests.support.clocks import StandingClock
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("MC-1")


def failure(tools: ToolHandlers, name: str, /, **arguments: object) -> tuple[str, ToolFailure]:
    result = tools.call(name, arguments)
    assert not result.success
    assert isinstance(result.data, ToolFailure)
    assert result.data.success is False
    return result.output, result.data


def damage_content(workspace: Path) -> None:
    store = store_directory(workspace)
    assert store is not None
    pack = next((store / "objects" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[1_000_000] ^= 0xFF
    pack.write_bytes(data)


def test_damaged_content_is_reported_as_corruption_that_a_repair_mends(
    tools: ToolHandlers, workspace: Path
) -> None:
    fill(workspace / "large.bin", os.urandom(2_000_000))
    _, made = done(tools, "checkpoint_create", Created)
    damage_content(workspace)
    (workspace / "large.bin").unlink()
    shown = tools.call("checkpoint_restore", {"checkpoint_id": made.checkpoint_id})
    token = getattr(shown.data, "confirm_token", None)
    text, failed = failure(tools, "checkpoint_restore", confirm_token=token)
    assert "large.bin" in text
    assert (failed.error, failed.suggested_action) == ("corruption_detected", "repair")
    assert (failed.corruption_detected, failed.degraded_mode) == (True, True)
    assert "holdfast" in (failed.hint or "") or "best_effort" in (failed.hint or "")


def test_a_full_disk_suggests_a_cleanup(
    tools: ToolHandlers, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(tools, "checkpoint_create", Created)
    monkeypatch.setattr(type(engine_of(session).vault.space), "free_bytes", lambda _: 0)
    text, failed = failure(tools, "checkpoint_create", description="Disk full test")
    assert (failed.error, failed.code) == ("insufficient_space", "no_space")
    assert (failed.cleanup_suggested, failed.suggested_action) == (True, "cleanup")
    assert failed.degraded_mode is True
    assert "checkpoint_cleanup {}" in text


def test_a_mistake_in_a_call_is_no_damage(tools: ToolHandlers) -> None:
    done(tools, "checkpoint_create", Created)
    _, failed = failure(tools, "checkpoint_restore", checkpoint_id="no-such-one")
    assert failed.error == failed.code == "unknown_reference"
    assert (failed.degraded_mode, failed.corruption_detected) == (False, False)
    assert (failed.cleanup_suggested, failed.suggested_action) == (False, None)


def test_files_are_saved_in_degraded_mode_while_git_is_damaged(
    tools: ToolHandlers, workspace: Path
) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    (workspace / ".git" / "index").write_bytes(b"DIRC garbage")
    text, made = done(tools, "checkpoint_create", Created, description="test")
    assert (made.success, made.degraded_mode, made.files_saved) == (True, True, 2)
    assert [one for one in made.degraded if one.startswith("git: ")]
    assert made.degraded[0] in text
    text, stats = done(tools, "checkpoint_stats", Statistics)
    assert stats.degraded_mode
    assert made.degraded == [f"{one.component}: {one.reason}" for one in stats.degraded]
    assert "The last checkpoint has only a part of git: " in text
    (said,) = CommandLine(workspace).json("status")["degraded"]
    assert made.degraded == [f"{said['component']}: {said['reason']}"]
    assert (said["failures"], said["left_alone_until"]) == (0, None)


def test_a_client_of_the_protocol_gets_the_failure_as_structured_content(workspace: Path) -> None:
    sessions = ServedSessions([workspace], "agent", lambda opened: SessionId("fresh"))
    server = make_server(sessions, Admission(StandingClock().monotonic_ns))

    async def ask() -> None:
        async with Client(server) as client:
            await client.call_tool("checkpoint_create", {})
            answer = await client.call_tool("checkpoint_restore", {"checkpoint_id": "nowhere"})
            assert answer.is_error
            assert answer.structured_content is not None
            assert answer.structured_content["success"] is False
            assert answer.structured_content["error"] == "unknown_reference"
            assert answer.structured_content["message"]

    anyio.run(ask)
    sessions.close()
