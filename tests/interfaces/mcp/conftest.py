"""A small workspace, and a server of it in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.domain.ids import SessionId
from holdfast.interfaces.mcp.sessions import ServedSessions
from tests.support.hostile_trees import fill
from tests.support.public_mcp_tools import PUBLIC_TOOLS

# The first lines of the run say why.
collect_ignore = ["test_public_tools.py"] if PUBLIC_TOOLS.why_not else []


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "src" / "app.py", b"print(1)\n")
    fill(workspace / "notes.txt", b"one\n")
    return workspace


@pytest.fixture
def sessions(workspace: Path) -> Iterator[ServedSessions]:
    served = ServedSessions([workspace], "agent", lambda opened: SessionId("fresh"))
    yield served
    served.close()
