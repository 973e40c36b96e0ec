"""The server under the public inspector and the public conformance suite.

What of the suite does not apply, and why, is in the files under `conformance/`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.tools.handlers import TOOLS
from tests.support.mcp_servers import command, http_server
from tests.support.public_mcp_tools import PUBLIC_TOOLS

pytestmark = pytest.mark.requirement("MC-2")

EXPECTED = Path(__file__).parent / "conformance"
ERAS = ["legacy", "modern"]


def _inspected(tmp_path: Path, *arguments: str) -> Any:
    """What the inspector prints. It passes on only the given environment."""
    passed = ("PYTHONPATH", "HOLDFAST_HOME", "HOME")
    named = [f"-e{name}={os.environ[name]}" for name in passed if name in os.environ]
    done = PUBLIC_TOOLS.run(
        "mcp-inspector",
        "--cli",
        *arguments,
        *named,
        "--connect-timeout",
        "120000",
        "--format",
        "json",
        environment=os.environ,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_every_tool_and_no_fault_in_them(
    workspace: Path, tmp_path: Path, era: str
) -> None:
    how = ("--protocol-era", era, "--method")
    found = _inspected(tmp_path, *command(workspace), *how, "tools/list", "--strict")
    assert [tool["name"] for tool in found["tools"]] == list(TOOLS)
    made = _inspected(
        tmp_path,
        *command(workspace),
        *how,
        "tools/call",
        "--tool-name",
        "checkpoint_create",
        "--tool-arg",
        "reasoning=by the inspector",
    )
    assert made["structuredContent"]["checkpoint"]["reasoning"] == "by the inspector"
    read = _inspected(
        tmp_path, *command(workspace), *how, "resources/read", "--uri", "holdfast://timeline"
    )
    assert "by the inspector" in read["contents"][0]["text"]


def test_the_inspector_works_over_http(workspace: Path, tmp_path: Path) -> None:
    with http_server(workspace) as server:
        where = (server.url, "--transport", "http")
        token = ("--header", f"Authorization: Bearer {server.token}")
        found = _inspected(tmp_path, *where, *token, "--method", "prompts/list")
    assert len(found["prompts"]) == 3


@contextmanager
def _open_server(workspace: Path) -> Iterator[str]:
    root = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.open_mcp_server", str(workspace)],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_server_passes_what_the_conformance_suite_asks_of_it(
    workspace: Path, tmp_path: Path, revision: str
) -> None:
    with _open_server(workspace) as url:
        done = PUBLIC_TOOLS.run(
            "conformance",
            "server",
            "--url",
            url,
            "--requirements",
            revision,
            "--expected-failures",
            str(EXPECTED / f"{revision}.yml"),
            "--timeout",
            "120000",
            environment=os.environ,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
