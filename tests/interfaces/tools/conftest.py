"""A small workspace with a session and its tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.tools import ToolHandlers
from tests.support.hostile_trees import fill


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "src" / "app.py", b"print(1)\n")
    fill(workspace / "notes.txt", b"one\n")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(workspace, "agent") as session:
        yield session


@pytest.fixture
def tools(session: SessionCheckpointer) -> ToolHandlers:
    return ToolHandlers(session)
