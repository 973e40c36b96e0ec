"""The server as the plugin of an agent starts it, from a wheel that was built and installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from holdfast import SessionCheckpointer

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = Path("holdfast/interfaces/agent_setup/shipped/plugin/.mcp.json")


@pytest.mark.requirement("MC-1", "HK-4")
def test_the_plugin_starts_the_installed_server_in_the_agents_project(
    workspace: Path, tmp_path: Path, holdfast_home: Path
) -> None:
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    _run("hatchling", "build", "-t", "wheel", "-d", str(tmp_path), cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    _run("pip", "install", *quiet, "--target", str(installed), str(wheel), cwd=elsewhere)
    entry = json.loads((installed / PLUGIN).read_text())["mcpServers"]["holdfast"]
    server = StdioServerParameters(
        command=entry["command"],
        args=entry["args"],
        cwd=elsewhere,
        env={
            "PATH": os.pathsep.join((str(installed / "bin"), os.environ["PATH"])),
            "PYTHONPATH": str(installed),
            "HOME": os.environ["HOME"],
            "HOLDFAST_HOME": str(holdfast_home),
            # As Claude Code sets them for the servers of its plugins.
            "CLAUDE_PROJECT_DIR": str(workspace),
            "CLAUDE_CODE_SESSION_ID": "5f1c-of-the-agent",
        },
    )

    async def save() -> None:
        async with Client(server) as client:
            made = await client.call_tool("checkpoint_create", {"reasoning": "by the plugin"})
            assert not made.is_error
            why = await client.call_tool("checkpoint_why", {"path": "src/app.py"})
            assert not why.is_error

    anyio.run(save)
    with SessionCheckpointer.load(workspace, "5f1c-of-the-agent") as session:
        assert [one.intent.reasoning for one in session.history()] == ["by the plugin"]


def _run(module: str, *arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        # What is built must not depend on where the tests find the package.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
