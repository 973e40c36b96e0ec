"""The repository that most tests of the git component work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components.git.repositories import with_history


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return with_history(tmp_path / "project")
