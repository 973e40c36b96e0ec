"""A small workspace with a few checkpoints, and a server of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client, running
from tests.support.hostile_trees import fill


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "src" / "app.py", b"print(1)\n")
    fill(workspace / "notes.txt", b"one\n")
    return workspace


@pytest.fixture
def session(workspace: Path) -> Iterator[SessionCheckpointer]:
    """Three checkpoints: `first`, `second` with a changed file, `third` with a new one."""
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("first", name="start")
        fill(workspace / "src" / "app.py", b"print(2)\n")
        session.checkpoint("second", confidence=0.95, tags=["auth"])
        fill(workspace / "new.txt", b"new\n")
        session.checkpoint("third")
        yield session


@pytest.fixture
def client(workspace: Path) -> Iterator[Client]:
    with running(workspace) as client:
        yield client
