"""Scenarios that save and restore so often that waiting for a disk would be most of their time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.disks import memory_disk
from tests.torture.scenes import remove_tree


@pytest.fixture
def quick_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory, and Holdfast's own, in memory if there is such a place."""
    memory = memory_disk()
    if memory is None:
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(dir=memory, prefix="holdfast-scenario-"))
    monkeypatch.setenv("HOLDFAST_HOME", str(directory / "home"))
    try:
        yield directory
    finally:
        remove_tree(directory)
