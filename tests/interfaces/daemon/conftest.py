"""A runtime directory and a small workspace for the tests of the daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent_project import patience as patience
from tests.support.agent_project import runtime as runtime
from tests.support.hostile_trees import fill


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for number in range(12):
        fill(root / f"part{number % 3}/file{number}", f"{number}\n".encode() * 40)
    return root
